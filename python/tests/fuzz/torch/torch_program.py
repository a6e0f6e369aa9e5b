"""Random programs of tensors, modules and autograd, mixed with the statements of fuzz-language.

A program is a function ``fn(x, y, n, l, d, o, m, w)``: fuzz-language's arguments, a module and a parameter. Before it
is a table CASES of the shapes, dtypes, aliases and flags in each of its calls.
"""

from __future__ import annotations

from pathlib import Path

from fuzz_program import COMPOUND, PRELUDE, SIMPLE, Generator, Scope
from harness.device import placed
from harness.fuzz_statements import Statement, line, render_block

TORCH_PRELUDE = PRELUDE + (Path(__file__).resolve().parent / "torch_prelude.py").read_text()
HEADER = "def fn(x, y, n, l, d, o, m, w):"

UNARY = "relu sin cos tanh sigmoid exp abs neg clone detach contiguous square float double sign floor erf".split()
IN_PLACE = (
    "add_({i}) mul_({i}) zero_() relu_() neg_() sin_() clamp_(min={i}) copy_({u}) add_({u}) mul_({u}) "
    "sub_({u},alpha=2) "
    "fill_({i}) masked_fill_({u}>0,{i}) uniform_() normal_() t_() detach_() requires_grad_() requires_grad_(False) "
    "bernoulli_(0.5) addcmul_({u},{u}) unsqueeze_(0) squeeze_() sigmoid_() clamp_(-1,1) lerp_({u},0.5) random_(5) "
    "abs_() "
    "set_({u}) exponential_() index_fill_(0,torch.tensor([0]),{i}) cumsum_(0) transpose_(0,1) retain_grad()"
).split()
#: views with the tensor's own shape
PLAIN_VIEWS = (
    "[:] .t().t() .unsqueeze(0)[0] .expand_as({u}) .data .detach() .view_as({t}) .real .T.T .mT.mT .view({t}.shape) "
    "[...]"
).split()
VIEWS = (
    "[0] [:1] [:,:2] [-1:] [...,0] [None] .t().t() .view(-1) .reshape(-1,4) .unsqueeze(0)[0] .narrow(-1,0,2) "
    ".expand_as({u}) "
    ".chunk(2,-1)[0] .unbind(0)[0] .transpose(0,-1) .data .detach() .view_as({u}) .select(0,0) .diagonal() .real "
    ".flatten() "
    ".split(1)[0] .squeeze() .unfold(-1,2,2) .T .view(4,-1) .as_strided((2,),(1,)) .mT .contiguous() "
    ".to(torch.float32) "
    ".type_as({u}) .movedim(0,-1) .swapaxes(0,-1) .ravel()"
).split()
DTYPES = "float32 float64 float16 bfloat16 int64 bool".split()
RANDOM = (
    "F.dropout({t},0.5) F.dropout({t},0.5,m.training) torch.rand_like({t}.float()) torch.randn(4) torch.rand({r},4) "
    "torch.bernoulli({t}.detach().float().sigmoid()) torch.randperm(4)[:4].float() "
    "torch.normal({t}.detach().float(),1.0) "
    "torch.nn.functional.alpha_dropout({t},0.3,True) m.drop({t}) torch.randn_like({t}.float())*0.1 "
    "torch.randint(0,3,(4,)) torch.nn.functional.gumbel_softmax({t}.float(),dim=-1) F.rrelu({t},0.1,0.3,m.training)"
).split()
MODULE = (
    "m({t}) m.lin({t}) m.counted({t}) m.moving({t}) m.keep({t}) m.frozen({t}) m.norm({t}) m.tied({t}) m.layers[2]({t}) "
    "F.linear({t},m.lin.weight,m.lin.bias) F.linear({t},w) ({t}@w) twice(m.lin,{t}) "
    "torch.nn.Sequential(m.lin,m.drop)({t}) "
    "m.stacked({t}) m.stacked({t},{u}) m.stacked({t}) m.parts[1](m.parts[0]({t})) "
    "m.layers[0](m.drop({t})) m.forward({t}) (m.kept+{t}) m.lin.weight.t() m.mean m.lin.bias w[:1] "
    "m.lin.weight.data[0] "
    "torch.utils.checkpoint.checkpoint(m,{t},use_reentrant=False) "
    "torch.utils.checkpoint.checkpoint(m.lin,{t},use_reentrant=True) "
    "torch.func.functional_call(m.lin,dict(m.lin.named_parameters()),({t},))"
).split()
AUTOGRAD = (
    "Scale.apply({t}) Scale.apply({t},3.0) torch.autograd.grad({t}.sum(),w,allow_unused=True)[0] "
    "torch.autograd.grad(({t}*w.sum()).sum(),[w],create_graph=True)[0][0] w.grad {t}.grad {t}._base m.lin.weight.grad "
    "torch.func.grad(lambda~z:(z*z).sum())({t}.detach()) torch.vmap(lambda~z:z*2)({t}) {t}.detach().requires_grad_() "
    "torch.nn.Parameter({t}.detach().clone()) torch.func.vmap(torch.sin)({t}) "
    "torch.func.jvp(torch.sin,({t},),({t},))[1] "
    "torch.func.vjp(torch.cos,{t})[0] torch.no_grad()(lambda:{t}*w.sum())() "
    "torch.autograd.forward_ad.unpack_dual({t}).primal"
    " torch.vmap(lambda~z:z*{t}.sum()+{i})({u}) torch.func.grad(lambda~z:(z*{u}).sum()+{i})({t}) "
    "torch.vmap(half_in_place)({t}.clone()) "
    "torch.vmap(lambda~z:F.dropout(z,0.5),randomness='same')({t}) torch.func.jacrev(m.lin)({t}) "
    "torch.vmap(doubled_row)({t}) "
    "torch.vmap(lambda~z,k={i}:z+k~if~z.ndim~else~z*{u})({t}) torch.func.grad_and_value(lambda~z:(z*w).sum())({u})[0] "
    "torch.vmap(torch.func.grad(lambda~z:(z*z*{i}).sum()))({t}) torch.vmap(lambda~z:o.scaled(z))({t}) "
    "torch.vmap(m.counted)({t}) "
    "torch.vmap(lambda~z:LOG.append({i})or~z)({t}) torch.func.hessian(lambda~z:(z**3).sum())({t}.flatten()[:3])[0] "
).split()
SHAPED = (
    "torch.cat([{t},{u}]).view(-1,4)[:{r}] torch.stack([{t},{u}])[0] F.layer_norm({t},(4,)) F.softmax({t},-1) "
    "{t}.cumsum(0) "
    "F.gelu({t}) {t}.sum(0,keepdim=True) {t}.mean(-1,keepdim=True) torch.where({t}>0,{t},{u}) {t}.clamp(-1,1) "
    "{t}.masked_fill({u}>0,{i}) torch.einsum('...i,...i->...i',{t},{u}) {t}.sort(-1)[0] "
    "{t}.max(-1,keepdim=True).values "
    "torch.zeros(4) torch.ones({r},4) torch.tensor([1.0,2.0,{i},4.0]) torch.arange(4.) {t}.new_zeros(4) "
    "torch.full((4,),{i}) "
    "torch.zeros_like({t}) {t}.flip(-1) torch.maximum({t},{u}) {t}.roll(1,0) "
    "torch.outer({t}.flatten()[:4],{u}.flatten()[:4]) "
    "({t}.float()@torch.eye(4)) torch.add({t},{u},alpha={i}) torch.tensor(3) {t}.pow(2) "
    "{t}.topk(2,-1).values.sum(-1,keepdim=True) "
    "torch.linspace(0,1,4) {t}.to({u}.dtype) {t}.type(torch.get_default_dtype()) {t}.to(torch.complex64).real "
    "{t}.nonzero() "
    "torch.addmm(m.mean,{t},w) {t}.index_select(0,torch.tensor([0])) {t}[torch.tensor([0,0])] {t}[{u}>0] "
    "{t}.repeat(1,1) "
    "torch.atleast_2d({t}) torch.broadcast_tensors({t},{u})[0] {t}.item() {t}.numpy() "
    "torch.from_numpy({t}.detach().numpy())"
).split()
FLAGS = (
    "{t}.requires_grad {t}.is_leaf {t}.grad_fn=={u}.grad_fn {t}.shape=={u}.shape {t}.dtype==torch.float32 "
    "m.training {t}.ndim>1 "
    "torch.is_grad_enabled() w.grad=={n} {t}.is_contiguous() {t}~is~{u} {t}.data_ptr()=={u}.data_ptr() {t}._version>1 "
    "{t}._base~is~{u} m.calls>1 m.kept=={n} torch.is_autocast_enabled('cpu') {t}.is_inference() "
    "torch.is_inference_mode_enabled() "
    "{t}.dtype==torch.get_default_dtype() torch.are_deterministic_algorithms_enabled() {t}.is_floating_point() "
    "w.requires_grad "
    "len(list(m.parameters()))>3 m.lin.weight~is~w {t}.numel()>4 torch.equal({t},{u}) "
    "torch.allclose({t}.float(),{u}.float()) "
    "{t}.stride()=={u}.stride() {t}.storage_offset()>0 {t}._is_view() hasattr(m,'extra') "
    "isinstance({t},torch.nn.Parameter)"
).split()
STATEMENTS = (
    "{t}.sum().backward() {t}.sum().backward() {t}.float().mean().backward(retain_graph=True) m.zero_grad() "
    "w.grad=None m.train() "
    "m.eval() m.scale={i} m.scale*=2 m.kept=None m.steps+={i} m.mean=torch.ones(4) m.lin.weight.requires_grad_(False) "
    "m.extra={i} m.requires_grad_() m.drop.p=0.3 m.calls+=1 m.lin.weight.data.mul_(0.5) m.lin.bias.grad=torch.ones(4) "
    "m.lin.bias.data=torch.zeros(4) m.mean.zero_() m.register_buffer('late',{t}.detach()) "
    "m.lin.register_forward_hook(scaling_hook) "
    "m.drop.register_forward_hook(observed_hook) clear_hooks(m) {t}.register_hook(shown(LOG,{i})) "
    "torch.manual_seed({i}) "
    "torch.autograd.backward([{t}.sum(),{u}.sum()]) torch.nn.utils.clip_grad_norm_(m.parameters(),0.1) "
    "torch.optim.SGD(m.parameters(),0.1,momentum=0.9).step() torch.optim.AdamW([w],0.01).step() "
    "print({t}.shape,{t}.requires_grad) "
    "print({t}.dtype,{t}.grad_fn~is~None) torch.set_grad_enabled({b}) torch.set_default_dtype(torch.float64) "
    "torch.set_default_dtype(torch.float32) torch.use_deterministic_algorithms({b}) {l}.append({t}._version) "
    "o.t={t} w.data=w.data*2 m.parts[2].scale={i} m.parts[{i}%5].shapes={b} m.parts[3].lin=m.parts[0].lin "
    "m.parts[1].options['again']={i}%3 m.parts[{i}%5].eval() m.parts[4].register_forward_hook(scaling_hook) "
    "m.parts[2].options=m.parts[1].options m.parts[3].norm.weight=m.parts[1].norm.weight m.parts[{i}%5].lin.bias=None "
    "m.parts[1].norm.weight.requires_grad_(False) m.parts.append(m.parts[0]) m.parts[0].options['shift']={i} "
    "LOG.append({t}.tolist()) m.load_state_dict(m.state_dict()) torch.add({t},{u},out={t}) torch.mul({t},2,out=y) "
    "w.grad.zero_() "
    "{t}.grad=None {t}.data={t}.data*2 print(sorted(m.state_dict())) torch.set_rng_state(torch.get_rng_state()) "
    "m.float() m.double() x.add_({i}) y.mul_(2) w.add_(1) print(changed({t}).dtype) half_in_place({t}) "
    "half_in_place(y) "
    "m.lin.weight=torch.nn.Parameter(torch.eye(4)) m.half_hidden={t} m.lin.weight.grad.add_(1) "
    "torch.nn.init.zeros_(m.lin.bias) "
    "{t}.requires_grad=True {t}.retain_grad() {l}.append({t}) d['t']={t} m.lin.bias.add_(1) {t}[0]={u}[0] "
    "{t}[:,1]={i} {t}[{u}>0]={i}"
).split()
#: number of the first contexts that can be decorators
DECORATORS = 7
CONTEXTS = (
    "torch.no_grad() torch.enable_grad() torch.inference_mode() torch.set_grad_enabled({b}) torch.inference_mode({b}) "
    "torch.autocast('cpu',dtype=torch.bfloat16) torch.autocast('cpu',enabled={b}) torch.random.fork_rng() "
    "torch.no_grad() torch.enable_grad() "
    "torch.autograd.graph.saved_tensors_hooks(lambda~t:t*1,lambda~t:t) "
    "torch.autograd.set_detect_anomaly(False) torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH) "
    "torch.backends.mkldnn.flags(enabled=False) torch.device('cpu') torch.autograd.set_multithreading_enabled(False)"
).split()
LOOPS = (
    "m.parameters() {t} {t}.unbind(0) [{t},{u}] m.layers pairs({t}) {t}.chunk(2,-1) torch.tensor([1.0,2.0]) "
    "{t}.split(1) "
    "(w,{t}) reversed([{t},{u}]) m.lin.parameters()"
).split()
EXTRA = ["torch_statement"] * 3 + ["torch_in_place"] * 2 + ["torch_view"] * 2 + ["random_tensor"]


def source(seed: int, body: list[Statement], table: list[str] | None = None) -> str:
    """Return the whole text of a program: prelude, its table of calls (by default the seed's cases), the function."""
    out = [TORCH_PRELUDE, *(cases(seed) if table is None else table), "", HEADER]
    render_block(body, 1, out)
    return placed("\n".join(out) + "\n")


def sized_source(seed: int, body: list[Statement]) -> str:
    """Return the whole text of a program whose calls differ in sizes only."""
    return source(seed, body, sized_cases(seed))


def cases(seed: int) -> list[str]:
    """Return the table of a program's calls: each differs from the previous one in some respects."""
    generator = TorchGenerator(seed, count_only=True)
    rng = generator.rng
    one = {"rows": 2, "dtype": "float32", "xgrad": rng.random() < 0.5, "alias": "none", "training": True, "wgrad": True}
    one |= {"n": 1, "factor": 1.0, "inner": rng.random() < 0.7}
    out = ["CASES = ["]
    for _ in range(4):
        out.append(f"    {one!r},")
        for key, values in CASE_VALUES.items():
            if rng.random() < 0.25:
                one[key] = rng.choice(values)
    return [*out, "]"]


def sized_cases(seed: int) -> list[str]:
    """Return the table of calls that differ in sizes only: the rows of x and of y, and n."""
    rng = TorchGenerator(seed, count_only=True).rng
    grad, alias = rng.random() < 0.5, rng.choice(("none", "none", *CASE_VALUES["alias"]))
    one = {"dtype": "float32", "xgrad": grad, "alias": alias, "training": rng.random() < 0.7, "wgrad": True}
    one |= {"factor": 1.0, "inner": rng.random() < 0.7}
    out, first = ["CASES = ["], rng.choice((True, False))
    for call in range(6):
        # The first call is often a special one: rows equal to the width, to n, 0 or 1.
        rows = rng.choice((4, 1, 0, 2) if call == 0 and first else (0, 1, 2, 3, 4, 5, 7, 8))
        others = rng.choice((rows, rows, rows, rows, 1, rng.randint(0, 5)))
        out.append(f"    {one | {'rows': rows, 'yrows': others, 'n': rng.choice((rows, rng.randint(0, 5)))}!r},")
    return [*out, "]"]


CASE_VALUES: dict[str, tuple[object, ...]] = {
    "rows": (1, 2, 2, 3, 0),
    "dtype": ("float32", "float32", "float64", "bfloat16", "int64"),
    "xgrad": (True, False),
    "inner": (True, False),
    "alias": ("none", "same", "view", "row", "weight", "twin"),
    "training": (True, False),
    "wgrad": (True, False),
    "n": (0, 1, 2),
    "factor": (1.0, -1.0, 0.5),
}


class TorchGenerator(Generator):
    """Builds the body of one program: fuzz-language's statements and torch's."""

    def __init__(self, seed: int, count_only: bool = False) -> None:
        super().__init__(seed + (1 << 40 if count_only else 0))
        # Most programs use only a part of torch: with all of torch, they would raise early.
        self.wild = self.chance(0.3)
        self.simple = SIMPLE + EXTRA * (2 if self.chance(0.7) else 1)
        self.compound = [*COMPOUND, *["torch_with"] * 4, *["torch_for"] * 2, "torch_if", "torch_if", "decorated"]

    def fill(self, s: Scope, template: str) -> str:
        """Fill a template with names of this scope; ~ is a space."""
        if "{r}" in template:
            template = template.replace("{r}", f"{self.name(s, 't')}.shape[0]")
        for key, make in (
            ("{t}", lambda: self.name(s, "t")),
            ("{u}", lambda: self.name(s, "t")),
            ("{i}", lambda: self.int(s, 0)),
            ("{b}", lambda: self.one("True", "False", self.bool(s, 0))),
            ("{l}", lambda: self.name(s, "l")),
            ("{n}", lambda: "None"),
        ):
            while key in template:
                template = template.replace(key, make(), 1)
        return template.replace("~", " ")

    # ---- expressions ----

    def tensor(self, s: Scope, depth: int = 2) -> str:
        if depth == 0 or self.chance(0.2):
            return self.name(s, "t")
        if self.chance(0.35):
            return super().tensor(s, depth)
        table = self.rng.choice((MODULE, MODULE, AUTOGRAD, SHAPED, SHAPED, RANDOM, VIEWS, UNARY))
        if table is UNARY:
            return f"{self.name(s, 't')}.{self.rng.choice(UNARY)}()"
        if table is VIEWS:
            return self.view(s)
        template = self.rng.choice(table)
        if depth > 1 and "{t}" in template and self.chance(0.3):
            template = template.replace("{t}", f"({self.tensor(s, depth - 1)})", 1)
        return self.fill(s, template)

    def view(self, s: Scope) -> str:
        t = self.name(s, "t")
        table = VIEWS if self.wild or self.chance(0.35) else PLAIN_VIEWS
        return t + self.fill(s, self.rng.choice(table).replace("{t}", t))

    def bool(self, s: Scope, depth: int = 1) -> str:
        if self.chance(0.4):
            return self.fill(s, self.rng.choice(FLAGS))
        return super().bool(s, depth)

    # ---- statements ----

    def start(self) -> Scope:
        s = super().start()
        s.names["t"] = ["x", "y", "x", "y", "w"] if self.wild else ["x", "y"]
        return s

    def torch_statement(self, s: Scope) -> Statement:
        return self.guarded(line(self.fill(s, self.rng.choice(STATEMENTS))))

    def torch_in_place(self, s: Scope) -> Statement:
        return self.guarded(line(f"{self.name(s, 't')}.{self.fill(s, self.rng.choice(IN_PLACE))}"))

    def guarded(self, statement: Statement) -> Statement:
        """Wrap a statement that may raise in a try, in most programs."""
        if self.wild or self.chance(0.15):
            return statement
        handler = line(self.one("pass", "print(type(e).__name__)", "LOG.append(str(e))"))
        caught = self.one("RuntimeError", "(RuntimeError, AttributeError)", "Exception")
        return Statement([("try:", [statement]), (f"except {caught} as e:", [handler])])

    def torch_view(self, s: Scope) -> Statement:
        value = self.view(s)
        name = self.new("t")
        self.bound(s, "t", name)
        return line(f"{name} = {value}")

    def random_tensor(self, s: Scope) -> Statement:
        value = self.fill(s, self.rng.choice(RANDOM + MODULE))
        name = self.new("t")
        self.bound(s, "t", name)
        return line(f"{name} = {value}")

    def torch_with(self, s: Scope) -> Statement:
        return Statement([(f"with {self.fill(s, self.rng.choice(CONTEXTS))}:", self.block(s))])

    def torch_for(self, s: Scope) -> Statement:
        t = self.new("t")
        inner = s.inside(loop=True)
        header = f"for {t} in {self.fill(s, self.rng.choice(LOOPS))}:"
        if "layers" in header:
            return Statement([(header, [line(f"x = {t}(x)"), *self.block(inner, 1)])])
        self.bound(inner, "t", t)
        return Statement([(header, self.block(inner))])

    def torch_if(self, s: Scope) -> Statement:
        return Statement(
            [(f"if {self.fill(s, self.rng.choice(FLAGS))}:", self.block(s)), ("else:", self.block(s))], (False, True)
        )

    def decorated(self, s: Scope) -> list[Statement]:
        """Write a closure with a torch decorator, called at once."""
        f, result = self.new("f"), self.new("t")
        inner = s.inside(function=f, loop=False, handler=False, returns=True)
        inner.names["t"] = ["z"]
        body = [*self.statement(inner), line(f"return {self.tensor(inner)}")]
        made = Statement([(f"@{self.fill(s, self.rng.choice(CONTEXTS[:DECORATORS]))}", None), (f"def {f}(z):", body)])
        out = [made, line(f"{result} = {f}({self.tensor(s)})")]
        self.bound(s, "t", result)
        return out


def program(seed: int) -> list[Statement]:
    """Return the body of a seed's program."""
    return TorchGenerator(seed).body()
