"""Notes that readers of the viewer write about rollouts, in `notes.jsonl` of a run's folder.

A change adds a line; the last line of a rollout counts, and an empty text takes its note away. The
folder travels with its notes, and a bundle shows them.
"""

import threading
from datetime import UTC, datetime
from pathlib import Path

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import append_row, read_rows
from microcoder.view.files import Row, stamp_of

FILE = "notes.jsonl"
"""Name of the file in a run's folder."""

LONGEST_NOTE = 10_000
"""Most characters of a note."""


class Notes:
    """The notes of one run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        # The server answers each request in a thread, and a file has one writer at a time.
        self._lock = threading.Lock()

    def read(self) -> dict[str, Row]:
        """Return by rollout its note: `text`, and when it was `written`."""
        notes: dict[str, Row] = {}
        for row in read_rows(self._path):
            name = str(row.get("rollout", ""))
            text = str(row.get("text", ""))
            notes.pop(name, None)
            if text:
                notes[name] = {"text": text, "written": str(row.get("written", ""))}
        return notes

    def write(self, rollout: str, text: str) -> None:
        """Set the note of a rollout; an empty text takes it away.

        Raises:
            DataError: the note is too long, or the file is a link to another place.
        """
        if len(text) > LONGEST_NOTE:
            raise DataError(
                f"the note has {len(text):,} characters; at most {LONGEST_NOTE:,} are kept"
            )
        # A folder from elsewhere must not choose what is written to.
        if self._path.is_symlink():
            raise DataError(f"{self._path} is a link; notes are written to a file of the folder")
        written = datetime.now(UTC).isoformat(timespec="seconds")
        with self._lock:
            append_row(self._path, {"rollout": rollout, "text": text, "written": written})

    def stamp(self) -> str:
        """Return a text that changes when a note does."""
        return str(stamp_of(self._path)[0])
