"""Random programs that read sizes of tensors and compute with them, called with other sizes each time.

A program is a function ``fn(x, y, z, v, n, k, f, lens, o, m)``: tensors of rank 2, 2, 3 and 1, two ints, a float, an
int64 tensor of lengths that add up to x's rows, a Thing and a Net. Before it is a table CASES of the sizes in each of
its calls. The seeds 2k and 2k + 1 are the same program: inline, and with a backend that receives whole graphs.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from fuzz_program import Generator, Scope
from harness.fuzz_statements import Statement, line, render_block

SIZES_PRELUDE = (Path(__file__).resolve().parent / "sizes_prelude.py").read_text()
HEADER = "def fn(x, y, z, v, n, k, f, lens, o, m):"
WIDTH = 4  #: the dimension of the module's parameters
LIMIT = 200_000  #: estimated number of elements above which a tensor is not used further
CALLS = 6
GENERIC = (2, 3, 4, 5, 6, 7, 8, 11, 13)
SIZES = (0, 1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 11, 13, 16)

# Templates of expressions by rank of the result. {A2}, {B2}: tensors of rank 2, the same letter is the same tensor;
# {AT}: of any rank; {n}: a small size; {i}: any int; {b}: a condition; {d}: dimension 0, 1 or -1. ~ is a space. Those
# in RISKY raise for some sizes.
SAFE: dict[int, str] = {
    1: "{A2}.reshape(-1) {AT}.flatten() {A2}.sum(0) {A2}.sum(-1) torch.arange({n}) torch.arange({n},{n}+3) "
    "torch.zeros({n}) torch.ones({A2}.shape[1]) torch.ones({A2}.size(0))*{A2}.size(1) torch.full(({n},),{i}) "
    "{A1}[:{n}] {A1}[{n}:] {A1}[-{n}:] {A1}[:-1] {A1}[::2] {A1}[{i}:{A1}.shape[0]-1] {A1}[:len({B1})] "
    "torch.cat([{A1},{B1}]) torch.cat([{A1}[:1],{A2}.flatten(),{B1}]) {A1}*{A1}.size(0) {A1}/({A1}.numel()+1) "
    "{A1}.expand({A1}.shape[0]) {A2}.diagonal() {A2}.T.reshape(-1) torch.linspace(0,1,{n}) {A1}.chunk(2)[0] "
    "{A1}.split({n}+1)[-1] {A1}.narrow(0,0,min({n},{A1}.shape[0])) {A1}.flip(0) {A1}.cumsum(0) {A1}.new_zeros({n}) "
    "F.pad({A1},({n},1)) {A1}.repeat({n}) {A2}@torch.ones({A2}.shape[1]) {A1}.repeat_interleave(2) "
    "torch.where({A1}>0,{A1},{i}) {A1}.relu() {A1}+{i} torch.tensor([{i},{i},1]) torch.tensor(list({A2}.shape)) "
    "torch.cat([q*2~for~q~in~{A1}.split(2)]) torch.full({A1}.shape,{n}) torch.zeros({A2}.shape[0]+{n}) "
    "torch.ones(lens.numel()) m.remembers({A2}) windows({A1},{n}) torch.stack([{A1}.sum()]*2) padded({A1},{n}) "
    "torch.arange({A1}.shape[0])*{A1} {A1}[torch.arange({A1}.shape[0]-1,-1,-1)] {A1}.sort()[0] "
    "torch.cat([torch.ones(q)~for~q~in~{A2}.shape]) {A1}[:{A1}.shape[0]//2] {A1}[{A1}.shape[0]//2:]",
    2: "{A2}.t() {A2}@{A2}.t() {A2}.t()@{A2} {A1}[None] {A1}.unsqueeze(-1) {A1}[:9,None]*{B1}[:9] "
    "torch.outer({A1}[:9],{B1}[:9]) {A2}[:{n}] {A2}[:,{n}:] {A2}[{n}:,:-1] {A2}[...,:{n}] {A2}[1:] "
    "{A2}.view({A2}.shape) {A3}.reshape({A3}.shape[0]*{A3}.shape[1],{A3}.shape[2]) {A3}.sum(1) "
    "{A2}.reshape({A2}.shape[1],{A2}.shape[0]) {A1}.expand({n},{A1}.shape[0]) {A1}.expand({n},-1) "
    "{A2}.repeat({n},1) {A2}.repeat(1,2) torch.cat([{A2},{A2}*2]) torch.cat([{A2},{A2}],1) "
    "torch.cat([{A2},{A2}.new_zeros({A2}.shape[0],{n})],-1) torch.zeros({n},{n}) torch.ones({A2}.shape) "
    "torch.ones_like({A2}) torch.eye({n}) torch.full({A2}.shape,{i}) torch.zeros({n},0) {A2}.chunk(2,{d})[0] "
    "{A2}.split({n}+1,{d})[0] torch.tril({A2}) torch.softmax({A2},{d}) {A2}.cumsum({d}) "
    "{A2}-{A2}.sum({d},keepdim=True) {A2}.permute(1,0) {A2}.transpose(0,1).contiguous() torch.stack([{A1},{A1}*2]) "
    "{A2}.flip({d}) F.pad({A2},(0,{n})) F.pad({A2},(1,0,0,{n})) torch.arange({A2}.numel()).view({A2}.shape) "
    "torch.arange({n})[:,None]+torch.arange({n}) {A2}*{A2}.shape[0] {A2}/{A2}.dim() {A2}+{i} {A2}.sin() "
    "{A2}.clamp(max={i}) {A2}.expand_as({A2}) {A3}.amax(0)~if~{A3}.shape[0]~else~torch.zeros(1,2) "
    "{A2}.masked_fill(torch.ones({A2}.shape[0],{A2}.shape[1]).triu(1).bool(),{n}) o.grown({A2}) padded({A2},{n}) "
    "causal({n}) {A2}*(1~if~{A2}.shape[0]>{A2}.shape[1]~else~{i}) {A2}.reshape(-1,1) {A2}[:{A1}.shape[0]] "
    "{A2}[:,:{A2}.shape[0]] torch.zeros({A2}.shape[0],{A2}.shape[1]+1) {A2}.new_ones({A2}.shape[::-1])",
    3: "{A2}[None] {A2}.unsqueeze({d}) torch.stack([{A2},{A2}+1]) {A3}.transpose(1,2) {A3}.permute(2,0,1) "
    "{A3}@{A3}.transpose(1,2) torch.bmm({A3},{A3}.mT) {A2}.view(1,*{A2}.shape) {A2}.expand({n},*{A2}.shape) "
    "{A2}.expand({n},-1,-1) {A3}[:,:{n}] {A3}[...,{n}:] {A3}.repeat(1,2,1) torch.zeros({n},{A2}.shape[0],2) "
    "torch.cat([{A3},{A3}],1) {A3}.softmax(-1) {A4}.flatten(1,2) {A4}.sum(2) {A3}*2 {A3}.flip(1) "
    "{A3}.reshape({A3}.shape[0],{A3}.shape[2],{A3}.shape[1]) {A3}-{A3}.sum(1,keepdim=True) attention({A3}) "
    "{A2}[:,:9,None]*{A2}[:,None,:9] {A3}.new_zeros({A3}.shape) {A3}.narrow(1,0,min({n},{A3}.shape[1]))",
    4: "{A3}[None] {A3}.unsqueeze(1) {A4}.permute(0,2,1,3) {A4}*2 F.pad({A4},(1,1,0,{n})) {A4}.repeat(1,1,2,1) "
    "{A3}.view({A3}.shape[0],1,*{A3}.shape[1:]) {A4}[:,:,:{n}] {A4}.transpose(1,-1) torch.stack([{A3},{A3}],1)",
}
RISKY: dict[int, str] = {
    1: "{A1}+{B1} {A1}*{B1} {A2}[0] {A2}[-1] {A2}[:,0] {A2}.amax(0) {A1}.topk(min(2,{n})).values torch.mv({A2},{B1}) "
    "{A2}@{B1} {A1}.unfold(0,2,1).sum(-1) {A1}.view({n}) {A1}.expand({n}) {A1}.narrow(0,{n},1) {A1}[{A1}>0] "
    "{A1}.nonzero().flatten() torch.ones(int({A1}.sum().abs().item())%5) {A1}.roll({n}) {A2}.reshape({i}) "
    "{A1}.index_select(0,torch.arange({n})) torch.zeros(int(lens[0])) torch.ones(lens.max().item()) torch.ones({i}) "
    "torch.arange({i}) {A1}[torch.arange({n})] {A1}.as_strided(({n},),(1,)) same({A1},{B1}) {A1}.view_as({B1}) "
    "torch.cat(x.split(lens.tolist())[:2]).sum(-1) {A2}.unbind(0)[{n}] pieces({A1},{n})[-1] {A2}.squeeze() "
    "x.split(lens.tolist())[{n}].sum(0) {A2}[{n}] {A2}.select(1,{n}) torch.full(({i},),2.0) torch.unique({A1})",
    2: "{A2}+{B2} {A2}*{B2} {A2}*{B1} {A2}+{B1} {A2}@{B2} {A2}@{B2}.t() {A1}.view(-1,1) {A1}.view(1,-1) "
    "{A1}.view({n},-1) {A1}.view(-1,{n}) {A2}.view({A2}.shape[1],{A2}.shape[0]) {A2}.reshape({n},-1) "
    "{A2}.reshape({A2}.numel()//max({n},1),-1) {A2}.reshape(-1,{A2}.size(1)) {A3}.flatten(1) "
    "{A3}.view({A3}.shape[0]*{A3}.shape[1],{A3}.shape[2]) {A3}.reshape(-1,{A3}.shape[-1]) {A3}[0] {A3}[:,-1] "
    "{A2}.expand_as({B2}) {A1}.expand({A2}.shape) torch.cat([{A2},{B2}]) torch.cat([{A2},{B2}],1) "
    "torch.stack([{A1},{B1}]) m({A2}) m({A2}) m.lin({A2}) m.counted({A2}) F.linear({A2},m.lin.weight) {A2}*m.weight "
    "{A2}+m.lin.bias F.layer_norm({A2},({A2}.shape[-1],)) F.layer_norm({A2},{A2}.shape[1:]) m.norm({A2}) "
    "{A2}.index_select(0,torch.arange({A2}.shape[0]-1)) {A2}[torch.arange({n})] {A2}.narrow({d},0,{n}) "
    "torch.addmm({A1},{A2},{A2}.t()) {A2}.expand({n},{n}) {A2}.roll({n},{d}) {A2}.mean({d},keepdim=True)+{B2} "
    "same({A2},{B2}) checked({A2},{n}) {A2}.view({n},{n}) {A2}.view({A2}.shape[0]//2,-1) x.split(lens.tolist())[0] "
    "m.positions[:{A2}.shape[0]]+{A2} torch.where({A2}>0,{A2},{B2}) torch.broadcast_tensors({A2},{B2})[0] "
    "{A2}.max({d},keepdim=True).values {A2}[torch.randperm({A2}.shape[0])[:0]] {A2}[{A2}.sum(1)>0] "
    "{A2}.view({A2}.shape[0]*2,{A2}.shape[1]//2) torch.vstack([{A2},{B1}]) torch.cdist({A2},{B2}) "
    "F.embedding(torch.arange({n}),{A2}) {A2}.tile({n},2)",
    3: "{A2}.reshape({A2}.shape[0],-1,1) {A2}.reshape({A2}.shape[0],{A2}.shape[1]//2,2) {A2}.unflatten(1,(-1,2)) "
    "{A3}+{B2} {A3}*{B3} {A3}+{B1} torch.einsum('ij,kj->ikj',{A2},{B2}) F.avg_pool1d({A3},2) F.max_pool1d({A3},2) "
    "F.interpolate({A3},size={n}+1) F.interpolate({A3},scale_factor=2) F.adaptive_avg_pool1d({A3},{n}+1) "
    "F.conv1d({A3},torch.ones(2,{A3}.shape[1],2)) F.conv1d({A3},m.kernel) torch.cat([{A3},{B3}],1) "
    "F.scaled_dot_product_attention({A3},{A3},{A3}) {A4}[:,0] heads({A2},2) {A2}.view({n},{n},-1) "
    "{A3}@{B2} torch.baddbmm({A3},{A3},{A3}) {A3}.view(-1,{A3}.shape[1]*{A3}.shape[2],1) m.lin({A3}) "
    "{A3}.expand({n},-1,-1) torch.stack([{A2}]*({n}%4))",
    4: "{A3}.reshape({A3}.shape[0],{A3}.shape[1],-1,2) heads({A3},2) heads({A3},{n}) F.max_pool2d({A4},2) "
    "{A3}.view(*{A3}.shape[:2],2,{A3}.shape[2]//2).transpose(1,2) F.interpolate({A4},size=({n}+1,{n}+2)) "
    "F.conv2d({A4},torch.ones(2,{A4}.shape[1],1,1)) F.adaptive_avg_pool2d({A4},(1,{n}+1)) "
    "F.conv2d({A4},torch.ones({A4}.shape[1],1,2,2),groups={A4}.shape[1],padding=1) {A4}+{B3} {A4}@{B4}",
}
INTS = (
    "{A2}.shape[0] {A2}.shape[1] {A2}.shape[-1] {A2}.size(0) len({A2}) {A3}.size(-1) {A1}.shape[0] len({A1}) "
    "{AT}.numel() {AT}.dim() {AT}.nelement() n k {i}//2 {i}%3 {i}-{i} {i}+{i} min({i},{i}) max({i},{i}) abs({i}) "
    "({i}~if~{b}~else~{i}) sum({A2}.shape) math.prod({A3}.shape) {A2}.stride(0) o.size o.sizes[0] o.table[KEY] "
    "len(o.sizes) -(-{i}//2) {i}*2 {i}*{A1}.shape[0] max({A2}.shape) len({A1}.split(2)) int({n}**0.5) "
    "math.ceil({i}/2) int({i}/3) len(range({n})) ({n}).bit_length() divmod({i},3)[1] {A2}.shape.numel() "
    "sum(sizes_of({A2},{A1})) o.note({AT}) {A1}.shape.index({A1}.shape[0]) lens.shape[0] round({i}*f) {n}&3 {n}<<1 "
    "sorted({A3}.shape)[1] len({{*{A3}.shape}}) {A1}.sum(0,keepdim=True).shape[0] {A2}.shape[{b}] int({b}) "
    "{A2}[1:].shape[0] ({A2}+{A2}).shape[1] {A3}.transpose(0,2).shape[0] len({A2}.tolist()) {A2}.flatten().size(0) "
    "[q~for~q~in~{A3}.shape~if~q>1].__len__() int(lens.sum()) torch.Size([{n},{n}]).numel() {i}//max({n},1) {i}%{n}"
).split()
BOOLS = (
    "{i}>{i} {i}=={i} {i}!={i} {i}<{i}<={i} {i}%2==0 {i}%2 {A2}.shape[0]=={A2}.shape[1] {A2}.shape[0]>{A1}.shape[0] "
    "{A2}.shape=={B2}.shape {A2}.shape!={B2}.shape {A2}.shape[1]==4 {A2}.numel()==0 {A1}.shape[0]==1 f>0.5 n==k "
    "{A2}.size()=={A3}.size()[1:] {i}~in~(1,{n}) {n}~in~{A3}.shape {A2}.shape[0]*{A2}.shape[1]>12 not~{n} "
    "{A2}.shape==({n},{n}) {n}~and~{i}>2 {A1}.numel()>=n {A2}.is_contiguous() {A1}.shape<{B1}.shape "
    "{A2}.stride()=={B2}.stride() {A2}.shape[0]>1~and~{A2}.shape[1]>1 any(q==1~for~q~in~{A3}.shape) "
    "{A1}.shape[0]>{A1}.shape[0]//2+1 {A2}.shape[-1]%4==0 {A2}.shape[0]==n {A1}.sum()>{i} o.size>{n} m.last~is~None "
    "{n}==0~or~{i}//{n}>1"
).split()
SMALL_SIZES = "{i}%5 min(abs({i}),6) {A2}.shape[0] {A2}.shape[1] {A1}.shape[0] n k 0 1 2 3 4 n%4 abs({i})%7".split()
STRINGS = (
    "f'{{{A2}.shape}}' f'{{{i}}}x{{{i}}}' f'{{{A2}.shape[0]:>4}}' str({A2}.size()) str({i}) repr(tuple({A3}.shape)) "
    "f'{{list({A2}.shape)}}|{{{A2}.numel()=}}' 'x'.join(map(str,{A3}.shape)) 'ab'*{n} f'{{{i}/2:.3f}}' '%d'%{n} "
    "f'{{{b}}}' '{{:03d}}'.format({n})"
).split()
LISTS = (
    "list({A2}.shape) [{i},{i}] sizes_of({A2},{A3}) [*{A3}.shape,{i}] [q+1~for~q~in~{A2}.shape] tuple({A2}.shape) "
    "{A2}.shape {A3}.size() ({i},{i}) {A3}.shape[1:] [range({n})[q]~for~q~in~range(min({n},2))] sorted({A3}.shape) "
    "{{'rows':{i},'t':{A2}.shape}} [t.shape[0]~for~t~in~{A1}.split(3)] list(range({n})) "
    "list(zip({A2}.shape,(1,2))) [*map(len,{A1}.chunk(2))] torch.Size([{n},2]) list(enumerate({A2}.shape)) "
    "{A2}.stride() lens.tolist() {A1}.tolist()[:{n}] dict(zip('ab',{A2}.shape)) [{A2}[:q]~for~q~in~range({n}%3)]"
).split()
STATEMENTS = (
    "o.size={i} o.size+={n} o.sizes.append({i}) o.table[KEY]={i} o.table[{n}]={A2}.shape o.t={A2} m.calls+=1 "
    "LOG.append({i}) LOG.append({A2}.shape) LOG.append(tuple({A3}.shape)) m.last={A2}.shape o.note({A2}) "
    "o.sizes[:]=list({A2}.shape) LOG.append({s}) o.sizes.extend({A3}.shape) o.pair=({i},{A1}) "
    "LOG.extend(sizes_of({A2}))"
).split()
BREAKS = (
    "print({A2}.shape) print({i},{i}) print({s}) godynamo.graph_break() print({A1}.sum().item()>{n}) print(f) "
    "print({A2}.shape[0]~if~{b}~else~{i}) print(list({A3}.shape),{i})"
).split()
CHANGES = "{A2}.add_({i}) {A2}[:{n}]={i} {A1}[{n}:]=0 {A2}.mul_({A2}.shape[0]) {A1}.zero_() {A2}[:,:1]+={i}".split()
FALLBACK = {1: "torch.ones(3)", 2: "torch.ones(2,4)", 3: "torch.ones(2,3,4)", 4: "torch.ones(1,2,3,4)"}
CAUGHT = ("RuntimeError", "(RuntimeError, IndexError)", "Exception", "(RuntimeError, ValueError, IndexError)")
#: PRODUCTS: operations whose results may have as many elements as the product of their operands' sizes. FACTORS: those
#: whose results may have several times as many elements as their operands.
PRODUCTS = re.compile(r"@|outer|None\]|expand|einsum|bmm|attention|addmm|cdist")
FACTORS = re.compile(r"repeat|tile|pad|interpolate|adaptive|\+\{B|\*\{B|broadcast|as_strided")
PLACE = re.compile(r"\{([A-Z])([1-4T])\}|\{([nibds])\}")


def source(seed: int, body: list[Statement]) -> str:
    """Return the whole text of a program: prelude, the seed's cases, the function."""
    out = [SIZES_PRELUDE, *cases(seed), "", HEADER]
    render_block(body, 1, out)
    return "\n".join(out) + "\n"


# ---- sizes ----


def cases(seed: int) -> list[str]:
    """Return the table of a program's calls."""
    rng = random.Random((seed // 2) + (1 << 41))
    rows = _sizes(rng)
    # The first two calls are repeated: entries made for other sizes in between must not serve them.
    rows += rows[:2]
    y = rng.choice((("a", "b"), ("a", "b"), ("b", "a"), ("c", "b"), ("a", "1"), ("1", "b"), ("b", "c"), ("c", "4")))
    z = rng.choice((("a", "b", "c"), ("c", "a", "b"), ("2", "a", "b"), ("1", "c", "4"), ("a", "4", "c")))
    v = rng.choice(("b", "c", "a", "n"))
    ints = rng.choice((("n", "k"), ("a", "k"), ("n", "b"), ("c", "c")))
    options = {"dynamic": rng.choice((None, None, True)), "grad": rng.random() < 0.2}
    options["no_grad"] = not options["grad"] and rng.random() < 0.6
    out = [f"OPTIONS = {options!r}", "CASES = ["]
    for row in rows:
        known = {**row, "1": 1, "2": 2, "4": WIDTH}
        one = {"x": (row["a"], row["b"]), "y": tuple(known[d] for d in y), "z": tuple(known[d] for d in z)}
        lens = [row["a"] // 2, row["a"] - row["a"] // 2 - row["a"] // 3, row["a"] // 3]
        one |= {"v": (known[v],), "n": known[ints[0]], "k": known[ints[1]], "f": row["n"] * 0.25, "lens": lens}
        out.append(f"    {one!r},")
    return [*out, "]"]


def _sizes(rng: random.Random) -> list[dict[str, int]]:
    """Return the sizes a, b, c, n and k of each call.

    Some programs keep x's width equal to the parameters' width, and some keep other sizes. In the others, sizes are
    drawn so that the first call satisfies a condition that later calls do not: equal sizes, a size equal to a
    parameter's dimension, or sizes 0 and 1. In some, all sizes are drawn freely.
    """
    names = "abcnk"
    fixed = {name: rng.choice(GENERIC) for name in names if rng.random() < 0.2}
    if rng.random() < 0.5:
        fixed["b"] = WIDTH
    pattern = rng.choice(("free", "equal", "turns", "late edges", "early edges", "width", "pair"))
    first = {name: rng.choice(GENERIC) for name in names}
    if pattern == "equal":
        first = dict.fromkeys(names, rng.choice(GENERIC))
    elif pattern == "pair":  # two sizes are equal, then they differ, then they are equal again
        one, other = rng.sample(names, 2)
        first[one] = first[other]
    elif pattern == "early edges":
        first = {name: rng.choice((0, 1, 1)) for name in names}
    elif pattern == "width":
        first = dict.fromkeys("abc", WIDTH) | {"n": WIDTH, "k": rng.choice(GENERIC)}
    rows = [first]
    for call in range(1, CALLS):
        row = {name: rng.choice(SIZES) for name in names}
        if pattern == "turns":
            name = rng.choice([name for name in names if name not in fixed] or names)
            row = rows[-1] | {name: rng.choice([size for size in SIZES if size != rows[-1][name]])}
        elif pattern == "late edges":
            row = {name: rng.choice(GENERIC if call < 3 else (0, 1, 1, 2, 5)) for name in names}
        elif pattern == "early edges" and call > 1:
            row = {name: rng.choice(GENERIC) for name in names}
        elif pattern == "pair" and call % 2 == 0:
            row[one] = row[other]
        rows.append(row)
    return [row | fixed for row in rows]


# ---- programs ----


class SizesGenerator(Generator):
    """Builds the body of one program; names of tensors are kept by rank: t1 to t4."""

    def __init__(self, seed: int, short: bool = False) -> None:
        super().__init__(seed)
        self.budget = self.rng.randint(1, 3) if short else self.rng.randint(5, 16)
        self.breaks = self.chance(1 / 3) and not short
        self.changes = self.chance(0.2)  # in-place changes
        self.elements: dict[str, float] = {"x": 170.0, "y": 170.0, "z": 2200.0, "v": 16.0, "lens": 3.0}

    def start(self) -> Scope:
        """Return the outermost scope of a program."""
        return Scope(names={"t1": ["v"], "t2": ["x", "y"], "t3": ["z"], "t4": [], "i": ["n", "k"], "l": [], "s": []})

    def body(self) -> list[Statement]:
        """Return the whole body."""
        s = self.start()
        out: list[Statement] = []
        while self.budget > 0:
            out += self.statement(s)
        if self.breaks:
            out.insert(self.rng.randint(0, len(out)), line(self.fill(self.start(), self.rng.choice(BREAKS))))
        out.append(line(f"return {self.results(s)}"))
        return out

    def results(self, s: Scope) -> str:
        """Return the last values of each kind."""
        values = [name for kind in ("t1", "t2", "t3", "t4") for name in s.names[kind][-2:]]
        values += [*s.names["i"][-3:], *s.names["l"][-2:], *s.names["s"][-1:]]
        return ", ".join([*values, self.int(s), f"{self.ranked(s, '2')}.shape"])

    # ---- expressions ----

    def ranked(self, s: Scope, rank: str) -> str:
        """Return the name of a tensor of this rank, or an expression if there is none; T is any rank."""
        if rank == "T":
            rank = self.one("1", "2", "2", "3")
        names = [name for name in s.names[f"t{rank}"] if self.elements[name] < LIMIT]
        if not names:
            return {"1": "v", "2": "x", "3": "z", "4": "z[None]"}[rank]
        return self.rng.choice(names[-4:])

    def fill(self, s: Scope, template: str, depth: int = 1) -> str:
        """Fill a template with names of this scope."""
        bound: dict[str, str] = {}

        def value(match: re.Match[str]) -> str:
            if match[3]:
                return (
                    {"n": self.size, "i": self.int, "b": self.bool, "s": self.string}[match[3]](s, depth - 1)
                    if match[3] != "d"
                    else self.one("0", "1", "-1")
                )
            key = match[1] + match[2]
            if key not in bound:
                bound[key] = self.ranked(s, match[2])
            return bound[key]

        return PLACE.sub(value, template).replace("~", " ").replace("{{", "{").replace("}}", "}")

    def size(self, s: Scope, depth: int = 1) -> str:
        """Return a small size."""
        text = self.rng.choice(SMALL_SIZES)
        return f"({self.fill(s, text, depth)})" if "%" in text else self.fill(s, text, depth)

    def int(self, s: Scope, depth: int = 1) -> str:
        """Return an int, often of sizes."""
        if depth < 0 or self.chance(0.35):
            return self.one(*s.names["i"], str(self.rng.randint(-1, 5)), f"{self.ranked(s, '2')}.shape[0]")
        return f"({self.fill(s, self.rng.choice(INTS), depth)})"

    def bool(self, s: Scope, depth: int = 1) -> str:
        """Return a condition on sizes."""
        return f"({self.fill(s, self.rng.choice(BOOLS), depth)})"

    def string(self, s: Scope, depth: int = 1) -> str:
        """Return a text with sizes."""
        return self.fill(s, self.rng.choice(STRINGS), depth)

    def tensor(self, s: Scope, depth: int = 2) -> str:
        """Return a tensor of rank 2."""
        return self.made(s, 2, SAFE)[0]

    def made(self, s: Scope, rank: int, table: dict[int, str]) -> tuple[str, float]:
        """Return an expression of this rank and an estimate of its elements."""
        for _ in range(20):
            template = self.rng.choice(table[rank].split())
            text = self.fill(s, template)
            used = [self.elements[name] for name in re.findall(r"\b\w+\b", text) if name in self.elements]
            total = 20.0 ** min(rank, 2) + sum(used)
            if PRODUCTS.search(template):
                total *= max(used, default=1.0)
            elif FACTORS.search(template):
                total *= 8
            if total < 30 * LIMIT:
                return text, total
        return FALLBACK[rank], 24.0

    # ---- statements ----

    def statement(self, s: Scope) -> list[Statement]:
        """Return one random statement."""
        self.budget -= 1
        deep = s.depth > 3 or self.budget < 0
        kinds = SIMPLE if deep or self.chance(0.7) else COMPOUND
        made = getattr(self, self.rng.choice(kinds))(s)
        return made if isinstance(made, list) else [made]

    def assign(self, s: Scope) -> Statement:
        """Assign a tensor. In most programs, an expression that may raise is inside a try."""
        rank = self.rng.choice((1, 1, 2, 2, 2, 2, 3, 3, 4))
        risky = self.chance(0.5)
        value, elements = self.made(s, rank, RISKY if risky else SAFE)
        name = self.new("t")
        self.elements[name] = elements
        self.bound(s, f"t{rank}", name)
        if not risky or self.chance(0.1):
            return line(f"{name} = {value}")
        handler = [line(f"{name} = {FALLBACK[rank]}")]
        if self.chance(0.6):
            handler.append(line(self.one("LOG.append(str(e))", "LOG.append(type(e).__name__)", "o.error = str(e)")))
        caught = self.rng.choice(CAUGHT)
        return Statement([("try:", [line(f"{name} = {value}")]), (f"except {caught} as e:", handler)])

    def assign_int(self, s: Scope) -> Statement:
        value, name = self.int(s, 2), self.new("i")
        self.bound(s, "i", name)
        return line(f"{name} = {value}")

    def assign_list(self, s: Scope) -> Statement:
        value, name = self.fill(s, self.rng.choice(LISTS)), self.new("l")
        self.bound(s, "l", name)
        return line(f"{name} = {value}")

    def assign_string(self, s: Scope) -> Statement:
        value, name = self.string(s), self.new("s")
        self.bound(s, "s", name)
        return line(f"{name} = {value}")

    def unpack(self, s: Scope) -> Statement:
        a, b, rest = self.new("i"), self.new("i"), self.new("l")
        text = self.one(f"{a}, {b} = {{A2}}.shape", f"{a}, *{rest}, {b} = {{A3}}.shape", f"{a}, {b} = {{A3}}.shape[1:]")
        for name in (a, b):
            self.bound(s, "i", name)
        return line(self.fill(s, text))

    def effect(self, s: Scope) -> Statement:
        table = CHANGES if self.changes and not s.loop and self.chance(0.4) else STATEMENTS
        return line(self.fill(s, self.rng.choice(table)))

    def break_(self, s: Scope) -> Statement:
        return line(self.fill(s, self.rng.choice(BREAKS))) if self.breaks else self.assign(s)

    def raise_(self, s: Scope) -> Statement:
        text = f"raise {self.one('ValueError', 'RuntimeError')}({self.string(s)})"
        check = f"assert {self.bool(s)}, {self.string(s)}"
        guarded = Statement([(f"if {self.bool(s)}:", [line(text)])]) if self.chance(0.7) else line(check)
        if self.chance(0.3):
            return guarded
        handler = [line(self.one("LOG.append(str(e))", "LOG.append(len(e.args))"))]
        return Statement([("try:", [guarded, *self.block(s, 2)]), ("except Exception as e:", handler)])

    def return_(self, s: Scope) -> Statement:
        value = self.results(s) if s.function == "fn" else self.ranked(s, "2")
        return Statement([(f"if {self.bool(s)}:", [line(f"return {value}")])])

    def for_(self, s: Scope) -> Statement:
        i, t = self.new("i"), self.new("t")
        inner = s.inside(loop=True)
        kind, header = self.rng.choice(
            (
                ("i", f"for {i} in range(min({{n}}, 3)):"),
                ("i", f"for {i} in range({{A2}}.shape[0] % 4):"),
                ("i", f"for {i} in {{A3}}.shape:"),
                ("i", f"for {i} in range(0, min({{A1}}.shape[0], 6), 2):"),
                ("t1", f"for {t} in {{A2}}[:3]:"),
                ("t1", f"for {t} in {{A1}}.split(max({{n}}, 4)):"),
                ("t2", f"for {t} in {{A2}}.chunk(2):"),
                ("t2", f"for {t} in {{A3}}.unbind(0)[:3]:"),
                ("t2", f"for {i}, {t} in enumerate({{A2}}.split(max({{n}}, 5), -1)):"),
            )
        )
        header = self.fill(s, header)
        self.elements[t] = 170.0
        self.bound(inner, kind, i if kind == "i" else t)
        body: list[Statement] = [line(f"LOG.append({i if kind == 'i' else f'{t}.shape'})")] if self.chance(0.3) else []
        for _ in range(self.rng.randint(1, 2)):
            body += self.statement(inner)
        return Statement([(header, body)])

    def accumulate(self, s: Scope) -> list[Statement]:
        """Add up over a loop whose length is a size."""
        total, i = self.new("t"), self.new("i")
        value = self.fill(
            s, self.one(f"{{A2}}[:{i}].sum()", f"{{A1}}.sum() * {i}", f"{{A2}}.sum() / ({i} + {{n}} + 1)")
        )
        count = self.fill(s, self.one("min({A2}.shape[0], 5)", "{n} % 4", "len({A3}.shape)"))
        self.elements[total] = 1.0
        loop = Statement([(f"for {i} in range({count}):", [line(f"{total} = {total} + {value}")])])
        self.bound(s, "t1", total)
        return [line(f"{total} = torch.zeros(1)"), loop]

    def turns(self, s: Scope) -> list[Statement]:
        """Change a tensor, or make a list, in a loop over rows or a size, which may be captured once for all sizes."""
        out, i, t, u = self.new("t"), self.new("i"), self.new("t"), self.new("t")
        inner = s.inside(loop=True)
        start, kinds, header = self.rng.choice(
            (
                ("torch.zeros({A2}.shape[0])", "i", f"for {i} in range({out}.shape[0]):"),
                ("{A1}*2", "i", f"for {i} in range(len({out})):"),
                ("{A1}.clone()", "i", f"for {i} in range({{n}}):"),
                ("torch.zeros({A2}.shape[0]+1)", "1", f"for {t} in {{A2}}:"),
                ("{A1}+1", "11", f"for {t}, {u} in zip({{A2}}, {{B2}}):"),
                ("{A1}.new_zeros({n}+1)", "21", f"for {t}, {u} in zip({{A3}}, {{B2}}):"),
            )
        )
        start, header = (self.fill(s, text, 0) for text in (start, header))
        for kind, name in zip(kinds, [i] if kinds == "i" else [t, u], strict=False):
            self.elements[name] = 40.0
            self.bound(inner, "i" if kind == "i" else f"t{kind}", name)
        at = self.fill(inner, i if kinds == "i" else self.one("0", "-1", "{n}"))
        value = self.fill(inner, self.one("{A1}.sum()", "{A2}.sum()*{i}", "{i}", "{A1}.numel()+{n}", "{AT}.sum()", "f"))
        if self.chance(0.35):
            single = self.made(inner, 1, SAFE)[0] if self.chance(0.5) else value
            made = f"[{single} {header[:-1]}]"
            self.elements[out] = 400.0
            use = self.one(made, made, f"torch.cat([q.reshape(-1) for q in {made}] + [v])", f"len({made}) + {out}")
            if "cat" in use or "len" in use:
                self.bound(s, "t1", out)
                if not kinds == "i" and "cat" in use:
                    return [line(f"{out} = {use}")]
                return [line(f"{out} = {start}"), line(f"{out} = {f'len({made}) + {out}'}")]
            self.bound(s, "l", out)
            return [line(f"{out} = {made}")]
        body: list[Statement] = []
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            body += [self.assign(inner)] if self.chance(0.7) else self.statement(inner)
        body.append(line(self.one(f"{out}[{at}] = {value}", f"{out} += {value}", f"{out}[{at}:] *= 2")))
        self.elements[out] = 400.0
        self.bound(s, "t1", out)
        loop = Statement([(header, body)])
        if self.chance(0.7):
            return [line(f"{out} = {start}"), loop]
        return [
            line(f"{out} = {start}"),
            Statement([("try:", [loop]), ("except Exception as e:", [line("LOG.append(type(e).__name__)")])]),
        ]

    def while_(self, s: Scope) -> list[Statement]:
        start, w = self.fill(s, self.one("{A2}.shape[0]", "{n}", "min({i}, 9)")), self.new("w")
        self.bound(s, "i", w)
        body = [line(f"{w} = {w} {self.one('// 2', '- 3', '- 2')}"), *self.block(s, 1, loop=True)]
        return [line(f"{w} = {start}"), Statement([(f"while {w} > 1:", body)])]

    def function(self, s: Scope) -> list[Statement]:
        """Write a closure that reads sizes of its argument and of the enclosing function, and call it."""
        f, k, result = self.new("f"), self.new("i"), self.new("t")
        inner = s.inside(function=f, loop=False)
        inner.names |= {"t2": ["q"], "i": [k, "w"], "l": [], "s": []}
        self.elements["q"] = 400.0
        body: list[Statement] = []
        for _ in range(self.rng.randint(0, 2)):
            body += self.statement(inner)
        body.append(line(f"return {self.made(inner, 2, SAFE)[0]}"))
        argument, value = self.made(s, 2, SAFE)[0], self.int(s)
        out = [line(f"{k} = {value}"), Statement([(f"def {f}(q, w={self.int(s)}):", body)])]
        self.bound(s, "i", k)
        call = self.one(f"{f}({argument})", f"{f}({argument}, {self.int(s)})", f"{f}({argument}, w={self.size(s)})")
        out.append(line(f"{result} = {call}"))
        self.elements[result] = 4000.0
        self.bound(s, "t2", result)
        return out

    def match_(self, s: Scope) -> Statement:
        a, b = self.new("i"), self.new("i")
        inner = s.inside()
        self.bound(inner, "i", a)
        arms: list[Statement] = [
            Statement([("case (0, _) | (1, _):", self.statement(s.inside()))]),
            Statement([(f"case ({a}, {WIDTH}):", self.statement(inner))]),
            Statement([(f"case ({a}, {b}) if {a} > {b}:", self.statement(inner.inside()))]),
            Statement([("case _:", self.statement(s.inside()))]),
        ]
        return Statement([(f"match tuple({self.ranked(s, '2')}.shape):", arms)])


SIMPLE = (
    "assign assign assign assign assign assign assign_int assign_int assign_list assign_string unpack effect effect "
    "break_ raise_"
).split()
COMPOUND = "if_ if_ if_ for_ for_ turns turns turns accumulate while_ function function match_ return_".split()


def program(seed: int) -> list[Statement]:
    """Return the body of a seed's program."""
    return SizesGenerator(seed // 2).body()


def short_program(seed: int) -> list[Statement]:
    """Return the body of a program of a few statements without a graph break."""
    return SizesGenerator(seed // 2, short=True).body()
