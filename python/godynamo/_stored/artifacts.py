"""Takes the translations of a process to other machines as bytes: save_cache_artifacts, load_cache_artifacts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from .. import _C, config


class CacheInfo(NamedTuple):
    """What an archive has."""

    translations: int


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """Return the stored translations that this process has made or loaded, or None if there are none.

    They are read from config.cache_dir. Raises ValueError if the folder is not the user's own.

    >>> data, info = godynamo.save_cache_artifacts()
    """
    if not config.cache_dir:
        return None
    with tempfile.NamedTemporaryFile(prefix="godynamo-") as file:
        count = _C.archive(config.cache_dir, _limit(), file.name, False)
        return (Path(file.name).read_bytes(), CacheInfo(count)) if count else None


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Store the translations of save_cache_artifacts() in config.cache_dir. Return their number, or None if none.

    Bytes are trusted as code is: load what you would run. Raises ValueError if there is no folder, or if the bytes are
    damaged; the translations before the damage are stored.
    """
    if not config.cache_dir:
        raise ValueError("godynamo: load_cache_artifacts() needs a folder: set config.cache_dir or GODYNAMO_CACHE_DIR")
    with tempfile.NamedTemporaryFile(prefix="godynamo-") as file:
        file.write(serialized_artifacts)
        file.flush()
        count = _C.archive(config.cache_dir, _limit(), file.name, True)
    return CacheInfo(count) if count else None


def _limit() -> int:
    return int(config.cache_mib) << 20
