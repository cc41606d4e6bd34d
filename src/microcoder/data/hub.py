"""Data sets on the Hugging Face Hub: `hf://datasets/owner/name[@revision]/config/split`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from microcoder.data.rowfiles import SUFFIXES
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.installation import how_to_install

SCHEME = "hf://"
MARKER = "manifest.json"
"""Written last into a corpus: a folder without it is not finished."""
_NAME = re.compile(r"hf://datasets/(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.%-]+))?(?:/(?P<path>[^@]+))?")
_USE = "write hf://datasets/owner/name[@revision]/config/split, or a path in it instead of config/split"


@dataclass(frozen=True, slots=True)
class HubName:
    """A part of a data set."""

    repository: str
    revision: str | None
    path: str
    """`config/split`, or a folder or file as the repository has it; empty for everything."""

    @property
    def patterns(self) -> list[str]:
        """The files that are meant, as the Hub matches them: the path itself, below it, or beginning with it."""
        if not self.path:
            return [f"*{suffix}" for suffix in SUFFIXES]
        config, _, split = self.path.rpartition("/")
        begins = [f"{self.path}-*", f"{self.path}.*"]
        if config == "default":
            begins += [f"data/{split}-*", f"data/{split}.*", f"{split}-*", f"{split}.*"]
        return [self.path, f"{self.path}/*", *begins]


def parse_name(name: str) -> HubName:
    """Read a `hf://` name."""
    found = _NAME.fullmatch(name.rstrip("/"))
    if found is None:
        raise DataError(f"{name!r} is no name of a data set on the Hub; {_USE}")
    revision = found["revision"]
    return HubName(found["repository"], revision.replace("%2F", "/") if revision else None, found["path"] or "")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files of a data set on this machine."""

    folder: Path
    files: tuple[str, ...]
    """Those that are meant; the folder may hold more."""
    revision: str
    """The commit."""


def download(name: str) -> Snapshot:
    """Download what a name means, or find it in the cache."""
    wanted = parse_name(name)
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise DataError(f"{name} needs huggingface_hub; type: {how_to_install('data')}") from None
    try:
        folder = snapshot_download(
            wanted.repository, repo_type="dataset", revision=wanted.revision, allow_patterns=wanted.patterns
        )
    except LocalEntryNotFoundError:
        raise DataError(
            f"{name} is not in the cache and the Hub cannot be reached; check the network and HF_HUB_OFFLINE, or "
            "download the files by hand and name their folder"
        ) from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        said = str(error).strip().split("\n")[0]
        raise DataError(f"{name} cannot be downloaded ({said}); {_USE}") from None
    root = Path(folder)
    found = _list_files(root, wanted)
    if not found:
        raise DataError(f"{name}: the repository has no file like {' or '.join(wanted.patterns[:4])}; {_USE}")
    return Snapshot(root, tuple(found), root.name)


def find_part(folder: Path, part: str) -> Snapshot:
    """Find a part of a data set whose files were downloaded to a folder by hand."""
    wanted = HubName(str(folder), None, part)
    try:
        found = _list_files(folder, wanted)
    except ImportError:
        raise DataError(f"{folder} needs huggingface_hub; type: {how_to_install('data')}") from None
    if not found:
        raise DataError(f"folder {folder} has no file like {' or '.join(wanted.patterns[:4])}; check subset and split")
    return Snapshot(folder, tuple(found), "")


def _list_files(root: Path, wanted: HubName) -> list[str]:
    return match_files([path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()], wanted)


def match_files(files: Sequence[str], wanted: HubName) -> list[str]:
    """Return those of a repository's files that a name means, in order."""
    from huggingface_hub.utils import filter_repo_objects

    return sorted(f for f in filter_repo_objects(files, allow_patterns=wanted.patterns) if f.endswith(SUFFIXES))
