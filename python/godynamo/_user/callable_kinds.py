"""The kinds of callables: how the translator treats a call of one. The closed set, one row each.

``go generate ./variables`` makes Go's constants from these rows; torchCalls in variables/torch_calls.go has the call of
each kind.
"""

from __future__ import annotations

from typing import Literal, NewType

CallableKind = Literal[
    "allowed",  # allow_in_graph: a node of the graph, whatever it does
    "asked",  # says something about the process; a guard asks again
    "comptime",  # godynamo.comptime; detail: the method
    "constant",  # its answer never changes in a process
    "converted",  # gives its first argument another class
    "current_exception",  # sys.exception
    "disabled",  # disable; detail: the user's reason
    "dispatch",  # functools.singledispatch
    "enter_state",  # enters a block of torch's state, which leave_entered ends
    "exc_info",  # sys.exc_info
    "false",  # False while translating
    "first",  # its last argument: NewType, torch.jit.annotate
    "fold",  # assume_constant_result: called while translating
    "forbidden",  # forbid_in_graph
    "from_numpy",  # torch.from_numpy
    "graph_break",  # godynamo.graph_break
    "handle_torch_function",  # torch.overrides.handle_torch_function
    "hop",  # a higher-order operator
    "inline",  # run through, though its module is opaque
    "later",  # LazyModuleMixin._infer_parameters: after the frame has run once
    "log",  # a method of logging's
    "make_subclass",  # torch.Tensor._make_subclass
    "modes",  # one of torch's functions on the stack of TorchFunctionModes; detail: which
    "namespace",  # torch._C._VariableFunctions
    "op",  # an operation of torch's: a node of the graph
    "opaque",  # not followed: a call breaks the graph
    "pure",  # may be called while translating
    "recursive_repr",  # a __repr__ that dataclasses or reprlib has wrapped
    "region",  # error_on_graph_break; detail: where the region begins, or that it ends
    "set_state",  # changes torch's state
    "signature",  # inspect.signature
    "skip_frame",  # godynamo.skip_frame
    "stand_in",  # has a Python stand-in in _polyfills; else it is run through
    "stand_in_type",  # the class that a stand-in stands for
    "state",  # reads torch's state, which is guarded
    "substitute",  # substitute_in_graph
    "taker",  # takes a function and calls it; detail: torch's name
    "tensor_predicate",  # asks about a tensor
    "torch_function_check",  # torch.overrides.has_torch_function
    "tracing",  # asks whether something traces
    "transform",  # makes a transformed function: torch.vmap, torch.func.grad
    "transformed",  # a function that torch.func has made
    "true",  # True while translating
    "type_hints",  # typing.get_type_hints
    "warn",  # warnings.warn
]

Classified = NewType("Classified", str)

#: the user's own callable, which is inlined
OWN = Classified("")


def classified(kind: CallableKind, detail: str = "") -> Classified:
    """Return the kind, with the details of this callable."""
    return Classified(f"{kind}:{detail}") if detail else Classified(kind)
