"""Keeps what was decided by measurement, so that later builds decide the same.

Seconds differ from run to run, and what they decide might differ too. So the first build that
decides about a row keeps it in a file, named by the hash of all that decided: the row's programs
and tests, the code, the settings and the packages. Builds that are resumed, later ones, and those
on other machines that see the folder take it over.
"""

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.errors import DataError

VARIABLE = "MICROCODER_DECISIONS"
"""Environment variable: the folder that builds share, which several machines may see.

By default it is in the user's cache (~/.cache/microcoder/decisions).
"""
FOLDER = "decisions"
"""Name of the folder, in the user's cache and in a build's work folder."""
_UNASKED = frozenset(
    {
        "source_row",
        "url",
        "licence",
        "date",
        "platform",
        "tags",
        "platform_difficulty",
        "natural_language",
        "kit",
        "origins",
        "difficulty",
        "boilerplate",
        "pass_rates",
        "counts",
        "lineage",
        "merged",
    }
)
"""Fields of a row that decide nothing about how its programs end."""
TEXTS = frozenset({"id", "dataset", "title", "statement", "statement_found"})
"""Further fields that decide nothing where only tests and programs are run."""


class Decisions:
    """Decisions in folders, each in a file named by the hash of what decided it.

    A decision is found in the first folder that has it. It is kept in all of them, also once it is
    found, and the first that is kept stays.
    """

    def __init__(self, folders: Sequence[Path], *, version: str) -> None:
        """Use these folders.

        Args:
            folders: the first is looked into first.
            version: digest of the code and settings that decide, besides the rows.
        """
        self._folders = tuple(folders)
        self._version = version

    def name(self, candidate: Candidate, *, without: frozenset[str] = frozenset()) -> str:
        """Return the name of the decision about a row.

        Args:
            candidate: the row.
            without: fields that decide nothing here, besides those that never do.
        """
        dumped = candidate.model_dump(mode="json", exclude={*_UNASKED, *without})
        encoded = json.dumps([self._version, dumped], sort_keys=True).encode("ascii")
        return hashlib.sha256(encoded).hexdigest()

    def find(self, name: str) -> str | None:
        """Return the decision of this name, and copy it to the folders without it.

        A build that is resumed where the folder of the hit cannot be seen, such as on another
        node, then decides the same. None if there is no decision.
        """
        decided = self._read(name)
        if decided is not None:
            for folder in self._folders:
                path = _path_of(folder, name)
                if not path.exists():
                    _keep_first(path, decided)
        return decided

    def keep(self, name: str, decided: str) -> str:
        """Keep a decision, and return the one that stands: another build may have been first."""
        standing = self._read(name)
        if standing is not None:
            decided = standing
        for folder in self._folders:
            decided = _keep_first(_path_of(folder, name), decided)
        return decided

    def _read(self, name: str) -> str | None:
        for folder in self._folders:
            with suppress(FileNotFoundError):
                return _path_of(folder, name).read_text(encoding="utf-8")
        return None


def find_shared_folder() -> Path | None:
    """Return the folder of decisions that all builds of a user share.

    None if the user has no cache that can be written to.

    Raises:
        DataError: the folder that the environment names cannot be written to.
    """
    named = os.environ.get(VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(named).absolute() if named else Path(cache) / "microcoder" / FOLDER
    # A user id that the machine does not know, as in many containers, has no home.
    if not folder.is_absolute():
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(folder, os.W_OK)
    except OSError:
        is_usable = False
    if named and not is_usable:
        raise DataError(
            f"{VARIABLE}={named}: no folder that can be written to; name one, or unset it"
        )
    return folder if is_usable else None


def _path_of(folder: Path, name: str) -> Path:
    # Folders by two digits: a corpus has a hundred thousand rows.
    return folder / name[:2] / f"{name}.json"


def _keep_first(path: Path, text: str) -> str:
    """Write a file whole, unless it exists, and return what it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mark = f"{os.uname().nodename}.{os.getpid()}.{threading.get_ident()}"
    partial = path.with_name(f".{path.name}.{mark}.partial")
    partial.write_text(text, encoding="utf-8")
    try:
        # A rename would replace what another build has kept, and perhaps released.
        os.link(partial, path)
    except FileExistsError:
        return path.read_text(encoding="utf-8")
    except OSError:
        # A file system without links, such as some of containers: the last one stays.
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return text
