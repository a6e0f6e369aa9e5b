"""Lists Python functions of the standard library that have no effect and whose result depends only on their arguments.

The translator calls them while translating, if their arguments are plain constants. The program itself makes the calls
that print or warn, such as those with unusual regular expressions.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from typing import Any

from . import warned

MISSING = object()

_FUNCTIONS = {
    module: frozenset(names.split())
    for module, names in {
        "json": "dumps loads",
        "re": "compile escape findall fullmatch match search split sub subn",
        "posixpath": "basename commonpath commonprefix dirname isabs join normpath split splitext",
        "genericpath": "commonprefix",
        "textwrap": "dedent fill indent shorten wrap",
        "string": "capwords",
        "shlex": "join quote split",
        "html": "escape unescape",
        "urllib.parse": "quote quote_plus unquote unquote_plus urlencode urljoin",
        "base64": "b16decode b16encode b32decode b32encode b64decode b64encode",
        "fnmatch": "fnmatchcase translate",
        "colorsys": "hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv rgb_to_yiq yiq_to_rgb",
        "statistics": "fmean geometric_mean harmonic_mean mean median median_high median_low mode pstdev pvariance "
        "stdev "
        "variance",
        "inspect": "cleandoc",
    }.items()
}


def is_pure(fn: types.FunctionType, module: str) -> bool:
    """Return whether ``fn`` is one of these functions. It is not if its module has replaced the function."""
    name = fn.__name__
    return name in _FUNCTIONS.get(module, ()) and getattr(sys.modules.get(module), name, None) is fn


def _prints_nothing(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return not any(isinstance(value, int) and value & re.DEBUG for value in (*args, *kwargs.values()))


_VETTED: dict[str, Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]] = {"re": _prints_nothing}


def call(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Return ``fn(*args, **kwargs)``, or MISSING if the call might have an effect. Raises the exceptions of ``fn``."""
    vet = _VETTED.get(fn.__globals__["__name__"])
    done = warned.computed(fn, args, kwargs) if vet is None or vet(fn, args, kwargs) else None
    return MISSING if done is None else done[0]
