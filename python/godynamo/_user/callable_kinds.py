"""The kinds of callables, by which the translator decides how it handles a call. There are no other kinds.

``go generate ./variables`` makes Go's constants from the rows of CallableKind. torchCalls in variables/torch_calls.go
has the function that captures a call of each kind.
"""

from __future__ import annotations

from typing import Literal, NewType

CallableKind = Literal[
    "allowed",  # allow_in_graph: one node of the graph
    "asked",  # returns a fact about the process, which a guard checks again
    "backward_pass",  # torch.autograd.backward or torch.autograd.grad; detail: its name
    "check",  # torch._check_with: raises unless a condition holds, which is a fact afterwards
    "comptime",  # godynamo.comptime; detail: the method
    "constant",  # its result never changes within a process
    "converted",  # changes the class of its first argument
    "current_exception",  # sys.exception
    "disabled",  # disable; detail: the user's reason
    "dispatch",  # functools.singledispatch
    "enter_state",  # enters a block that switches torch's state; leave_entered ends it
    "exc_info",  # sys.exc_info
    "expected_zero",  # returns a number that the graph expects to be 0; an operation checks this
    "false",  # returns False while translating
    "first",  # returns its last argument: NewType, torch.jit.annotate
    "fact",  # a function of a process group or None that returns a fact, which a guard checks again
    "fold",  # assume_constant_result: called while translating
    "forbidden",  # forbid_in_graph
    "foreign",  # torch.distributed: one node, which runs as in eager mode; detail: its result, see _translator/foreign
    "from_numpy",  # torch.from_numpy
    "graph_break",  # godynamo.graph_break
    "handle_torch_function",  # torch.overrides.handle_torch_function
    "hop",  # a higher-order operator
    "inline",  # inlined although its module is opaque
    "later",  # LazyModuleMixin._infer_parameters: captured after the frame has run once
    "log",  # a method of a logger
    "make_subclass",  # torch.Tensor._make_subclass
    "make_wrapper",  # torch.Tensor._make_wrapper_subclass
    "modes",  # reads or changes torch's stack of TorchFunctionModes; detail: which function
    "namedtuple",  # collections.namedtuple
    "namespace",  # torch._C._VariableFunctions
    "numpy",  # a function of numpy: one node, which calls numpy; detail: see _translator/arrays.FUNCTIONS
    "op",  # a torch operation: one node of the graph
    "opaque",  # never inlined: a call breaks the graph
    "pure",  # may be called while translating
    "recursive_repr",  # a __repr__ wrapped by dataclasses or reprlib
    "region",  # the begin or the end of an error_on_graph_break region; detail: which
    "set_state",  # changes torch's state
    "signature",  # inspect.signature
    "skip_frame",  # godynamo.skip_frame
    "stand_in",  # has a Python stand-in in _polyfills; inlined where that declines
    "stand_in_type",  # returns the C type that an object of a stand-in class represents
    "state",  # reads torch's state; the value is guarded
    "substitute",  # substitute_in_graph
    "taker",  # takes a function and calls it; detail: torch's name
    "tensor_predicate",  # returns a bool about a tensor
    "torch_function_check",  # torch.overrides.has_torch_function
    "tracing",  # reports whether something traces
    "transform",  # returns a transformed function: torch.vmap, torch.func.grad
    "transformed",  # a function returned by torch.func
    "true",  # returns True while translating
    "type_hints",  # typing.get_type_hints
    "warn",  # warnings.warn
    "wraps",  # calls the function in its closure: made by run(), or, with the detail "compile", by torch.compile
]

Classified = NewType("Classified", str)

#: the kind of the user's own callables, which are inlined
OWN = Classified("")


def classified(kind: CallableKind, detail: str = "") -> Classified:
    """Return a callable's kind with its detail."""
    return Classified(f"{kind}:{detail}") if detail else Classified(kind)
