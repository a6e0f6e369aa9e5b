"""With this import, annotations of a module are stored in a dict also in 3.14."""

from __future__ import annotations

count: int
