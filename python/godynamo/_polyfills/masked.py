"""Stand-ins for torch.masked: the function that applies an operation's mask to the input.

torch's own function defines an autograd.Function on each call, even if no masked tensor is involved.
"""

from __future__ import annotations

from typing import Any

from torch.masked import _ops
from torch.masked.maskedtensor.core import is_masked_tensor

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


@stands_for(_ops._combine_input_and_mask)
def _combine_input_and_mask(op: Any, input: Any, mask: Any, *args: Any) -> Any:
    if is_masked_tensor(input) or not callable(op):
        return DECLINE
    if mask is None:
        return input
    shown = _ops._input_mask(input, mask=mask)
    return _ops._where(shown, input, _ops._reduction_identity(op.__name__, input, *args))
