"""Settings of a build: sources, benchmarks to keep out, what each stage does, where it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from microcoder.data.behaviour import BehaviourSettings
from microcoder.data.clean import ProcessSettings
from microcoder.data.columns import JoinSettings
from microcoder.data.completions import EndpointSettings
from microcoder.data.difficulty.selection import SelectionSettings
from microcoder.data.filter import FilterSettings
from microcoder.data.formats.catalogue import load_format
from microcoder.data.tests.answers import GenerateSettings
from microcoder.data.verify import VerifySettings
from microcoder.judge.core.config import Config
from microcoder.judge.languages.packages import STANDARD


class SourceSettings(Config):
    """A source: where rows of one format are read."""

    path: str = Field(min_length=1)
    """A file, a folder, an archive (tar or zip), or `hf://datasets/owner/name[@revision]/config/split`."""
    inside: str = ""
    """A file or folder in it, such as one of several data sets of an archive."""
    format: str
    """The adapter that reads it; `microcoder data audit` alone lists them."""
    name: str = ""
    """Prefix of its rows' ids; the format's name where none is given."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Fields that the format reads, and where the rows have them instead: `question = "task.text"`."""
    licence: str = ""
    """Licence of its rows that name none, as `CC-BY-4.0`; by default that of the data set on the Hub, where it is a
    known one."""
    join: tuple[JoinSettings, ...] = ()
    """Files whose rows belong to these, such as tests that are published apart."""

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

    @model_validator(mode="after")
    def _has_what_it_asks_for(self) -> DifficultySettings:
        if (self.responses is not None or self.checkpoint) and not self.pass_rates_of:
            raise ValueError("responses and checkpoint are of a model; name it with pass_rates_of")
        if self.selection is None:
            return self
        if self.selection.by == "pass_rate" and not self.pass_rates_of:
            raise ValueError('selection.by = "pass_rate" needs pass rates; name a model with pass_rates_of')
        if self.selection.by == "predicted" and self.endpoint is None:
            raise ValueError(
                'selection.by = "predicted" needs difficulties that a model scores; set difficulty.endpoint.model and '
                'difficulty.endpoint.base_url, or selection.by = "pass_rate"'
            )
        return self


class BuildConfig(Config):
    """A corpus from its sources."""

    name: str = Field(min_length=1)
    """Name of the corpus on its card."""
    output: Path
    """Folder of the finished corpus."""
    work: Path | None = None
    """Folder of what is kept between runs; `<output>/.work` where none is given. On Ray, all nodes must see it."""
    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    """Sources of the corpus; a benchmark's format is refused."""
    benchmarks: tuple[SourceSettings, ...] = ()
    """Benchmarks whose problems must not be in the corpus."""
    rows_per_shard: int = Field(default=64, ge=1)
    """Rows that are worked on together; what a kill may cost."""
    bytes_per_shard: int = Field(default=16 << 20, ge=1)
    """Bytes of rows, unpacked, from which fewer are worked on together: a process needs several times as much memory
    (our choice)."""
    runner: Literal["native", "ray"] = "native"
    ray_address: str | None = None
    """Address of a running Ray cluster; None starts one here."""
    workers: int | None = Field(default=None, ge=1)
    """Processes at the same time, with Ray on each node; one a core where none is given. Where programs run (verify, a
    model's attempts): so many programs."""
    process: ProcessSettings = ProcessSettings()
    filter: FilterSettings = FilterSettings()
    behaviour: BehaviourSettings = BehaviourSettings()
    difficulty: DifficultySettings = DifficultySettings()
    generate: GenerateSettings = GenerateSettings()
    verify: VerifySettings = VerifySettings()
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of pins."""
    unsafe_sandbox: bool = False
    """Verify even if the sandbox cannot be closed. Unsafe: only for programs you trust."""

    @model_validator(mode="after")
    def _ids_are_unique(self) -> BuildConfig:
        counts = Counter(source.prefix for source in self.sources)
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"{counts[twice[0]]} sources are called {twice[0]!r}; give each a `name` of its own")
        return self

    @model_validator(mode="after")
    def _trains_on_no_benchmark(self) -> BuildConfig:
        for source in self.sources:
            if load_format(source.format).is_benchmark:
                raise ValueError(
                    f"source {source.prefix!r} has the format {source.format!r}, a benchmark that is never trained on; "
                    "put it under [[benchmarks]] instead of [[sources]]"
                )
        return self

    @property
    def work_folder(self) -> Path:
        """Folder of parts, verdicts and answers, kept between runs."""
        return (self.work or self.output / ".work").absolute()
