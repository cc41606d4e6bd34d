"""Sources: a file, a folder or a `hf://` name as numbered raw rows, in a fixed order.

    open_source -> list_shards -> read_shard -> RawRow, RawRow, ...

Shards have a fixed size. One is opened again without reading what stands before it: a byte offset
in JSON lines, a row group in parquet, a list of folders. Only in a compressed file everything
before it is unpacked again, so keep those small.

The collect stage (`collect_shard`) reads raw rows into candidates; a row that cannot become one is
rejected.
"""

import base64
import fnmatch
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from microcoder.data import rowfiles
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.columns import with_columns
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.row import Malformed
from microcoder.data.formats.rows import load_format
from microcoder.data.formats.values import shorten
from microcoder.data.rowfiles import SUFFIXES, FilePart, RawRow
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.machine import how_to_install

SCHEME = "hf://"
"""Beginning of the names of data sets on the Hub."""
MARKER = "manifest.json"
"""Name of the file that a build writes last into a corpus: a folder without it is unfinished."""
_NAME = re.compile(
    r"hf://datasets/(?P<repository>[\w.-]+/[\w.-]+)"
    r"(?:@(?P<revision>[\w.%-]+))?(?:/(?P<path>[^@]+))?"
)
_USE = (
    "write hf://datasets/owner/name[@revision]/config/split, "
    "or a path in it instead of config/split"
)
"""What to type, for messages."""
_MOST_PATTERNS = 4
"""Patterns that a message shows."""


@dataclass(frozen=True, slots=True)
class HubName:
    """A `hf://` name: a data set on the Hugging Face Hub, or a part of it."""

    repository: str
    revision: str | None
    path: str
    """`config/split`, or a folder or file as the repository has it; empty for everything."""

    @property
    def patterns(self) -> list[str]:
        """File patterns of the part, as the Hub matches them.

        They match the path itself, files below it, and files whose names begin with it.
        """
        if not self.path:
            return [f"*{suffix}" for suffix in SUFFIXES]
        config, _, split = self.path.rpartition("/")
        patterns = [self.path, f"{self.path}/*", f"{self.path}-*", f"{self.path}.*"]
        if config == "default":
            # A config of that name is the Hub's, and no folder.
            patterns += [f"data/{split}-*", f"data/{split}.*", f"{split}-*", f"{split}.*"]
        return patterns


def parse_name(name: str) -> HubName:
    """Return the parts of a `hf://` name; DataError if it is malformed."""
    match = _NAME.fullmatch(name.rstrip("/"))
    if match is None:
        raise DataError(f"{name!r} is not the name of a data set on the Hub; {_USE}")
    revision = match["revision"]
    if revision is not None:
        # A branch may have slashes in its name.
        revision = revision.replace("%2F", "/")
    return HubName(match["repository"], revision, match["path"] or "")


def download(name: str) -> Path:
    """Return the local folder of a `hf://` name's files, downloaded if not cached.

    It is named by the commit.
    """
    wanted = parse_name(name)
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        raise DataError(f"{name} needs huggingface_hub; type: {how_to_install('data')}") from None
    try:
        folder = snapshot_download(
            wanted.repository,
            repo_type="dataset",
            revision=wanted.revision,
            allow_patterns=wanted.patterns,
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"{name} cannot be downloaded ({reason}); "
            f"check the network and HF_HUB_OFFLINE, or {_USE}"
        ) from None
    return Path(folder)


def find_part(
    folder: Path,
    wanted: HubName,
    *,
    where: str,
    hint: str,
) -> tuple[str, ...]:
    """Return the files in a folder that match a Hub name, sorted.

    Args:
        where: names the folder in the message.
        hint: what to do, for the message.

    Raises:
        DataError: no file matches.
    """
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files = match_files(paths, wanted)
    if not files:
        patterns = " or ".join(wanted.patterns[:_MOST_PATTERNS])
        raise DataError(f"{where} has no file like {patterns}; {hint}")
    return tuple(files)


def match_files(files: Sequence[str], wanted: HubName) -> list[str]:
    """Return the repository files that match a Hub name, sorted."""
    matching = []
    for file in sorted(files):
        if not file.endswith(SUFFIXES):
            continue
        if any(fnmatch.fnmatchcase(file, pattern) for pattern in wanted.patterns):
            matching.append(file)
    return matching


MAX_FOLDER_BYTES = 1 << 30
"""A folder that holds more than this is rejected."""
LICENCES = {
    "codeparrot/apps": "MIT",
    "BAAI/TACO": "Apache-2.0",
    "likaixin/TACO-verified": "Apache-2.0",
    "agentica-org/DeepCoder-Preview-Dataset": "MIT",
    "PRIME-RL/Eurus-2-RL-Data": "MIT",
    "deepmind/code_contests": "CC-BY-4.0",
    "open-r1/codeforces": "CC-BY-4.0",
    "microsoft/rStar-Coder": "CC-BY-4.0",
    "KodCode/KodCode-V1": "CC-BY-NC-4.0",
}
"""Data sets on the Hub, and the licence that each states for all of its rows.

A format by itself implies none.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A set of files or folders with rows of one format, as `open_source` finds them."""

    path: Path
    """The folder that `files` are in."""
    format: Format
    name: str
    """Prefix of the rows' ids; each source of a pipeline needs its own."""
    files: tuple[str, ...] = ()
    """The files with rows, or the folders that are rows, sorted, relative to `path`."""
    revision: str = ""
    """The commit on the Hugging Face Hub; empty for local files."""
    licence: str = ""
    """Licence of rows that state none."""


Shard = tuple[FilePart, ...]
"""Successive rows of a source, from parts of one file or several; the unit of work of a build."""


def open_source(
    path: str | Path,
    format_name: str,
    *,
    name: str = "",
    licence: str = "",
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Source:
    """Return a source, downloaded if it is on the Hub.

    Args:
        path: a file, a folder, or `hf://datasets/owner/name[@revision]/config/split`.
        format_name: a key of `FORMATS`, or a reference to a reader of the user's own.
        name: prefix of its rows' ids; by default the format's name.
        licence: of rows that state none; by default that of `LICENCES`, for a data set on the Hub.
        columns: field of a problem -> the column that holds it, where rows have names of their own.

    Raises:
        DataError: it is missing, or has no file of the format's kind.
    """
    format = with_columns(load_format(format_name), columns)
    name = name or format.name
    # Ids are `name/place`: the name ends at the first slash.
    if "/" in name:
        raise DataError(f"source name {name!r} has a slash; use letters, digits, - and _")
    if str(path).startswith(SCHEME):
        folder = download(str(path))
        wanted = parse_name(str(path))
        files = find_part(folder, wanted, where=f"{path}: the repository", hint=_USE)
        licence = licence or LICENCES.get(wanted.repository, "")
        return Source(folder, format, name, files, folder.name, licence)
    # Not resolved: rows are named by the path that was given, also where it is a link.
    root = Path(os.path.abspath(path))
    if not root.exists():
        raise DataError(f"source {path} does not exist; check the path")
    files = tuple(list_places(root, format))
    if not files:
        expected = format.folders.markers if format.folders else SUFFIXES
        raise DataError(
            f"source {path} holds nothing of format {format_name}; it needs {', '.join(expected)}"
        )
    if "." in files:
        # A file, or a folder that is a row itself: it has its own name.
        files = tuple(os.path.normpath(f"{root.name}/{file}") for file in files)
        root = root.parent
    return Source(root, format, name, files, licence=licence)


def list_shards(
    source: Source,
    rows_per_shard: int,
    bytes_per_shard: int | None = None,
) -> list[Shard]:
    """Return the shards of a source, the same in every run; every raw row is in exactly one.

    A shard has at most `rows_per_shard` rows. It has fewer if a file ends, or if it reaches about
    `bytes_per_shard`.
    """
    shards: list[Shard] = []
    parts: list[FilePart] = []
    num_rows = 0
    num_bytes = 0
    most_bytes = math.inf if bytes_per_shard is None else bytes_per_shard
    for part in _list_parts(source, rows_per_shard, bytes_per_shard):
        num_rows += part.num_rows
        num_bytes += part.num_bytes
        # A part is not cut here, so one that is too large is a shard alone.
        if parts and (num_rows > rows_per_shard or num_bytes > most_bytes):
            shards.append(tuple(parts))
            parts = []
            num_rows = part.num_rows
            num_bytes = part.num_bytes
        parts.append(part)
    if parts:
        shards.append(tuple(parts))
    return shards


def read_shard(source: Source, shard: Shard) -> Iterator[RawRow]:
    """Yield the raw rows of a shard; a row that cannot be read has a `fault`."""
    for part in shard:
        if source.format.folders is not None:
            yield _read_folder(source.path, part.file, source.format.folders)
        else:
            yield from rowfiles.read_part(source.path, part)


def list_files(source: Source, shard: Shard) -> list[Path]:
    """Return the paths of the files that a shard is read from, in order."""
    folders = source.format.folders
    if folders is None:
        # A shard may have several parts of one file.
        return sorted({source.path / part.file for part in shard})
    files = []
    for part in shard:
        folder = source.path / part.file
        files += [folder / name for name in _list_taken(folder, folders)]
    return files


def _list_parts(
    source: Source,
    rows_per_shard: int,
    bytes_per_shard: int | None,
) -> Iterator[FilePart]:
    """Yield the parts of a source's files; if its rows are folders, one part for each folder."""
    for place in source.files:
        if source.format.folders is not None:
            files = list_files(source, (FilePart(place, 0, 1),))
            num_bytes = sum(path.stat().st_size for path in files)
            yield FilePart(place, 0, 1, num_bytes=num_bytes)
        else:
            yield from rowfiles.list_parts(source.path, place, rows_per_shard, bytes_per_shard)


def list_places(root: Path, format: Format) -> list[str]:
    """Return the files with rows of a format, or the folders that are rows, sorted.

    `.` stands for the root itself.
    """
    folders = format.folders
    if root.is_file():
        has_rows = folders is None and root.name.endswith(SUFFIXES)
        return ["."] if has_rows else []
    if folders is None:
        return sorted(_walk(root, lambda path: path.endswith(SUFFIXES)))
    rows = set()
    for marker in _walk(root, lambda path: path.rpartition("/")[2] in folders.markers):
        folder = marker.rpartition("/")[0] or "."
        if set(folders.skips).isdisjoint(folder.split("/")):
            rows.add(folder)
    return sorted(rows)


def _list_taken(folder: Path, folders: Folders) -> list[str]:
    """Return the paths of the files in a folder that its format reads, sorted."""
    return sorted(_walk(folder, partial(_is_taken, patterns=folders.takes)))


def _walk(folder: Path, takes: Callable[[str], bool]) -> Iterator[str]:
    """Yield the relative paths below a folder of the files that `takes` accepts.

    Links that lead out are skipped.
    """
    home = folder.resolve()
    for parent, _, names in os.walk(folder, onerror=_refuse):
        inside = Path(parent).relative_to(folder).as_posix()
        for name in names:
            path = name if inside == "." else f"{inside}/{name}"
            # `._` begins what macOS writes beside each file.
            if name.startswith("._") or not takes(path):
                continue
            file = folder / path
            if not file.is_file():
                continue
            if not file.is_symlink() or file.resolve().is_relative_to(home):
                yield path


def _refuse(error: OSError) -> NoReturn:
    raise DataError(
        f"{error.filename} cannot be read ({error.strerror}); give it leave, or move it away"
    ) from None


def _read_folder(root: Path, place: str, folders: Folders) -> RawRow:
    """Return a folder that is a row, with the files in it."""
    folder = root / place
    files: dict[str, bytes] = {}
    size = 0
    try:
        for name in _list_taken(folder, folders):
            # Before it is read, since a folder may hold more than memory.
            size += (folder / name).stat().st_size
            if size > MAX_FOLDER_BYTES:
                detail = f"more than {MAX_FOLDER_BYTES >> 20} MiB of files"
                return RawRow(place, None, b"", ("unreadable_file", detail))
            files[name] = (folder / name).read_bytes()
    except OSError as error:
        detail = f"{type(error).__name__}: {error.strerror}"
        return RawRow(place, None, b"", ("unreadable_file", detail))
    return RawRow(place, {"name": folder.name, "files": files})


def _is_taken(name: str, patterns: Iterable[str]) -> bool:
    """Whether a path matches a pattern.

    `data/**` matches all below `data`, other patterns only paths of their own depth.
    """
    for pattern in patterns:
        if pattern.endswith("/**"):
            if name.startswith(pattern.removesuffix("**")):
                return True
        # A star of `fnmatch` goes over slashes, so the depths are compared, too.
        elif name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern):
            return True
    return False


WHOLE = 1 << 20
"""Rows per shard where a source is read in one go: more than a file has."""


def collect_source(source: Source) -> Iterator[Candidate | Rejection]:
    """Yield the candidate or the rejection of each raw row of a source, in order."""
    for shard in list_shards(source, WHOLE):
        for row in read_shard(source, shard):
            yield collect_row(source, row)


def collect_shard(source: Source, shard: Shard) -> list[Candidate | Rejection]:
    """Return the candidate or the rejection of each raw row of a shard, in order.

    Nothing of it is executed.
    """
    return [collect_row(source, row) for row in read_shard(source, shard)]


def collect_row(source: Source, row: RawRow) -> Candidate | Rejection:
    """Return the candidate of a raw row, or a rejection with the reason."""
    fault = row.fault
    candidate = None
    if row.values is not None:
        try:
            return source.format.read_row(
                row.values,
                row.place,
                source=source.name,
                licence=source.licence,
            )
        except Malformed as error:
            fault = (error.reason, error.detail)
            candidate = error.candidate
        except ConfigError as error:
            # What is wrong with a reader of the user's own is no bug of ours.
            fault = ("reader_fault", str(error))
        except Exception as error:  # One row in a million must not end a run.
            fault = ("adapter_fault", f"{type(error).__name__}: {error}")
    reason, detail = fault or ("unreadable_file", "")
    place = shorten(row.place, 1000)
    return Rejection(
        id=f"{source.name}/{place}",
        dataset=source.format.name,
        source_row=place,
        stage="collect",
        reason=reason,
        detail=shorten(detail, 300),
        raw=_show_raw(row),
        candidate=candidate,
    )


def _show_raw(row: RawRow) -> str:
    """Return a row as it was found: its text, or its fields as JSON where the file has no text."""
    if row.raw or row.values is None:
        return _as_text(row.raw)
    try:
        return json.dumps(row.values, default=_as_text)
    except (ValueError, TypeError, RecursionError):
        return repr(row.values)


def _as_text(value: object) -> str:
    """Return a value that JSON cannot hold as text: bytes as UTF-8 or base64, others by `str`."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode('ascii')}"
