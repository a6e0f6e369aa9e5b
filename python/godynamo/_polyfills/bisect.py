"""Stand-ins for bisect: the functions of bisect.py, which the C module _bisect normally replaces."""

from __future__ import annotations

import _bisect

from ._base import python_version, stands_for

_source = python_version("bisect", "_bisect")
for _name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    stands_for(getattr(_bisect, _name))(_source[_name])
