"""Settings of the process: plain attributes, read at each translation and settable at any time.

>>> import godynamo
>>> godynamo.config.cache_size_limit
8
>>> with godynamo.config.patch(cache_size_limit=2):
...     godynamo.config.cache_size_limit
2

An unknown setting raises AttributeError, a value of another type TypeError.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._core import core

#: entries per callable and code object; further cases run in CPython
cache_size_limit: int
#: at the limit, drop the least recently used entry instead
cache_evict: bool
#: effects (prints, mutations) are replayed after the graph; False: they break the graph
queue_effects: bool
#: "used": guard only the tensor metadata that a translation has read; "full": all of it, as the seed does
tensor_guards: str
#: if a backend raises, log it and run the captured graph eagerly
suppress_errors: bool
#: compare the first call of a backend's result with eager; RuntimeError on a mismatch
verify_correctness: bool
#: guard the attributes of nn.Modules
guard_nn_modules: bool
#: a captured module call serves equal modules of the same frame; False: each one's code is translated
reuse_layers: bool
#: ``with optimize(...)`` raises RuntimeError
raise_on_ctx_manager_usage: bool
#: a forked child that misses loads a fresh copy of the translator; False: new cases run in CPython
fork_reload: bool
#: code objects that the hook may serve for one optimize() call
inner_limit: int
#: internal errors after which nothing more is translated in the process; 0: no limit, only their code is left alone
max_internal_errors: int
#: instructions that a translation may execute from one operation to the next, inlined ones included; 20 times as many
#: in total
max_translated_instructions: int
#: a second translation of a code object raises exc.RecompileError
error_on_recompile: bool
#: a case over cache_size_limit raises exc.FailOnRecompileLimitHit
fail_on_recompile_limit_hit: bool
#: depth of inlined calls
inline_depth_limit: int
#: optimize() has no effect while this is set; GODYNAMO_DISABLE=1 sets it from the start
disable: bool
#: ``.item()`` stays in the graph
capture_scalar_outputs: bool
#: int arguments are constants of the translation
specialize_int: bool
#: float arguments are constants of the translation
specialize_float: bool
#: sizes that change become symbols
dynamic_shapes: bool
#: tensor subclasses to capture although their metaclass is not torch's, or although torch defines them
traceable_tensor_subclasses: frozenset[type]
#: also transform frames without tensors; slower, for tests of whole programs (make cpython)
translate_everything: bool
#: calls of unknown Python go into the graph
python_ops: bool
#: directory for a trace of every translation (docs/trace.md), "" for none; GODYNAMO_TRACE sets it from the start
trace_dir: str
#: maximum size of a trace file in MiB; then the next one starts
trace_file_mib: int
#: trace files kept per process; the oldest is removed
trace_files: int


@dataclass(frozen=True)
class _Setting:
    default: Any
    core: str = ""  #: name in the core's settings
    choices: tuple[Any, ...] = ()
    minimum: int = 0
    fixed: bool = False  #: only the default is implemented; another value warns

    def check(self, name: str, value: Any) -> None:
        wanted = type(self.default)
        if wanted is bool or wanted is int or wanted is str:
            if type(value) is not wanted:
                raise TypeError(f"config.{name} must be of type {wanted.__name__}, not {value!r}")
        elif not isinstance(value, (set, frozenset, wanted)):
            raise TypeError(f"config.{name} must be of type {wanted.__name__}, not {value!r}")
        if self.choices and value not in self.choices:
            raise ValueError(f"config.{name} must be one of {', '.join(map(repr, self.choices))}, not {value!r}")
        if wanted is int and value < self.minimum:
            raise ValueError(f"config.{name} must be at least {self.minimum}, not {value!r}")


_SETTINGS: dict[str, _Setting] = {
    "cache_size_limit": _Setting(8, core="cache_size_limit"),
    "cache_evict": _Setting(False, core="cache_evict"),
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
    "capture_scalar_outputs": _Setting(False, fixed=True),
    "specialize_int": _Setting(True, fixed=True),
    "specialize_float": _Setting(True, fixed=True),
    "dynamic_shapes": _Setting(False, fixed=True),
    "traceable_tensor_subclasses": _Setting(frozenset()),
    "translate_everything": _Setting(False),
    "python_ops": _Setting(False),
    "trace_dir": _Setting(""),
    "trace_file_mib": _Setting(64, minimum=1),
    "trace_files": _Setting(8, minimum=1),
}


#: torch's other names of settings
_ALIASES = {"recompile_limit": "cache_size_limit"}


def _check_size_limit(value: Any, what: str) -> None:
    """Raise TypeError or ValueError unless ``value`` is a limit of entries: an int from 0 on."""
    if type(value) is not int:
        raise TypeError(f"{what} is an int, not {value!r}")
    if value < 0:
        raise ValueError(f"{what} must be at least 0, not {value!r}")


def _core_value(setting: _Setting, value: Any) -> int:
    if setting.core == "enabled":
        return int(not value)
    return min(int(value), _MOST) if setting.core == "cache_size_limit" else int(value)


_MOST = 2**31 - 1  #: the core counts entries in an int: a greater limit means none


def _unknown(name: str) -> AttributeError:
    near = difflib.get_close_matches(name, _SETTINGS, n=3)
    hint = f"; near it: {', '.join(near)}" if near else ""
    return AttributeError(f"godynamo.config has no setting {name!r}{hint}")


class _Config(types.ModuleType):
    """The type of this module: checks its settings."""

    def __getattr__(self, name: str) -> Any:
        if name in _ALIASES:
            return getattr(self, _ALIASES[name])
        raise _unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") and name.endswith("__"):
            super().__setattr__(name, value)  # the import system's own
            return
        name = _ALIASES.get(name, name)
        setting = _SETTINGS.get(name)
        if setting is None:
            raise _unknown(name)
        setting.check(name, value)
        if setting.fixed and value != setting.default:
            warnings.warn(f"config.{name}={value!r} has no effect yet", RuntimeWarning, stacklevel=2)
        if setting.core:
            core.set_config(**{setting.core: _core_value(setting, value)})
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"config.{name} cannot be deleted")


def _this() -> Any:
    return sys.modules[__name__]


class patch(contextlib.ContextDecorator):
    """Change settings in a ``with`` block or in calls of the decorated function.

    ``patch(cache_size_limit=2)``, ``patch("cache_size_limit", 2)`` or ``patch({"cache_size_limit": 2})``. Names and
    values are checked on entry; if one is rejected, none is changed.
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
    """Return all settings as bytes for :func:`load_config`, of this process or another."""
    import pickle

    return pickle.dumps(get_config())


def load_config(saved: bytes | Mapping[str, Any]) -> None:
    """Apply the result of :func:`save_config` or :func:`get_config`. Bytes are unpickled: load only those you trust.

    If one setting is rejected, none is changed: AttributeError for an unknown name (of a later version), TypeError
    and ValueError for a value or for other bytes.
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
    """Return the settings that differ from their defaults, as statements."""
    changed = [(name, value) for name, value in get_config().items() if value != _SETTINGS[name].default]
    return "\n".join(f"godynamo.config.{name} = {value!r}" for name, value in changed)


def reset_config() -> None:
    """Reset every setting to its default."""
    for name, setting in _SETTINGS.items():
        setattr(_this(), name, setting.default)


_this().__class__ = _Config
reset_config()
