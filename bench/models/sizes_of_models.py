"""`make models MODELS_ARGS="--sizes"`: counts what each model captures when its sizes change, and prints the table.

Child: sizes_of_models.py NAME [--no-torch-compile]    prints one JSON object

A model is called at three batch sizes and two lengths (or image sizes, if it accepts more than one), so that both
change at the second call. torch.compile with its default ``dynamic``, godynamo with a backend that counts graphs, and
godynamo inline make the same calls; each result must equal eager mode's bit by bit. Graph neural networks and a
detector are called with graphs and images of several sizes.
"""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
import re
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sizes"))

from godynamo._tools.bench import same, zoo  # noqa: E402
from models_child import report, tensors  # noqa: E402
from sizes_child import Engine  # noqa: E402

Call = tuple[tuple[Any, ...], dict[str, Any]]
Model = tuple[torch.nn.Module, list[Call]]

#: (batch size, whether the call has the second length) of each call
CALLS = ((2, False), (3, True), (4, False), (2, True), (3, False), (4, True))
ENGINES = ("torch", "godynamo", "inline")
CLOSE = 1e-6  #: maximum difference of a model that computes differently under torch.compiler.is_compiling()


# ---- models ----------------------------------------------------------------------------------------------------------


def with_sizes(call: Call, batch: int, longer: bool) -> Call:
    """Return a call of another batch size. If ``longer`` is set, its length or image size is half as large again."""
    args, kwargs = call
    made: dict[int, Any] = {}  # an input that is passed twice stays one tensor

    def other(t: Any) -> Any:
        if isinstance(t, torch.Tensor) and id(t) not in made:
            lengths = range(1 if t.ndim == 2 else 2, t.ndim)
            shape = [batch, *(n * 3 // 2 if longer and i in lengths else n for i, n in enumerate(t.shape[1:], 1))]
            if t.is_floating_point():
                made[id(t)] = torch.randn(shape)
            else:  # a mask of ones, or token ids
                made[id(t)] = torch.ones(shape, dtype=t.dtype) if t.max() == 1 else torch.randint(3, 99, shape)
        return made.get(id(t), t)

    return tuple(map(other, args)), {name: other(value) for name, value in kwargs.items()}


def of_zoo(name: str) -> Model:
    """Return a model of the zoo with its calls."""
    module, args, kwargs = zoo.MODELS[name]()
    module.eval()
    calls = [with_sizes((args, kwargs), batch, longer) for batch, longer in CALLS]
    try:
        with torch.no_grad():
            module(*calls[1][0], **calls[1][1])
    except Exception:  # the model's sizes are parameters
        calls = [with_sizes((args, kwargs), batch, False) for batch, _ in CALLS[:3]]
    return module, calls


def _graphs(made: Callable[[Any], torch.nn.Module]) -> Callable[[], Model]:
    def make() -> Model:
        import torch_geometric.nn

        calls: list[Call] = []
        for nodes in (5, 8, 11, 14, 20, 29):
            calls.append(((torch.randn(nodes, 16), torch.randint(0, nodes, (2, 3 * nodes + 1))), {}))
        return made(torch_geometric.nn).eval(), calls

    return make


def _near_atoms(positions: torch.Tensor, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pairs of atoms of one molecule that are near each other, and their distances."""
    distances = torch.cdist(positions, positions)
    near = (distances < 10.0) & (batch[:, None] == batch) & ~torch.eye(len(batch), dtype=torch.bool)
    pairs = near.nonzero().t()
    return pairs, distances[pairs[0], pairs[1]]


def _schnet() -> Model:
    import torch_geometric.nn

    calls: list[Call] = []
    for atoms in (5, 8, 11, 14, 20, 29):
        z, batch = torch.randint(1, 9, (atoms,)), torch.arange(atoms) // 4
        calls.append(((z, torch.randn(atoms, 3) * 3, batch), {}))
    module = torch_geometric.nn.SchNet(16, 16, num_interactions=2, num_gaussians=8, interaction_graph=_near_atoms)
    return module.eval(), calls


def _detector(name: str, **options: Any) -> Callable[[], Model]:
    def make() -> Model:
        from torchvision.models import detection

        module = getattr(detection, name)(weights=None, weights_backbone=None, **options)
        sizes = ((64, 64), (64, 80), (72, 96), (96, 64), (100, 120))
        return module.eval(), [(([torch.rand(3, *size)],), {}) for size in sizes]

    return make


#: small images and few boxes
_SMALL = {"min_size": 64, "max_size": 128}
_FEW = {**_SMALL, "rpn_post_nms_top_n_test": 20}


def _pna(nn: Any) -> torch.nn.Module:
    degrees = torch.tensor([1, 4, 8, 6, 3, 1])
    scalers = ["identity", "amplification", "attenuation"]
    made: torch.nn.Module = nn.PNA(
        16, 16, 2, 4, aggregators=["mean", "min", "max", "std"], scalers=scalers, deg=degrees
    )
    return made


#: models that only `--sizes` runs; the part of a name before the dot is the library that it needs
OTHERS: dict[str, Callable[[], Model]] = {
    "torch_geometric.gcn": _graphs(lambda nn: nn.GCN(16, 32, 2, 4)),
    "torch_geometric.sage": _graphs(lambda nn: nn.GraphSAGE(16, 32, 2, 4)),
    "torch_geometric.gat": _graphs(lambda nn: nn.GAT(16, 32, 2, 4, heads=2)),
    "torch_geometric.gin": _graphs(lambda nn: nn.GIN(16, 32, 2, 4)),
    "torch_geometric.pna": _graphs(_pna),
    "torch_geometric.schnet": _schnet,
    "torchvision.fasterrcnn": _detector("fasterrcnn_mobilenet_v3_large_320_fpn", **_FEW),
    "torchvision.fasterrcnn_resnet50": _detector("fasterrcnn_resnet50_fpn", **_FEW),
    "torchvision.maskrcnn": _detector("maskrcnn_resnet50_fpn", **_FEW),
    "torchvision.keypointrcnn": _detector("keypointrcnn_resnet50_fpn", **_FEW),
    "torchvision.retinanet": _detector("retinanet_resnet50_fpn", **_SMALL),
    "torchvision.fcos": _detector("fcos_resnet50_fpn", **_SMALL),
    "torchvision.ssd300": _detector("ssd300_vgg16"),
}


def names() -> list[str]:
    """Return the names of all models."""
    return [*zoo.MODELS, *OTHERS]


# ---- a child ---------------------------------------------------------------------------------------------------------


def results(module: Any, calls: list[Call], after: Callable[[], Any] = lambda: None) -> tuple[list[Any], list[Any]]:
    """Make all calls; return their outputs and what ``after`` returned after each."""
    out, told = [], []
    for args, kwargs in calls:
        torch.manual_seed(5)
        out.append([t.clone() for t in tensors(module(*args, **kwargs))])
        told.append(after())
    return out, told


def judged(want: list[list[torch.Tensor]], got: list[list[torch.Tensor]]) -> str:
    """Return "right", "close", or which call is wrong."""
    worst = 0.0
    for call, (a, b) in enumerate(zip(want, got, strict=True), 1):
        if len(a) != len(b) or any(x.shape != y.shape or x.dtype != y.dtype for x, y in zip(a, b, strict=True)):
            return f"WRONG call {call}: other shapes"
        worst = max([worst, *(same.tensor_difference(y, x) for x, y in zip(a, b, strict=True))])
        if worst > CLOSE:
            return f"WRONG call {call} by {worst:.2g}"
    return "close" if worst else "right"


def measure(name: str, engines: tuple[str, ...]) -> dict[str, Any]:
    """Return the figures of one model."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, calls = OTHERS[name]() if name in OTHERS else of_zoo(name)
    result: dict[str, Any] = {"name": name, "calls": len(calls)}
    with torch.no_grad():
        want, _ = results(copy.deepcopy(module), calls)
        for engine_name in engines:
            result[engine_name] = engine_figures(engine_name, module, calls, want)
    return result


def engine_figures(name: str, module: torch.nn.Module, calls: list[Call], want: Any) -> dict[str, Any]:
    """Make all calls under an engine; return its graphs after each call, its breaks and the verdict."""
    import godynamo

    engine = Engine(name, inductor=False)
    compiled = engine.optimize(copy.deepcopy(module))
    engine.start()
    try:
        got, graphs = results(compiled, calls, engine.graphs)
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"[:200]}
    figures: dict[str, Any] = {"graphs": graphs[-1], "by_call": graphs, "breaks": engine.breaks()}
    figures |= {"limit": engine.limited(), "verdict": judged(want, got)}
    if engine.internal_errors():
        figures["verdict"] = "WRONG internal error"
    if name == "torch":
        torch._dynamo.reset()
    else:
        figures["reasons"] = reasons(compiled)
        godynamo.reset()
        godynamo.utils.counters.clear()
    return figures


def reasons(compiled: Any) -> list[str]:
    """Return the checks for which calls were translated again, and the breaks, most frequent first."""
    from godynamo import utils
    from godynamo._explain.explain import _caches

    failures = [failure for cache in _caches(compiled) for failure in cache.failures]
    # Numbers are left out, so that the failures of one check at several sizes are counted together.
    texts = [(re.sub(r"\d+", "N", str(failure.reason)), failure.line) for failure in failures]
    found = Counter(f"{text} ({Path(line[0]).name}:{line[1]})" if line else text for text, line in texts)
    found += Counter({f"break: {text}": n for text, n in utils.counters["graph_break"].items()})
    return [f"{n} x {text}"[:200] for text, n in found.most_common(5)]


# ---- the table -------------------------------------------------------------------------------------------------------


def cell(figures: dict[str, Any] | None) -> str:
    """Return graphs after the first and after the last call, breaks, and a mark if the limit of entries was reached."""
    if figures is None:
        return "-"
    if "error" in figures:
        return "raises"
    verdict = "" if figures["verdict"] in ("right", "close") else " WRONG"
    return f"{figures['by_call'][0]}-{figures['graphs']}{'*' if figures['limit'] else ''}/{figures['breaks']}{verdict}"


def line(r: dict[str, Any]) -> str:
    """Return a row of the table."""
    if "error" in r:
        return f"{r['name']:34} {r['error'].splitlines()[-1][:80]}"
    return f"{r['name']:34} {r['calls']:5} " + " ".join(f"{cell(r.get(e)):>16}" for e in ENGINES) + f"  {short(r)}"


HEAD = f"{'model':34} {'calls':>5} " + " ".join(f"{e:>16}" for e in ("torch.compile", "callable", "inline"))


def short(r: dict[str, Any]) -> str:
    """Return what is wrong: "", "more than torch.compile", "no single capture", or the text of a wrong result."""
    ours = {e: r[e] for e in ENGINES[1:] if e in r}
    if wrong := [str(f.get("error") or f["verdict"]) for f in ours.values() if not right(f)]:
        return wrong[0][:60]
    theirs = r.get("torch", {})
    if any(f["graphs"] > theirs.get("graphs", f["graphs"]) for f in ours.values()):
        return "more than torch.compile"
    if ours and ours["inline"]["graphs"] > ours["inline"]["by_call"][0]:
        return "no single capture"
    return ""


def notes(r: dict[str, Any]) -> list[str]:
    """Return the reasons for captures and breaks of a model that falls short."""
    engines = ENGINES[1:] if "error" not in r and short(r) else ()
    return [f"{engine}: {reason}" for engine in engines for reason in r[engine].get("reasons", ())]


def right(figures: dict[str, Any]) -> bool:
    """Return whether an engine's calls had eager mode's results."""
    return "error" not in figures and figures["verdict"] in ("right", "close")


def summary(found: list[dict[str, Any]]) -> str:
    """Return the lines below the table."""
    done = [r for r in found if "error" not in r]
    counts = Counter(short(r) if all(right(r[e]) for e in ENGINES[1:]) else "wrong" for r in done)
    single = counts.pop("", 0) + 0
    said = ", ".join(f"{n} {what}" for what, n in counts.items())
    return f"{len(found)} models: {single} with one capture for all sizes{', ' + said if said else ''}, " + (
        f"{len(found) - len(done)} failed"
    )


def failed(r: dict[str, Any]) -> bool:
    """Return whether a model failed, is wrong, or has more captures than under torch.compile."""
    return "error" in r or not all(right(r[e]) for e in ENGINES[1:]) or short(r) == "more than torch.compile"


def main() -> None:
    """Run the command of a child."""
    logging.disable(logging.ERROR)
    name = sys.argv[1]
    library = name.split(".", maxsplit=1)[0]

    def run() -> dict[str, Any]:
        if importlib.util.find_spec(library) is None:
            return {"name": name, "error": f"needs {library}"}
        return measure(name, ENGINES[1:] if "--no-torch-compile" in sys.argv else ENGINES)

    report(name, run)


if __name__ == "__main__":
    main()
