"""Makes Python functions that first call the ``__torch_function__`` (handler) of their arguments.

::

    def gemm_dispatcher(input, mat2, out=None):
        return (input, mat2, out)

    @torch_function_dispatch(gemm_dispatcher, module="mylib")
    def gemm(input, mat2, out=None):
        return torch.mm(input, mat2, out=out)

Such a function is captured like any other function. If no handler applies, its implementation is captured; otherwise
the handler is captured.
"""

from __future__ import annotations

import collections
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

__all__ = [
    "get_overloaded_types_and_args",
    "implement_torch_function",
    "torch_function_dispatch",
    "verify_matching_signatures",
]

_TENSOR_ONLY = (torch.Tensor,)
_default: Any = torch.Tensor.__torch_function__
_TORCH_FUNCTION = _default.__func__
_NO_TORCH_FUNCTION = torch._C._disabled_torch_function_impl

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def get_overloaded_types_and_args(relevant_args: Iterable[Any]) -> tuple[tuple[type, ...], list[Any]]:
    """Return the distinct types with ``__torch_function__`` among the arguments, and the first argument of each type.

    The types are in the order of the arguments. The arguments are in order from left to right, except that an argument
    of a subclass comes before arguments of its base classes. Types whose handler is disabled do not count. A disabled
    handler is ``torch._C._disabled_torch_function_impl``, as for nn.Parameter.
    """
    types: list[type] = []
    args: list[Any] = []
    for arg in relevant_args:
        cls = type(arg)
        if cls in types or not hasattr(cls, "__torch_function__") or cls.__torch_function__ is _NO_TORCH_FUNCTION:
            continue
        types.append(cls)
        index = len(args)
        for i, other in enumerate(args):
            if issubclass(cls, type(other)):
                index = i
                break
        args.insert(index, arg)
    return tuple(types), args


def _has_default_handler(arg: Any) -> bool:
    return getattr(type(arg).__torch_function__, "__func__", None) is _TORCH_FUNCTION


def implement_torch_function(
    implementation: Callable[..., Any],
    public_api: Callable[..., Any],
    relevant_args: Iterable[Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Call the arguments' handlers in order, and return the first result that is not NotImplemented.

    If no argument has a handler other than torch.Tensor's own, the implementation is called instead. The same holds
    while handlers are disabled by ``torch._C.DisableTorchFunctionSubclass``, which torch.Tensor's own handler enters.

    Raises TypeError if all handlers return NotImplemented. Exceptions of a handler propagate.
    """
    types, overloaded_args = get_overloaded_types_and_args(relevant_args)
    if (
        not overloaded_args
        or types == _TENSOR_ONLY
        or all(_has_default_handler(arg) for arg in overloaded_args)
        or not torch._C._is_torch_function_enabled()
    ):
        return implementation(*args, **kwargs)
    for overloaded_arg in overloaded_args:
        # Handlers get the public function, because they compare it by identity.
        result = overloaded_arg.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    func_name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{func_name}' on types that implement "
        f"__torch_function__: {list(map(type, overloaded_args))}"
    )


def verify_matching_signatures(implementation: Callable[..., Any], dispatcher: Callable[..., Any]) -> None:
    """Raise RuntimeError unless the dispatcher has the implementation's signature, with None as every default."""
    implementation_spec = ArgSpec(*inspect.getfullargspec(implementation)[:4])
    dispatcher_spec = ArgSpec(*inspect.getfullargspec(dispatcher)[:4])
    if (
        implementation_spec.args != dispatcher_spec.args
        or implementation_spec.varargs != dispatcher_spec.varargs
        or implementation_spec.keywords != dispatcher_spec.keywords
        or bool(implementation_spec.defaults) != bool(dispatcher_spec.defaults)
        or (
            implementation_spec.defaults is not None
            and len(implementation_spec.defaults) != len(dispatcher_spec.defaults)
        )
    ):
        raise RuntimeError(f"implementation and dispatcher for {implementation} have different function signatures")
    if implementation_spec.defaults is not None and dispatcher_spec.defaults != (None,) * len(dispatcher_spec.defaults):
        raise RuntimeError("dispatcher functions can only use None for default argument values")


_wrapped_func_source = textwrap.dedent("""
    @functools.wraps(implementation)
    def {name}(*args, **kwargs):
        relevant_args = dispatcher(*args, **kwargs)
        return implement_torch_function(
            implementation, {name}, relevant_args, args, kwargs)
    """)


def torch_function_dispatch(
    dispatcher: Callable[..., Iterable[Any]],
    module: str | None = None,
    verify: bool = True,
    docs_from_dispatcher: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decorator that turns an implementation into a public function that calls its arguments' handlers first.

    dispatcher: a function that takes the public function's arguments, and returns those whose handlers count. module:
    the public function's ``__module__``. verify: raise RuntimeError if the signatures do not match, see
    verify_matching_signatures. docs_from_dispatcher: copy the dispatcher's docstring to the implementation. The public
    function has the attribute ``_implementation``.
    """

    def decorator(implementation: Callable[..., Any]) -> Callable[..., Any]:
        if verify:
            verify_matching_signatures(implementation, dispatcher)
        if docs_from_dispatcher:
            implementation.__doc__ = dispatcher.__doc__
        # The public function is generated, so that tracebacks show its name: the implementation may be written in C, or
        # the dispatcher may raise first.
        source = _wrapped_func_source.format(name=implementation.__name__)
        source_object = compile(source, filename="<__torch_function__ internals>", mode="exec")
        scope = {
            "implementation": implementation,
            "dispatcher": dispatcher,
            "functools": functools,
            "implement_torch_function": implement_torch_function,
        }
        exec(source_object, scope)
        public_api: Any = scope[implementation.__name__]
        if module is not None:
            public_api.__module__ = module
        public_api._implementation = implementation
        return public_api  # type: ignore[no-any-return]

    return decorator
