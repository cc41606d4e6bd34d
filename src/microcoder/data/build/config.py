"""Settings of a build, and its input as numbered shards: the same in every run, with digests of their content."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from microcoder.data.behaviour import BehaviourSettings
from microcoder.data.completions import EndpointSettings
from microcoder.data.difficulty import SelectionSettings
from microcoder.data.filter import FilterSettings
from microcoder.data.formats.rows import find_source, load_format
from microcoder.data.pipeline.steps import InputShard, digest
from microcoder.data.rowfiles import is_archive, unpack
from microcoder.data.sources import Source, list_files, list_places, list_shards, open_source
from microcoder.data.tests.answers import GenerateSettings
from microcoder.data.verify import VerifySettings
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.languages.packages import STANDARD


class SourceSettings(Config):
    """A source: where rows of one format are read."""

    path: str = Field(min_length=1)
    """A file, a folder, an archive (tar or zip), or `hf://datasets/owner/name[@revision]/config/split`."""
    inside: str = ""
    """File or folder inside `path`, such as one of several data sets of an archive."""
    format: str
    """Format of its rows; `microcoder data audit` without arguments lists all."""
    name: str = ""
    """Prefix of its rows' ids; the format's name where none is given."""
    licence: str = ""
    """Licence of its rows that name none, as `CC-BY-4.0`; by default that of the data set on the Hub, where it is a
    known one."""

    @property
    def prefix(self) -> str:
        """Prefix of its rows' ids."""
        return self.name or self.format.rpartition(":")[2]


class DifficultySettings(Config):
    """How difficulty is estimated, and which problems are kept by it."""

    endpoint: EndpointSettings | None = None
    """Model that scores how hard each problem is (the paper's way); without one none is scored."""
    pass_rates_of: str = ""
    """Model whose pass rates count, as its name stands in the candidates' `pass_rates`; empty: none count."""
    checkpoint: str = ""
    """Checkpoint of that model and budget of its answers, as the records are to name them; empty: unknown."""
    responses: Path | None = None
    """JSON lines of that model's attempts (`{"id", "responses": [...]}`), which are judged."""
    selection: SelectionSettings | None = None
    """Which problems are kept by their difficulty; without it all are."""

    def _contradictions(self) -> Iterator[str]:
        by = self.selection.by if self.selection is not None else ""
        if (self.responses is not None or self.checkpoint) and not self.pass_rates_of:
            yield "responses and checkpoint are of a model; name it with pass_rates_of"
        if by == "pass_rate" and not self.pass_rates_of:
            yield 'selection.by = "pass_rate" needs pass rates; name a model with pass_rates_of'
        if by == "predicted" and self.endpoint is None:
            yield (
                'selection.by = "predicted" needs difficulties that a model scores; set difficulty.endpoint.model and '
                'difficulty.endpoint.base_url, or selection.by = "pass_rate"'
            )


class BuildConfig(Config):
    """Settings of a build: sources, steps and output of a corpus."""

    name: str = Field(min_length=1)
    """Name of the corpus on its card."""
    output: Path
    """Folder of the finished corpus."""
    work: Path | None = None
    """Folder of results that are kept between runs; `<output>/.work` by default. On Ray, all nodes must see it."""
    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    """Sources of the corpus; a benchmark's format is refused."""
    benchmarks: tuple[SourceSettings, ...] = ()
    """Benchmarks whose problems must not be in the corpus."""
    rows_per_shard: int = Field(default=64, ge=1)
    """Rows that are processed together; a build that was killed repeats those at hand."""
    bytes_per_shard: int = Field(default=16 << 20, ge=1)
    """Bytes of rows, decompressed, from which fewer are processed together: a process needs several times the memory
    (our choice)."""
    runner: Literal["native", "ray"] = "native"
    """`native`: processes of this machine; `ray`: of the cluster that `RAY_ADDRESS` names or that runs here, or of one
    that is started."""
    workers: int | None = Field(default=None, ge=1)
    """Parallel processes, with Ray per node; by default one per core. In steps that run programs (verify, a model's
    attempts): parallel programs."""
    filter: FilterSettings = FilterSettings()
    behaviour: BehaviourSettings = BehaviourSettings()
    difficulty: DifficultySettings = DifficultySettings()
    generate: GenerateSettings = GenerateSettings()
    verify: VerifySettings = VerifySettings()
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of pins."""
    unsafe_sandbox: bool = False
    """Verify even if the sandbox cannot be closed. Unsafe: only for programs you trust."""

    def _contradictions(self) -> Iterator[str]:
        for name, count in Counter(source.prefix for source in self.sources).items():
            if count > 1:
                yield f"{count} sources are called {name!r}; give each a `name` of its own"
        for source in self.sources:
            if load_format(source.format).is_benchmark:
                yield (
                    f"source {source.prefix!r} has the format {source.format!r}, a benchmark that is never trained on; "
                    "put it under [[benchmarks]] instead of [[sources]]"
                )

    @property
    def work_folder(self) -> Path:
        """Folder of parts, verdicts and answers, kept between runs."""
        return (self.work or self.output / ".work").absolute()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, cached until its size or time changes; DataError if it is unreadable."""
    try:
        stat = path.stat()
        return _digest_content(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the path") from None


@cache
def _digest_content(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack_sources(sources: Sequence[SourceSettings], *, into: Path) -> tuple[SourceSettings, ...]:
    """Return the sources with archives unpacked below `into`, also folders that hold only archives; paths follow."""
    found = []
    for source in sources:
        path, archives = Path(source.path), [Path(source.path)] if is_archive(source.path) else []
        if archives and not path.exists():
            raise DataError(f"source {path} does not exist; check the path")
        if path.is_dir() and not list_places(path, load_format(source.format)):
            archives = sorted(one for one in path.rglob("*") if is_archive(one.name) and one.is_file())
        if archives:
            names = [str(one.relative_to(path if path.is_dir() else path.parent)) for one in archives]
            # A changed archive gets a folder of its own.
            place = into / digest(*names, *map(digest_file, archives))
            stems = [re.sub(r"(?i)(?:\.tar)?\.\w+$", "", name) for name in names]
            for archive, name, stem in zip(archives, names, stems, strict=True):
                unpack(archive, place / (stem if stems.count(stem) == 1 else name), aside=into)
            source = source.model_copy(update={"path": str(place if path.is_dir() else place / stems[0])})
        if source.inside:
            source = source.model_copy(update={"path": str(Path(source.path) / source.inside), "inside": ""})
        found.append(source)
    return tuple(found)


def open_settings(settings: SourceSettings) -> Source:
    """Open the source that a recipe describes."""
    return open_source(settings.path, settings.format, name=settings.prefix, licence=settings.licence)


def list_inputs(
    sources: Sequence[SourceSettings], *, rows_per_shard: int, bytes_per_shard: int | None = None
) -> list[InputShard]:
    """Return the shards of all sources, in their order."""
    shards: list[InputShard] = []
    for number, settings in enumerate(sources):
        source = open_settings(settings)
        for shard in list_shards(source, rows_per_shard, bytes_per_shard):
            parts = [asdict(part) for part in shard]
            # Not where the source lies: its rows are the same in any place.
            reader = find_source(settings.format)
            own = [one for one in (reader and reader.digest, settings.licence) if one]
            named = json.dumps([source.name, source.format.name, source.revision, parts, *own])
            num_rows = sum(part.num_rows for part in shard)
            content = digest(named, *(digest_file(path) for path in list_files(source, shard)))
            shards.append(InputShard(len(shards), number, (settings, shard), content, num_rows))
    return shards


def describe_sources(sources: Sequence[SourceSettings], shards: Sequence[InputShard]) -> list[dict[str, str]]:
    """Return name, address, commit on the Hub, digest and licence of each source as its recipe names it, for the card.

    The digest is that of the file or archive, or of the sorted `sha256sum` lines of a folder's files.
    """
    found = []
    for number, named in enumerate(sources):
        places = [shard.place for shard in shards if shard.source == number]
        if not places:
            continue
        source, path = open_settings(places[0][0]), Path(named.path)
        files = {file for _, shard in places for file in list_files(source, shard)}
        lines = "\n".join(sorted(f"{digest_file(file)}  {file.name}" for file in files))
        found.append({
            "name": named.prefix,
            "url": named.path if source.revision else path.name,
            "version": source.revision or _find_commit(path),
            "sha256": digest_file(path) if path.is_file() else hashlib.sha256(lines.encode()).hexdigest(),
            "license": source.licence,
        })  # fmt: skip
    return found


def _find_commit(folder: Path) -> str:
    """Return the commit that a clone has checked out; empty if the folder is not a clone."""
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
