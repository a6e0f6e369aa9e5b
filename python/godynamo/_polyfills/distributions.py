"""Stand-ins for torch.distributions: the object that a class returns for a lazy property, such as Bernoulli.probs, and
the call of ``__init__`` when an instance is made.

``Distribution.__init__`` reads the property from the class only to check the object's type.
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


def initialized(init: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``__init__`` of a new instance and return the instance, as type.__call__ does.

    Since this is a frame, the frames above can go on in CPython where a check in ``__init__`` fails.
    """
    result = init(instance, *args, **kwargs)
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    return instance
