"""Settings of a build: its sources, its benchmarks, and what each step is told."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from microcoder.data.completions import EndpointSettings
from microcoder.data.decisions import FOLDER, find_shared_folder
from microcoder.data.difficulty import SelectionSettings
from microcoder.data.filter.rules import LicenceSettings
from microcoder.data.formats.columns import ID, parse_columns
from microcoder.data.formats.rows import load_format
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.data.verify.choice import VerifySettings
from microcoder.judge.core.config import Config
from microcoder.judge.languages.packages import STANDARD


class SourceSettings(Config):
    """A source: where rows of one format are read."""

    path: str = Field(min_length=1)
    """A file, a folder, an archive (tar or zip), or
    `hf://datasets/owner/name[@revision]/config/split`."""
    inside: str = ""
    """File or folder inside `path`, such as one of several data sets of an archive."""
    format: str
    """Format of its rows; `microcoder data audit` without arguments lists all."""
    columns: str = ""
    """Columns of rows with names of their own, as in `statement=task.text,tests=cases`
    (docs/rows.md), with a `format` whose reader has columns, such as `trl`. Ids are given by a
    build: none is named."""
    name: str = ""
    """Prefix of its rows' ids; the format's name where none is given."""
    licence: str = ""
    """Licence of its rows that name none, as `CC-BY-4.0`; by default that of the data set on the
    Hub, where it is a known one."""

    def _contradictions(self) -> Iterator[str]:
        if ID in parse_columns(self.columns):
            yield (
                "columns: a build gives each row an id, its source and place; "
                f"leave out id from {self.columns!r}"
            )

    @property
    def prefix(self) -> str:
        """Prefix of its rows' ids."""
        # A format of one's own is named `file.py:function`: the function names its rows.
        return self.name or self.format.rpartition(":")[2]


class TranslationSettings(Config):
    """Who translates statements that are not in English: a model, or a function of one's own."""

    endpoint: EndpointSettings | None = None
    """Model that translates; its answers are kept."""
    function: str = ""
    """Function that translates, as path/to/file.py:function: it takes a text and the language's ISO
    639-1 code, and returns the text in English with each mark such as `[[P3]]` in it; its answers
    are kept."""
    second_reading: bool = False
    """Whether the model is asked once more, about each translation, what differs in it."""

    def _contradictions(self) -> Iterator[str]:
        if (self.endpoint is None) == (not self.function):
            yield (
                "[process.translation] needs one translator; set either endpoint.model and "
                'endpoint.base_url, or function = "path/to/file.py:function"'
            )
        if self.second_reading and self.endpoint is None:
            yield "second_reading asks a model; set endpoint.model, or leave it out"


class ProcessSettings(Config):
    """What is done to statements."""

    translation: TranslationSettings | None = None
    """Without it, what is not in English is turned away."""


class ArrangeSettings(Config):
    """What the process step has to know of the settings."""

    keeps_foreign: bool = False
    """Whether statements in other languages stay, since a later step translates them."""


class DifficultySettings(Config):
    """How difficulty is estimated, and which problems are kept by it."""

    endpoint: EndpointSettings | None = None
    """Model that scores how hard each problem is (as arXiv 2603.07779 does); without one none is
    scored."""
    pass_rates_of: str = ""
    """Model whose pass rates count, as its name stands in the candidates' `pass_rates`; empty: none
    count."""
    responses: Path | None = None
    """JSON lines of that model's attempts (`{"id", "responses": [...]}`), which are judged."""
    selection: SelectionSettings | None = None
    """Which problems are kept by their difficulty; without it all are."""

    def _contradictions(self) -> Iterator[str]:
        by = self.selection.by if self.selection is not None else ""
        if self.responses is not None and not self.pass_rates_of:
            yield "responses are of a model; name it with pass_rates_of"
        if by == "pass_rate" and not self.pass_rates_of:
            yield 'selection.by = "pass_rate" needs pass rates; name a model with pass_rates_of'
        if by == "predicted" and self.endpoint is None:
            yield (
                'selection.by = "predicted" needs difficulties that a model scores; '
                "set difficulty.endpoint.model and difficulty.endpoint.base_url, "
                'or selection.by = "pass_rate"'
            )


class BuildConfig(Config):
    """Settings of a build: sources, steps and output of a corpus."""

    name: str = Field(min_length=1)
    """Name of the corpus on its card."""
    output: Path
    """Folder of the finished corpus."""
    work: Path | None = None
    """Folder of results that are kept between runs; `<output>/.work` by default. On Ray, all nodes
    must see it."""
    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    """Sources of the corpus; a benchmark's format is refused."""
    benchmarks: tuple[SourceSettings, ...] = ()
    """Benchmarks whose problems must not be in the corpus."""
    rows_per_shard: int = Field(default=64, ge=1)
    """Rows per shard, fewer if they have more than 16 MiB; a build that was killed repeats its
    unfinished shards."""
    runner: Literal["native", "ray"] = "native"
    """`native`: processes of this machine; `ray`: of the cluster that `RAY_ADDRESS` names or that
    runs here, or of one that is started."""
    workers: int | None = Field(default=None, ge=1)
    """Parallel processes, with Ray per node; by default one per core. In steps that run programs
    (verify, a model's attempts): parallel programs."""
    process: ProcessSettings = ProcessSettings()
    licence: LicenceSettings = LicenceSettings()
    behaviour: bool = True
    """Whether programs are compared with those of the benchmarks (docs/contamination.md); a problem
    takes about a fifth of a CPU second."""
    same_task: EndpointSettings | None = None
    """Model that is asked which problems are a benchmark's in disguise; without one this step is
    left out."""
    difficulty: DifficultySettings = DifficultySettings()
    attempts: Path | None = None
    """JSON lines of a model's attempts (`{"id", "responses": [...]}`), of which problems without a
    right program get one that most agree on, and for which tests of the others are chosen; by
    default `difficulty.responses`."""
    generate: GenerateSettings = GenerateSettings()
    verify: VerifySettings = VerifySettings()
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of
    pins."""
    unsafe: bool = False
    """Verify even if the sandbox cannot be closed. Unsafe: only for programs you trust."""

    def _contradictions(self) -> Iterator[str]:
        num_by_prefix = Counter(source.prefix for source in self.sources)
        for name, count in num_by_prefix.items():
            if count > 1:
                yield f"{count} sources are called {name!r}; give each a `name` of its own"
        for source in self.sources:
            if load_format(source.format).is_benchmark:
                yield (
                    f"source {source.prefix!r} has the format {source.format!r}, a benchmark that "
                    "is never trained on; put it under [[benchmarks]] instead of [[sources]]"
                )
        if self.same_task is not None and not self.benchmarks:
            yield "[same_task] is asked about problems of benchmarks; name one under [[benchmarks]]"

    @property
    def work_folder(self) -> Path:
        """Folder of parts, verdicts and answers, kept between runs."""
        # Steps run in processes that may have another working directory.
        return (self.work or self.output / ".work").absolute()

    @property
    def decision_folders(self) -> tuple[Path, ...]:
        """Folders of decisions: that of this build, which all nodes see, and the shared one."""
        own = self.work_folder / FOLDER
        shared = find_shared_folder()
        return (own,) if shared is None else (own, shared)
