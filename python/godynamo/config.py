"""Settings of the process: plain attributes, read at each translation and settable at any time.

>>> import godynamo
>>> godynamo.config.cache_size_limit
8
>>> with godynamo.config.patch(cache_size_limit=2):
...     godynamo.config.cache_size_limit
2

Setting an unknown name raises AttributeError; a value of a wrong type raises TypeError.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._core import core

#: maximum number of entries per callable and code object; further cases run in CPython
cache_size_limit: int
#: True: a new entry beyond cache_size_limit replaces the least recently used entry
cache_evict: bool
#: size in MiB of the process's translations beyond which those with the fewest calls are dropped; 0: no bound. What a
#: backend has compiled is not counted.
memory_mib: int
#: True: effects (prints, mutations) are replayed after the graph; False: they break the graph
queue_effects: bool
#: "used": guard only the tensor metadata that a translation has read; "full": guard all metadata, read or not
tensor_guards: str
#: True: if a backend raises, log the exception and run the captured graph eagerly
suppress_errors: bool
#: True: compare the first call of a compiled graph with the captured graph; raise RuntimeError if results differ
verify_correctness: bool
#: True: guard the attributes of nn.Modules
guard_nn_modules: bool
#: True: a captured module call is reused for equal modules in the frame; False: the code of each module is translated
reuse_layers: bool
#: True: ``with optimize(...)`` raises RuntimeError
raise_on_ctx_manager_usage: bool
#: True: a forked child loads a new copy of the translator at its first miss; False: its new cases run in CPython
fork_reload: bool
#: maximum number of code objects that the hook serves for one optimize() call
inner_limit: int
#: number of internal errors after which nothing more is translated in the process; 0: no limit. Code in which an
#: internal error has occurred always runs in CPython.
max_internal_errors: int
#: maximum number of instructions that a translation executes from one operation to the next, including inlined
#: functions; the maximum for the whole translation is 20 times as high
max_translated_instructions: int
#: True: a second translation of a code object raises exc.RecompileError
error_on_recompile: bool
#: True: a new case beyond cache_size_limit raises exc.FailOnRecompileLimitHit
fail_on_recompile_limit_hit: bool
#: maximum depth of inlined calls
inline_depth_limit: int
#: optimize() has no effect while this is set; GODYNAMO_DISABLE=1 sets it from the start
disable: bool
#: True: ``.item()`` and ``.tolist()`` stay in the graph
capture_scalar_outputs: bool
#: True: ints are constants of the translation, even if they change
specialize_int: bool
#: True: floats are constants of the translation, even if they change
specialize_float: bool
#: True: sizes are symbols; False: sizes, ints and floats are constants of the translation
dynamic_shapes: bool
#: sources whose sizes and ints are symbols from the first call on, also with dynamic=False: a comma list of names such
#: as ``L['x']`` or regular expressions, each with an optional dimension, ``L['x']:0``
dynamic_sources: str
#: sources whose sizes and ints are known at run time only: a branch on one breaks the graph
unbacked_sources: str
#: sources whose sizes and ints are constants; they win over the lists above
static_sources: str
#: comma list of ints: a size or int with such a value is a symbol from the first call on
dynamic_values: str
#: False: ints and floats among the arguments are symbols from the first call on, as with dynamic=True
assume_static_by_default: bool
#: False: only sizes and ints that are marked or listed are symbols
automatic_dynamic_shapes: bool
#: False: sizes of parameters may be symbols
force_parameter_static_shapes: bool
#: False: sizes of the tensors of modules may be symbols
force_nn_module_property_static_shapes: bool
#: True: a program may make a size a constant that mark_dynamic has marked
allow_ignore_mark_dynamic: bool
#: additional tensor subclasses to capture: classes with another metaclass than torch's, or classes that torch defines
traceable_tensor_subclasses: frozenset[type]
#: True: also transform frames without tensors. This is slower, and is for tests of whole programs (`make cpython`).
translate_everything: bool
#: True: Python calls that cannot be captured become nodes of the graph
python_ops: bool
#: directory for a trace of every translation (docs/trace.md), "" for none; GODYNAMO_TRACE sets it from the start
trace_dir: str
#: folder for translations that other processes load (docs/cache.md), "" for none. From the start it is what
#: GODYNAMO_CACHE_DIR names ("0" or nothing for none); without the variable godynamo/translations in $XDG_CACHE_HOME or
#: ~/.cache.
cache_dir: str
#: size in MiB beyond which the least recently used files of cache_dir are removed
cache_mib: int
#: a function that the hook has found (one that was not passed to optimize()) is stored in cache_dir if its translation
#: took at least this many ms
cache_min_ms: int
#: True: inductor compiles in another process, and a graph runs as captured until it is compiled
compile_aside: bool
#: size in MiB at which a trace file is closed and the next one is started
trace_file_mib: int
#: maximum number of trace files per process; beyond it, the oldest is removed
trace_files: int


@dataclass(frozen=True)
class _Setting:
    default: Any
    core: str = ""  #: name among the core's settings, "" if the core does not use the setting
    choices: tuple[Any, ...] = ()
    minimum: int = 0
    ints: bool = False  #: the text is a comma list of ints

    def check(self, name: str, value: Any) -> None:
        wanted = type(self.default)
        if wanted is bool or wanted is int or wanted is str:
            if type(value) is not wanted:
                raise TypeError(f"config.{name} must be of type {wanted.__name__}, not {value!r}")
        elif not isinstance(value, (set, frozenset, wanted)):
            raise TypeError(f"config.{name} must be of type {wanted.__name__}, not {value!r}")
        if self.choices and value not in self.choices:
            raise ValueError(f"config.{name} must be one of {', '.join(map(repr, self.choices))}, not {value!r}")
        if self.ints and not re.fullmatch(r"(\s*-?\d+\s*(,|$))*", value):
            raise ValueError(f"config.{name} must be a comma list of ints, not {value!r}")
        if wanted is int and value < self.minimum:
            raise ValueError(f"config.{name} must be at least {self.minimum}, not {value!r}")


def _translations() -> str:
    """Return the value of cache_dir at the start. The command line tool finds the same folder (internal/cli)."""
    named = os.environ.get("GODYNAMO_CACHE_DIR")
    if named is not None:
        return "" if named in ("", "0") else os.path.abspath(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path is ignored
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return ""
        base = os.path.join(home, ".cache")
    return os.path.join(base, "godynamo", "translations")


_SETTINGS: dict[str, _Setting] = {
    "cache_size_limit": _Setting(8, core="cache_size_limit"),
    "cache_evict": _Setting(False, core="cache_evict"),
    "memory_mib": _Setting(0, core="memory_mib"),
    "queue_effects": _Setting(True),
    "tensor_guards": _Setting("used", choices=("used", "full")),
    "suppress_errors": _Setting(False),
    "verify_correctness": _Setting(False),
    "guard_nn_modules": _Setting(True),
    "reuse_layers": _Setting(True),
    "raise_on_ctx_manager_usage": _Setting(False),
    "fork_reload": _Setting(True, core="fork_reload"),
    "inner_limit": _Setting(4096, core="inner_limit"),
    "max_internal_errors": _Setting(0, core="max_internal_errors"),
    "max_translated_instructions": _Setting(200_000, minimum=1),
    "inline_depth_limit": _Setting(100),
    "error_on_recompile": _Setting(False, core="error_on_recompile"),
    "fail_on_recompile_limit_hit": _Setting(False, core="fail_on_recompile_limit_hit"),
    "disable": _Setting(False, core="enabled"),
    "capture_scalar_outputs": _Setting(True),
    "specialize_int": _Setting(False),
    "specialize_float": _Setting(False),
    "dynamic_shapes": _Setting(True),
    "dynamic_sources": _Setting(""),
    "unbacked_sources": _Setting(""),
    "static_sources": _Setting(""),
    "dynamic_values": _Setting("", ints=True),
    "assume_static_by_default": _Setting(True),
    "automatic_dynamic_shapes": _Setting(True),
    "force_parameter_static_shapes": _Setting(True),
    "force_nn_module_property_static_shapes": _Setting(True),
    "allow_ignore_mark_dynamic": _Setting(False),
    "traceable_tensor_subclasses": _Setting(frozenset()),
    "translate_everything": _Setting(False),
    "python_ops": _Setting(False),
    "cache_dir": _Setting(_translations()),
    "cache_mib": _Setting(1024, minimum=1),
    "cache_min_ms": _Setting(2),
    "compile_aside": _Setting(False),
    "trace_dir": _Setting(""),
    "trace_file_mib": _Setting(64, minimum=1),
    "trace_files": _Setting(8, minimum=1),
}


#: torch's other name of a setting -> its name here
_ALIASES = {"recompile_limit": "cache_size_limit"}


def _check_size_limit(value: Any, what: str) -> None:
    """Raise TypeError if ``value`` is not an int, and ValueError if it is negative."""
    if type(value) is not int:
        raise TypeError(f"{what} is an int, not {value!r}")
    if value < 0:
        raise ValueError(f"{what} must be at least 0, not {value!r}")


def _core_value(setting: _Setting, value: Any) -> int:
    if setting.core == "enabled":
        return int(not value)
    return min(int(value), _MOST) if setting.core == "cache_size_limit" else int(value)


_MOST = 2**31 - 1  #: greater limits of entries become this one, since the core stores the limit in an int


def _unknown(name: str) -> AttributeError:
    from ._user.not_built import NOT_BUILT

    if f"config.{name}" in NOT_BUILT:
        return AttributeError(f"godynamo.config has no setting {name!r}: {NOT_BUILT[f'config.{name}']}")
    near = difflib.get_close_matches(name, _SETTINGS, n=3)
    hint = f"; near it: {', '.join(near)}" if near else ""
    return AttributeError(f"godynamo.config has no setting {name!r}{hint}")


class _Config(types.ModuleType):
    """The type of this module. It checks settings when they are assigned."""

    def __getattr__(self, name: str) -> Any:
        if name in _ALIASES:
            return getattr(self, _ALIASES[name])
        raise _unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") and name.endswith("__"):
            super().__setattr__(name, value)  # an attribute that the import system sets
            return
        name = _ALIASES.get(name, name)
        setting = _SETTINGS.get(name)
        if setting is None:
            raise _unknown(name)
        setting.check(name, value)
        if setting.core:
            core.set_config(**{setting.core: _core_value(setting, value)})
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"config.{name} cannot be deleted")


def _this() -> Any:
    return sys.modules[__name__]


class patch(contextlib.ContextDecorator):
    """Change settings for a ``with`` block or for calls of the decorated function.

    Forms: ``patch(cache_size_limit=2)``, ``patch("cache_size_limit", 2)`` and ``patch({"cache_size_limit": 2})``. Names
    and values are checked on entry; if one is rejected, no setting is changed.
    """

    def __init__(self, names: str | Mapping[str, Any] | None = None, value: Any = None, /, **settings: Any) -> None:
        changes = dict(names) if isinstance(names, Mapping) else {names: value} if names is not None else {}
        self._changes: dict[str, Any] = {_ALIASES.get(k, k): v for k, v in {**changes, **settings}.items()}
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> patch:
        before = {name: getattr(_this(), name) for name in self._changes}
        for name, value in self._changes.items():
            _SETTINGS[name].check(name, value)
        for name, value in self._changes.items():
            setattr(_this(), name, value)
        self._before.append(before)
        return self

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.pop().items():
            setattr(_this(), name, value)


def get_config() -> dict[str, Any]:
    """Return all settings with their current values."""
    return {name: getattr(_this(), name) for name in _SETTINGS}


get_config_copy = get_config


def save_config() -> bytes:
    """Return all settings as bytes for :func:`load_config`, in this process or another one."""
    import pickle

    return pickle.dumps(get_config())


def load_config(saved: bytes | Mapping[str, Any]) -> None:
    """Apply the result of :func:`save_config` or :func:`get_config`. Bytes are unpickled, so they must be trusted.

    Raises AttributeError for an unknown name (from a later version), and TypeError or ValueError for a wrong value or
    for other bytes. If one setting is rejected, no setting is changed.
    """
    import pickle

    settings = saved
    if isinstance(saved, bytes):
        try:
            settings = pickle.loads(saved)
        except Exception as e:
            raise ValueError(f"load_config() needs the result of save_config(), not these bytes: {e}") from e
    if not isinstance(settings, Mapping):
        raise TypeError(f"load_config() needs the result of save_config(), not {saved!r}")
    patch(settings).__enter__()


def codegen_config() -> str:
    """Return the settings that differ from their defaults, as Python statements."""
    changed = [(name, value) for name, value in get_config().items() if value != _SETTINGS[name].default]
    return "\n".join(f"godynamo.config.{name} = {value!r}" for name, value in changed)


def reset_config() -> None:
    """Reset every setting to its default."""
    for name, setting in _SETTINGS.items():
        setattr(_this(), name, setting.default)


_this().__class__ = _Config
reset_config()
