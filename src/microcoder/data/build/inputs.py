"""The input of a build as numbered shards: the same in every run, with digests of their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from microcoder.data.build.config import SourceSettings
from microcoder.data.formats.catalogue import find_source
from microcoder.data.pipeline.steps import InputShard, digest
from microcoder.data.rowfiles import FilePart, is_archive, unpack
from microcoder.data.sources import Shard, Source, check_names, list_files, list_shards, open_source
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json


class FileDigests:
    """Digests of files, remembered by path, size and time of change, so that a re-run reads none of them again."""

    def __init__(self, memory: Path) -> None:
        self._path = memory
        self._known = _read_memory(memory) if memory.exists() else {}

    def find(self, path: Path) -> str:
        """Return the digest of a file's content.

        Raises:
            DataError: it cannot be read.
        """
        try:
            stat = path.stat()
            key = f"{path.absolute()}:{stat.st_size}:{stat.st_mtime_ns}"
            if key not in self._known:
                with path.open("rb") as file:
                    self._known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); check the path") from None
        return self._known[key]

    def save(self) -> None:
        """Keep what is known for the next run."""
        write_json(self._path, self._known)


def _read_memory(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = None
    if not isinstance(known, dict) or not all(isinstance(value, str) for value in known.values()):
        raise DataError(f"{path} is damaged; delete it and type the same command again: files are only read once more")
    return known


def unpack_sources(
    sources: Sequence[SourceSettings], *, into: Path, digests: FileDigests
) -> tuple[SourceSettings, ...]:
    """Return the sources with archives unpacked, each pointing into its folder.

    Raises:
        DataError: an archive does not exist or cannot be unpacked.
    """
    found = []
    for source in sources:
        if is_archive(source.path):
            archive = Path(source.path)
            if not archive.is_file():
                raise DataError(f"source {archive} does not exist; check the path")
            folder = unpack(archive, into=into, digest=digests.find(archive)) / source.inside
            source = source.model_copy(update={"path": str(folder), "inside": ""})
        elif source.inside:
            source = source.model_copy(update={"path": str(Path(source.path) / source.inside), "inside": ""})
        found.append(source)
    return tuple(found)


def open_settings(settings: SourceSettings) -> Source:
    """Open the source that a recipe describes."""
    return open_source(
        settings.path,
        settings.format,
        name=settings.prefix,
        columns=settings.columns,
        joins=settings.join,
        licence=settings.licence,
    )


def list_inputs(
    sources: Sequence[SourceSettings],
    *,
    rows_per_shard: int,
    bytes_per_shard: int | None = None,
    digests: FileDigests,
) -> list[InputShard]:
    """Return the shards of all sources, in their order.

    Raises:
        DataError: a source does not exist or holds nothing of its format, or its format reads no column of that name.
    """
    shards: list[InputShard] = []
    for number, settings in enumerate(sources):
        source = open_settings(settings)
        check_names(source)
        for shard in list_shards(source, rows_per_shard, bytes_per_shard):
            parts = [asdict(part) for part in shard.parts]
            place = json.dumps({"source": settings.model_dump(), "index": shard.index, "parts": parts})
            # Not where the source lies: an archive is unpacked below the output, and its rows are the same in any.
            reader = find_source(settings.format)
            own: list[object] = [reader.digest] if reader else []
            own += [settings.licence] if settings.licence else []
            own += [settings.columns, *(join.model_dump(exclude={"path"}) for join in settings.join)]
            named = json.dumps([source.name, source.format.name, source.path.name, source.revision, parts, *own])
            content = digest(named, *(digests.find(path) for path in list_files(source, shard)))
            shards.append(InputShard(len(shards), number, place, content, shard.num_rows, shard.num_bytes))
    return shards


def describe_sources(
    sources: Sequence[SourceSettings], shards: Sequence[InputShard], *, digests: FileDigests
) -> list[dict[str, str]]:
    """Return name, address, commit, digest and licence of each source as its recipe names it, for Croissant metadata.

    The digest is the file's or the archive's, or that of a folder's lines as `sha256sum` prints them, sorted.
    """
    found = []
    for number, named in enumerate(sources):
        places = [read_place(shard.place) for shard in shards if shard.source == number]
        if not places:
            continue
        source, path = open_settings(places[0][0]), Path(named.path)
        files = {file for _, shard in places for file in list_files(source, shard)}
        lines = "\n".join(sorted(f"{digests.find(file)}  {file.name}" for file in files))
        found.append({
            "name": named.prefix,
            "url": named.path if source.revision else path.name,
            "version": source.revision or _find_commit(path),
            "sha256": digests.find(path) if path.is_file() else hashlib.sha256(lines.encode()).hexdigest(),
            "license": source.licence,
        })  # fmt: skip
    return found


def _find_commit(folder: Path) -> str:
    """Return the commit that a clone has checked out; empty where the folder is none."""
    try:
        head = (folder / ".git" / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        loose, packed = folder / ".git" / name, folder / ".git" / "packed-refs"
        if loose.exists():
            return loose.read_text().strip()
        return next((line.split()[0] for line in packed.read_text().splitlines() if line.endswith(f" {name}")), "")
    except OSError:
        return ""


def read_place(place: str) -> tuple[SourceSettings, Shard]:
    """Return what a shard's place says."""
    value = json.loads(place)
    return SourceSettings(**value["source"]), Shard(value["index"], tuple(FilePart(**part) for part in value["parts"]))


def digest_sources(sources: Sequence[SourceSettings], *, digests: FileDigests) -> str:
    """Return one digest of everything that some sources hold."""
    shards = list_inputs(sources, rows_per_shard=1 << 20, digests=digests)
    return digest(*(shard.digest for shard in shards))


def read_all(sources: Sequence[SourceSettings]) -> Iterator[tuple[Source, Shard]]:
    """Yield every shard of some sources."""
    for settings in sources:
        source = open_settings(settings)
        for shard in list_shards(source, 1 << 20):
            yield source, shard
