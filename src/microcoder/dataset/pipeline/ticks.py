"""How far a worker is inside a shard: a small file beside the part that it makes, on one machine and on many."""

from __future__ import annotations

import time
from pathlib import Path

_SECONDS_BETWEEN = 1.0
_SUFFIX = ".rows"


class Ticker:
    """Tells how many of a shard's rows a step has done; what cannot be written is not told."""

    def __init__(self, path: Path, num_rows: int) -> None:
        self._tick = path.with_name(f".{path.name}{_SUFFIX}")
        self._num_rows = num_rows
        self._last = time.monotonic()

    def tell(self, done: int) -> None:
        """Say it, once a second."""
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN and self._num_rows:
            self._last = now
            self._tick.parent.mkdir(parents=True, exist_ok=True)
            self._tick.write_text(f"{done / self._num_rows:.4f}")

    def end(self) -> None:
        """Take the file away: the part is whole."""
        self._tick.unlink(missing_ok=True)


def read_ticks(folder: Path) -> dict[str, float]:
    """Return, by the name of a part that is being made, the share of its rows that is done."""
    shares = {}
    for tick in folder.glob(f".*{_SUFFIX}"):
        try:
            shares[tick.name[1 : -len(_SUFFIX)]] = float(tick.read_text())
        except (OSError, ValueError):
            continue  # taken away, or half written
    return shares
