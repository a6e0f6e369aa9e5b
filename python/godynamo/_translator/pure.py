"""Lists Python functions of the standard library that have no effect and whose result depends only on their arguments.

The translator calls them while translating, if their arguments are plain constants. It does not make calls that may
print or warn, such as those with unusual regular expressions; the program makes these calls itself.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from typing import Any

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


# Finds patterns that may warn: future set operations and nested sets (FutureWarning), and conditions on groups
# (DeprecationWarning for some names of groups).
_ODD = re.compile(r"--|&&|~~|\|\||\(\?\(|\[[^\]]*\[")


def _plain_pattern(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and value & (re.DEBUG | re.TEMPLATE):
            return False
    if fn.__name__ == "escape":
        return True
    pattern = args[0] if args else kwargs.get("pattern")
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
    if isinstance(pattern, str) and (_ODD.search(pattern) or ("(?P" in pattern and not pattern.isascii())):
        return False
    template = kwargs.get("repl", args[1] if len(args) > 1 else "") if fn.__name__ in ("sub", "subn") else ""
    return isinstance(template, (str, bytes)) and "\\g<" not in str(template)


_VETTED: dict[str, Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]] = {"re": _plain_pattern}


def call(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Return ``fn(*args, **kwargs)``, or MISSING if the call might have an effect. Raises the exceptions of ``fn``."""
    vet = _VETTED.get(fn.__globals__["__name__"])
    return fn(*args, **kwargs) if vet is None or vet(fn, args, kwargs) else MISSING
