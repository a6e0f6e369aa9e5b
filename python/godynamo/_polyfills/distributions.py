"""torch.distributions: what a class says of a parameter that is computed when it is first asked for (Bernoulli.probs).

Distribution's own ``__init__`` asks each class for it, and only whether it is one.
"""

from __future__ import annotations

from typing import Any

from torch.distributions.utils import _lazy_property_and_property

from ._base import StandIn, stands_for

__godynamo_polyfill__ = "module"


@stands_for(_lazy_property_and_property)
class LazyProperty(StandIn):
    __real__ = _lazy_property_and_property

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def _escape(self) -> Any:
        return (_lazy_property_and_property, self.wrapped)
