"""Random training steps: a model, an optimizer with random options, a step, and changes between the steps.

A program has the functions ``make()``, which returns a State (training_prelude.py), ``between(s, step)``, which is not
optimized, and ``fn(s, x, y)``, the step.
"""

from __future__ import annotations

import random
from pathlib import Path

from harness.device import placed
from harness.fuzz_statements import Statement, line, render_block

PRELUDE = (Path(__file__).resolve().parent / "training_prelude.py").read_text()
HEADER = "def fn(s, x, y):"

MODELS = "Mlp() Mlp() Normed() Tied() Shared() Mixed() Recurrent() Words() Words(sparse=True)".split()

#: options of each optimizer: name → expressions, one of which is chosen; "" leaves the option out
COMMON = {"maximize": ("", "", "True", "False"), "foreach": ("", "", "False", "True")}
DECAY = {"weight_decay": ("", "0.0", "0.01")}
BETAS = {"betas": ("", "(0.5, 0.9)", "(0.0, 0.5)"), "eps": ("", "1e-3")}
LR = {"lr": ("0.01", "0.1", "1e-3", "0.0")}
ADAM = LR | BETAS | DECAY | COMMON | {"amsgrad": ("", "", "True"), "fused": ("", "", "True")}
OPTIMIZERS: dict[str, dict[str, tuple[str, ...]]] = {
    "SGD": LR
    | DECAY
    | COMMON
    | {"momentum": ("", "0.9", "0.5"), "dampening": ("", "0.1"), "nesterov": ("", "", "True"), "fused": ("", "True")},
    "Adam": ADAM,
    "AdamW": ADAM,
    "Adamax": LR | BETAS | DECAY | COMMON,
    "NAdam": LR | BETAS | DECAY | COMMON | {"decoupled_weight_decay": ("", "True")},
    "RAdam": LR | BETAS | DECAY | COMMON | {"decoupled_weight_decay": ("", "True")},
    "RMSprop": LR | DECAY | COMMON | {"alpha": ("", "0.5"), "centered": ("", "True"), "momentum": ("", "0.9")},
    "Adagrad": LR | DECAY | COMMON | {"lr_decay": ("", "0.1"), "initial_accumulator_value": ("", "0.1")},
    "Adadelta": LR | DECAY | COMMON | {"rho": ("", "0.5")},
    "ASGD": LR | DECAY | COMMON | {"lambd": ("", "0.1"), "t0": ("", "2")},
    "Rprop": LR | COMMON | {"etas": ("", "(0.4, 1.3)")},
    "Adafactor": LR | DECAY | COMMON,
    "Muon": LR | {"weight_decay": ("", "0.01"), "momentum": ("", "0.5"), "nesterov": ("", "False")},
    "SparseAdam": LR | BETAS,
    "LBFGS": {"lr": ("0.1",), "max_iter": ("2", "3"), "line_search_fn": ("", "'strong_wolfe'")},
}
#: optimizers that take only some parameters
PARAMETERS = {"SparseAdam": "m.first.parameters()", "Muon": "[p for p in m.parameters() if p.ndim == 2]"}
SCHEDULERS = (
    "lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5)",
    "lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5)",
    "lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=40)",
    "lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.9 ** epoch)",
)

#: the loss of a step, from `out`
LOSSES = (
    "s.loss(out, y)",
    "s.loss(out, y)",
    "F.l1_loss(out, y)",
    "F.cross_entropy(out, y.abs().long().argmax(-1))",
    "((out - y) ** 2).sum()",
    "F.smooth_l1_loss(out, y, reduction='none').mean()",
    "s.loss(out, y) + penalty(s.model)",
    "finite(s.loss(out, y))",
    "F.kl_div(out.log_softmax(-1), y.softmax(-1), reduction='batchmean')",
)
OUTPUTS = (
    "s.model(x)",
    "s.model(x)",
    "s.model(x)",
    "torch.utils.checkpoint.checkpoint(s.model, x, use_reentrant=False)",
    "s.model(x) * 0.5 + s.model(x.flip(0)) * 0.5",
    "torch.func.functional_call(s.model, dict(s.model.named_parameters()), (x,))",
    "F.dropout(s.model(x), 0.1)",
)
BACKWARD = (
    "loss.backward()",
    "loss.backward()",
    "loss.backward()",
    "(loss / 2).backward()",
    "loss.backward(retain_graph=True)",
    "s.scaler.scale(loss).backward()",
    "torch.autograd.backward([loss])",
    "loss.backward(torch.tensor(0.5))",
)
#: statements before the forward pass
BEFORE = (
    "s.opt.zero_grad()",
    "s.opt.zero_grad(set_to_none=False)",
    "s.model.zero_grad()",
    "s.model.train()",
    "s.model.first.requires_grad_(s.high < 2)",
    "x = x + torch.randn_like(x) * 0.1",
    "x, y = x[:2], y[:2]",
    "for g in s.opt.param_groups: g['lr'] *= 0.9",
)
#: statements between the backward pass and the optimizer's step
GRADIENTS = (
    "torch.nn.utils.clip_grad_norm_(s.model.parameters(), 0.5)",
    "LOG.append(torch.nn.utils.clip_grad_norm_(s.params(), 0.1).item())",
    "torch.nn.utils.clip_grad_value_(s.model.parameters(), 0.05)",
    "s.model.last.weight.grad = None",
    "s.model.last.weight.grad.mul_(0.5)",
    "s.model.last.weight.grad *= 2",
    "for p in s.params(): p.grad = p.grad * 0.5",
    "for p in s.params(): p.grad.data.clamp_(-0.1, 0.1)",
    "with torch.no_grad(): s.total += sum(p.grad.float().sum() for p in s.params())",
    "if any((p.grad > 0.4).any() for p in s.params()): s.high += 1",
    "torch._foreach_mul_([p.grad for p in s.params()], 0.5)",
    "s.scaler.unscale_(s.opt)",
    "for p in s.params(): p.grad.add_(p.detach(), alpha=0.01)",
)
STEPS = (
    "s.opt.step()",
    "s.opt.step()",
    "s.opt.step()",
    "s.scaler.step(s.opt); s.scaler.update()",
    "descend(s.params())",
    "for p in s.params(): p.data.sub_(p.grad.data * 0.1)",
    "s.opt.step(); s.opt.zero_grad()",
)
AFTER = (
    "s.averaged()",
    "s.losses.append(loss.item())",
    "s.total += loss.detach()",
    "s.total = s.total * 0.9 + loss.detach() * 0.1",
    "print(f'{loss.item():.3f}')",
    "if loss.item() > 1: s.high += 1",
    "if s.sched is not None: s.sched.step()",
    "s.model.last.weight.data.clamp_(-0.5, 0.5)",
    "torch._foreach_lerp_(list(s.mean.parameters()), list(s.model.parameters()), 0.1)",
    "LOG.append(len(s.opt.state))",
    "LOG.append([g['lr'] for g in s.opt.param_groups])",
    "with torch.no_grad(): s.model.eval(); LOG.append(s.model(x).sum().item()); s.model.train()",
    "s.opt.param_groups[0]['lr'] = 0.05 / (1 + len(s.losses))",
    "LOG.append(s.model.last.weight.grad is None)",
)
#: what happens between two steps, outside of optimized code
BETWEEN = (
    "s.opt.param_groups[0]['lr'] *= 0.5",
    "s.model.first.requires_grad_(step % 2 == 0)",
    "s.opt.load_state_dict(s.opt.state_dict())",
    "s.opt.load_state_dict(copy.deepcopy(s.opt.state_dict()))",
    "s.model.load_state_dict(s.mean.state_dict())",
    "s.model.load_state_dict(copy.deepcopy(s.mean.state_dict()), assign=True)",
    "s.opt.state.clear()",
    "s.opt.zero_grad()",
    "s.model.last.weight.grad = torch.ones_like(s.model.last.weight)",
    "s.model.last.weight.grad = s.model.last.weight.detach().clone()",
    "s.model.last.weight.data = s.model.last.weight.data.clone()",
    "s.model.last.weight.data[0] = float('nan')",
    "s.model.last.weight.data[0, 0] = float('inf')",
    "s.model.last.weight.register_hook(logged_hook('last')) if s.model.last.weight.requires_grad else None",
    "s.model.last.register_forward_hook(counted_hook)",
    "s.model.eval() if step % 2 else s.model.train()",
    "s.opt.add_param_group({'params': [torch.nn.Parameter(torch.ones(2))], 'lr': 0.01})",
    "s.opt.param_groups[0]['weight_decay'] = 0.1",
    "s.opt.param_groups[0]['params'].reverse()",
    "s.model.last.weight.requires_grad_(False)",
    "torch.set_num_threads(torch.get_num_threads())",
    "LOG.append(s.model.last.weight.detach().view(-1)[:2])",
    "s.mean = copy.deepcopy(s.model)",
    "LOG.append({k: v for k, v in s.opt.state.items()})",
    "s.model.double().float()",
    "s.opt.step = s.opt.step",
)
CONTEXTS = (
    "torch.autocast('cpu', dtype=torch.bfloat16)",
    "torch.enable_grad()",
    "torch.set_grad_enabled(True)",
    "torch.profiler.record_function('part')",
)


class TrainingGenerator:
    """Builds one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def some(self, table: tuple[str, ...], most: int) -> list[Statement]:
        """Return up to ``most`` of a table's statements."""
        return [line(self.rng.choice(table)) for _ in range(self.rng.randint(0, most))]

    def optimizer(self) -> str:
        """Return the text of a function from the model to its optimizer."""
        name = self.rng.choice(list(OPTIMIZERS))
        options = OPTIMIZERS[name]
        chosen = {k: self.rng.choice(v) for k, v in options.items() if k == "lr" or self.chance(0.4)}
        text = "".join(f", {k}={v}" for k, v in chosen.items() if v)
        params = "m.parameters()"
        if name in PARAMETERS:
            params = PARAMETERS[name]
        elif name != "LBFGS" and self.chance(0.25):
            params = "[{'params': m.first.parameters(), 'lr': 0.02}, {'params': list(m.last.parameters())[-1:]}]"
        return f"lambda m: torch.optim.{name}({params}{text})"

    def make(self) -> list[str]:
        """Return make() and between()."""
        optimizer = self.optimizer()
        model = "Words(sparse=True)" if "SparseAdam" in optimizer else self.rng.choice(MODELS)
        more = f", scheduler={self.rng.choice(SCHEDULERS)}" if self.chance(0.3) else ""
        more += ", scaler=True" if self.chance(0.2) else ""
        out = ["def make():", f"    return State({model}, {optimizer}{more})", "", "", "def between(s, step):"]
        out += [f"    if step == {step}: {self.rng.choice(BETWEEN)}" for step in range(2, 8) if self.chance(0.3)]
        return [*out, "    return s", ""]

    def guarded(self, statements: list[Statement]) -> list[Statement]:
        """Put some statements that may raise into a try, or into a context."""
        if not statements or self.chance(0.85):
            return statements
        if self.chance(0.5):
            return [Statement([(f"with {self.rng.choice(CONTEXTS)}:", statements)])]
        handler = line(self.rng.choice(("LOG.append(str(e))", "print(type(e).__name__)", "raise")))
        return [Statement([("try:", statements), ("except Exception as e:", [handler])])]

    def body(self) -> list[Statement]:
        choice = self.rng.choice
        out = self.some(BEFORE, 3)
        if self.chance(0.1):  # the optimizer calls the step
            inner = [line("s.opt.zero_grad()"), line(f"out = {choice(OUTPUTS)}"), line(f"loss = {choice(LOSSES)}")]
            inner += [line("loss.backward()"), *self.some(GRADIENTS, 1), line("return loss")]
            out += [Statement([("def closure():", inner)]), line("loss = s.opt.step(closure)")]
        else:
            forward = [line(f"out = {choice(OUTPUTS)}"), line(f"loss = {choice(LOSSES)}")]
            if self.chance(0.2):  # accumulate over parts of the batch
                parts = [line(f"out = {choice(OUTPUTS)}"), line("loss = s.loss(out, y)"), line(choice(BACKWARD))]
                out.append(Statement([("for x, y in zip(x.chunk(2), y.chunk(2)):", parts)]))
            else:
                out += [*self.guarded(forward), *self.guarded([line(choice(BACKWARD))])]
            out += [*self.guarded(self.some(GRADIENTS, 2)), *self.guarded([line(choice(STEPS))])]
        out += self.guarded(self.some(AFTER, 3))
        return [*out, line("return loss" if self.chance(0.7) else "return out, loss")]


def program(seed: int) -> list[Statement]:
    """Return the body of a seed's step."""
    return TrainingGenerator(seed).body()


def source(seed: int, body: list[Statement]) -> str:
    """Return the whole text of a program."""
    out = [PRELUDE, *TrainingGenerator(seed + (1 << 40)).make(), "", HEADER]
    render_block(body, 1, out)
    return placed("\n".join(out) + "\n")
