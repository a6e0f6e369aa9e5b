"""Stand-ins: Python versions of functions and types written in C. The translator inlines a stand-in instead of a call.

``find`` is called once per callable and translation (``callables.stand_in``). It imports a module of this package when
a callable of the corresponding C module occurs. The modules register their functions and classes with
``_base.stands_for``. User code never calls a stand-in. A stand-in raises the exceptions of the C code, with the same
texts, or it returns DECLINE: then CPython runs the C code.
"""

from __future__ import annotations

import importlib
import types
from functools import partial
from typing import Any

import torch

from . import _base

#: module of a C callable → module of this package
_MODULES = {
    "itertools": "itertools",
    "functools": "functools",
    "_functools": "functools",
    "operator": "operator",
    "_operator": "operator",
    "_heapq": "heapq",
    "_bisect": "bisect",
    "_collections": "collections",
    "math": "math",
    "builtins": "builtins",
    "re": "re",
    "types": "namespace",
    "torch": "torch_c",
    "torch._C": "torch_c",
    "torch.distributions.utils": "distributions",
}
#: module of a Python function → module of this package
PYTHON_MODULES = {
    "copy": "copy",
    "godynamo._user.modules": "handles",
    "contextlib": "torch_modes",  # of sdpa_kernel, which contextmanager made; see also find_python
    "numpy._core.getlimits": "numpy_limits",
    "numpy.core.getlimits": "numpy_limits",  # numpy 1
    "torch.amp.grad_scaler": "torch_amp",
    "torch.autograd.profiler": "torch_modes",
    "torch.nn.parallel.distributed": "torch_parallel",
    "torch._dynamo.decorators": "torch_compiled",
    "torch._dynamo.eval_frame": "torch_compiled",
    "torch._export.wrappers": "torch_flex",
    "torch._higher_order_ops.invoke_subgraph": "torch_regions",
    "torch._tensor": "torch_function",
    "torch.fx.experimental.symbolic_shapes": "torch_symbolic",
    "torch.masked._ops": "masked",
    "torch.optim.optimizer": "torch_optim",
    "torch.optim.swa_utils": "torch_optim",
    "torch.utils._foreach_utils": "torch_foreach",
}
_TORCH_METACLASSES = (type(torch.Tensor), type(torch.FloatTensor), type(torch.autograd.Variable))
_C_FUNCTIONS = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
)


def _module_of(obj: Any) -> str:
    owner = getattr(obj, "__objclass__", None) or getattr(obj, "__self__", None)
    if owner is not None and type(owner) is not types.ModuleType:
        if type(owner) is not type:  # a method bound to an object; code of that object must not run
            return ""
        obj = owner
    name = getattr(obj, "__module__", None)
    return name if isinstance(name, str) else ""


def find_object(obj: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """Return (maker, args, kwargs) of the stand-in for an immutable object of a C type; None if there is no maker."""
    kind = type(obj)
    if kind.__module__ != "operator":
        return None
    importlib.import_module(f"{__name__}.operator")
    maker = _base.makers.get(kind)
    if maker is None:
        return None
    how, args = obj.__reduce__()[:2]
    if how is kind:
        return maker, args, {}
    if isinstance(how, partial) and how.func is kind:
        return maker, (*how.args, *args), how.keywords
    return None


def named(name: str) -> Any:
    """Return the function of this package with the name "module.function"."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)


def find_python(obj: types.FunctionType) -> tuple[Any, bool] | None:
    """Do the same as find, for a Python function. If the stand-in declines, the function itself is inlined."""
    module = obj.__globals__.get("__name__") or ""
    if module == "contextlib" and obj.__module__ == "torch._dynamo.eval_frame":  # contextmanager made the function
        module = obj.__module__
    name = PYTHON_MODULES.get(module)
    if name is None:
        return None
    importlib.import_module(f"{__name__}.{name}")
    remake = _base.remade.get(obj.__code__)
    return _base.table.get(obj) if remake is None else (remake(obj), False)


def find(obj: Any) -> tuple[Any, bool] | None:
    """Return (stand-in, fold) for a C function or type, or None. callables.stand_in explains ``fold``."""
    if type(obj).__module__ == "pybind11_builtins":
        name: str | None = "torch_modes"
    elif any(type(obj) is kind for kind in _TORCH_METACLASSES):
        name = "torch_legacy"
    elif type(obj) is type or isinstance(obj, _C_FUNCTIONS):
        name = _MODULES.get(_module_of(obj))
    else:
        return None
    if name is None:
        return None
    importlib.import_module(f"{__name__}.{name}")
    return _base.table.get(obj)
