"""The input of a build as numbered shards, the same in every run, with digests of their content."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from microcoder.data.corpus.settings import SourceSettings
from microcoder.data.filter.keys import LONGEST_EXAMPLE
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.columns import parse_columns
from microcoder.data.formats.rows import find_source, load_format
from microcoder.data.pipeline.steps import InputShard, digest
from microcoder.data.rowfiles import is_archive, unpack
from microcoder.data.sources import (
    Shard,
    Source,
    collect_source,
    list_files,
    list_places,
    list_shards,
    open_source,
)
from microcoder.judge.core.errors import DataError

_ENDING = re.compile(r"(?i)(?:\.tar)?\.\w+$")
"""The ending of an archive's name."""


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, cached until its size or time changes.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        stat = path.stat()
        return _digest_content(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the path") from None


@cache
def _digest_content(
    path: Path,
    size: int,
    changed: int,
) -> str:
    """Return the SHA-256 of a file; its size and time of change are keys of the cache."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack_sources(
    sources: Sequence[SourceSettings],
    *,
    into: Path,
) -> tuple[SourceSettings, ...]:
    """Unpack sources that are archives, or folders of archives only, below `into`.

    Return them with the new paths.
    """
    return tuple(_unpack_source(source, into) for source in sources)


def _unpack_source(source: SourceSettings, into: Path) -> SourceSettings:
    path = Path(source.path)
    archives = _find_archives(source)
    if archives:
        path = _unpack_archives(path, archives, into)
    if source.inside:
        inner_path = str(path / source.inside)
        return source.model_copy(update={"path": inner_path, "inside": ""})
    if archives:
        return source.model_copy(update={"path": str(path)})
    return source


def _find_archives(source: SourceSettings) -> list[Path]:
    """Return the archives of a source; none if it has files that are read as they are."""
    path = Path(source.path)
    archives: list[Path] = []
    if is_archive(source.path):
        if not path.exists():
            raise DataError(f"source {path} does not exist; check the path")
        archives = [path]
    if path.is_dir() and not list_places(path, load_format(source.format)):
        archives = []
        for file in sorted(path.rglob("*")):
            if is_archive(file.name) and file.is_file():
                archives.append(file)
    return archives


def _unpack_archives(
    path: Path,
    archives: Sequence[Path],
    into: Path,
) -> Path:
    """Unpack archives into a folder each, and return the folder that replaces `path`."""
    root = path if path.is_dir() else path.parent
    names = [str(archive.relative_to(root)) for archive in archives]
    # A changed archive gets a folder of its own.
    place = into / digest(*names, *map(digest_file, archives))
    # Named as before they were packed, so that `inside` reads the same.
    stems = [_ENDING.sub("", name) for name in names]
    for archive, name, stem in zip(
        archives,
        names,
        stems,
        strict=True,
    ):
        # Two archives that differ in their endings alone keep them.
        folder = stem if stems.count(stem) == 1 else name
        unpack(archive, place / folder, aside=into)
    return place if path.is_dir() else place / stems[0]


def open_settings(settings: SourceSettings) -> Source:
    """Return the source that these settings describe.

    Raises:
        DataError: it is missing (see `open_source`).
    """
    return open_source(
        settings.path,
        settings.format,
        name=settings.prefix,
        licence=settings.licence,
        columns=parse_columns(settings.columns),
    )


def list_inputs(
    sources: Sequence[SourceSettings],
    *,
    rows_per_shard: int,
    bytes_per_shard: int | None = None,
) -> list[InputShard]:
    """Return the shards of all sources, numbered in the order of the sources."""
    shards: list[InputShard] = []
    for number, settings in enumerate(sources):
        source = open_settings(settings)
        for shard in list_shards(source, rows_per_shard, bytes_per_shard):
            # A shard may hold parts of several files.
            num_rows = sum(part.num_rows for part in shard)
            content = _digest_shard(settings, source, shard)
            shards.append(
                InputShard(
                    len(shards),
                    number,
                    (settings, shard),
                    content,
                    num_rows,
                )
            )
    return shards


def _digest_shard(
    settings: SourceSettings,
    source: Source,
    shard: Shard,
) -> str:
    """Return the digest of everything that decides a shard's rows.

    The source's place is not among it: its rows are the same anywhere.
    """
    parts = [asdict(part) for part in shard]
    named: list[Any] = [
        source.name,
        source.format.name,
        source.revision,
        parts,
    ]
    # Left out where there are none: shards that were keyed without them keep their keys.
    reader = find_source(settings.format)
    if reader and reader.digest:
        named.append(reader.digest)
    if settings.licence:
        named.append(settings.licence)
    if settings.columns:
        named.append(settings.columns)
    settings_text = json.dumps(named)
    digests = map(digest_file, list_files(source, shard))
    return digest(settings_text, *digests)


def describe_sources(
    sources: Sequence[SourceSettings],
    shards: Sequence[InputShard],
) -> list[dict[str, str]]:
    """Return name, address, commit on the Hub, digest and licence of each source, for the card.

    Sources are named as the recipe names them. The digest is that of the file or archive, or of the
    sorted `sha256sum` lines of a folder's files.
    """
    described = []
    for number, named in enumerate(sources):
        places = [shard.place for shard in shards if shard.source == number]
        if places:
            described.append(_describe_source(named, places))
    return described


def _describe_source(
    named: SourceSettings,
    places: Sequence[tuple[SourceSettings, Shard]],
) -> dict[str, str]:
    """Describe one source, given where its shards are read."""
    source = open_settings(places[0][0])
    path = Path(named.path)
    if path.is_file():
        sha256 = digest_file(path)
    else:
        files: set[Path] = set()
        for _, shard in places:
            files.update(list_files(source, shard))
        sha256 = _digest_files(files)
    # An address on the Hub; the path of what lies here says more of this machine.
    url = named.path if source.revision else path.name
    return {
        "name": named.prefix,
        "url": url,
        "version": source.revision or _find_commit(path),
        "sha256": sha256,
        "license": source.licence,
    }


def _digest_files(files: Iterable[Path]) -> str:
    """Return the digest of the sorted `sha256sum` lines of some files."""
    lines = sorted(f"{digest_file(file)}  {file.name}" for file in files)
    content = "\n".join(lines)
    return hashlib.sha256(content.encode()).hexdigest()


def _find_commit(folder: Path) -> str:
    """Return the commit that a clone has checked out; empty if the folder is not a clone."""
    git = folder / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        if (git / name).exists():
            return (git / name).read_text().strip()
        # Git moves what rarely changes there.
        for line in (git / "packed-refs").read_text().splitlines():
            if line.endswith(f" {name}"):
                return line.split()[0]
    except OSError:
        pass
    return ""


def read_benchmark_problems(sources: Sequence[SourceSettings]) -> list[Candidate]:
    """Return the problems of benchmarks, also those that cannot be judged.

    Raises:
        DataError: a benchmark has none.
    """
    problems: list[Candidate] = []
    for benchmark in sources:
        problems += _read_benchmark(benchmark)
    return problems


def _read_benchmark(benchmark: SourceSettings) -> list[Candidate]:
    problems: list[Candidate] = []
    num_rows = 0
    first = ""
    for row in collect_source(open_settings(benchmark)):
        num_rows += 1
        problem = row.candidate if isinstance(row, Rejection) else row
        if isinstance(row, Rejection) and not first:
            first = f"; the first: {row.reason}, {row.detail}"
        if problem is not None:
            problems.append(_without_long_tests(problem))
    if not problems:
        raise DataError(
            f"benchmark {benchmark.prefix!r} ({benchmark.path}): none of {num_rows} rows is of the "
            f"format {benchmark.format!r}{first}; check its path, inside and format "
            "(list: microcoder data audit)"
        )
    return problems


def _without_long_tests(problem: Candidate) -> Candidate:
    """Return a problem without the tests that no comparison reads.

    Those are nearly all bytes of a benchmark.
    """
    tests = []
    for test in problem.tests:
        longer = max(len(test.input), len(test.output))
        if longer <= LONGEST_EXAMPLE:
            tests.append(test)
    if len(tests) == len(problem.tests):
        return problem
    # Groups and origins belong to all tests, and would no longer match.
    changed = {"tests": tuple(tests), "groups": (), "origins": ()}
    return problem.model_copy(update=changed)
