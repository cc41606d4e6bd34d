"""What a pipeline is made of: numbered shards of input, and steps that take every row on or turn it away.

A step says what decides its result: its settings, and the source of the modules that hold its code. From that and
the key of its input comes the key of each result, so that a result is known again without looking inside.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from microcoder.data.formats.candidates import Candidate, Lineage, Rejection, Stage
from microcoder.judge.core.config import Config

Row = Candidate | Rejection
"""A row at any stage of a build."""

Work = Callable[[Iterable[Candidate]], Iterable[Row]]
"""Takes a shard's candidates, gives one row for each, in order. They are read from a file each time that they are
gone through: what yields holds few of them."""

WOULD_REJECT = "would_reject"
"""Step in the lineage of a row that stayed though a step would have rejected it; its field is the reason."""
_KEY_CHARACTERS = 16
_ALWAYS = ("microcoder.data.formats.candidates", "microcoder.data.pipeline.parts", "microcoder.judge.core.types")


@dataclass(frozen=True, slots=True)
class InputShard:
    """A run of rows of one source, the same in every run."""

    number: int
    """Position among all shards, from 0."""
    source: int
    """Which source of the config."""
    place: str
    """Position by which the source's reader finds the rows again; not part of any key."""
    digest: str
    """Digest of the content and of the rows' names."""
    num_rows: int
    num_bytes: int = 0
    """Bytes of its rows, unpacked."""


@dataclass(frozen=True, slots=True)
class Step:
    """A function of one row, and the settings that decide its result."""

    name: str
    stage: Stage
    settings: Config
    opens: Callable[..., Any]
    """Called with the settings in each process that needs it, which finds it by its name."""
    code: tuple[str, ...]
    """Modules and packages whose source decides the result."""
    inputs: tuple[str, ...] = ()
    """Digests of what else decides it, such as files that the settings do not name."""
    runs: Literal["on_every_core", "alone"] = "on_every_core"
    """`alone`: one shard at a time on a machine, for work that spreads over the cores itself."""
    turns_away: bool = True
    """False: a row that would be rejected stays as it was, with a line of lineage that says why."""

    def keep(self, row: Row) -> Row:
        """Return the row that the next step gets: a rejection, or, in an audit, its candidate with a note of it."""
        if self.turns_away or isinstance(row, Candidate) or row.candidate is None:
            return row
        line = Lineage(stage=row.stage, step=WOULD_REJECT, field=row.reason, detail=row.detail)
        return row.candidate.model_copy(update={"lineage": (*row.candidate.lineage, line)})


class MapStep(Step):
    """A step that looks at one shard at a time; `opens` gives a context manager around its `Work`."""


class BarrierStep(Step):
    """A step that must have seen every row before it decides on any; `opens` gives a `Barrier`."""


class Barrier:
    """A decision over all rows; the rows themselves and what `look` returns for each wait on disk."""

    def look(self, candidates: Sequence[Candidate]) -> Sequence[Any]:
        """Return the small part of each row that the decision needs; runs in a worker."""
        raise NotImplementedError

    def decide(self, looks: Iterable[Any]) -> None:
        """Decide, from all looks in the order of the rows; they can be gone through more than once."""
        raise NotImplementedError

    def needs(self, name: str) -> Sequence[str]:
        """Return the ids of other rows that `apply` wants to see beside the row of this id."""
        return ()

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Return the candidate as it goes on, or its rejection."""
        raise NotImplementedError


def step_key(step: Step) -> str:
    """Return the digest of what decides a step's result besides its input."""
    sources = map(source_digest, (*_ALWAYS, *step.code))
    kept = () if step.turns_away else (WOULD_REJECT,)
    return digest(step.name, step.settings.model_dump_json(), *step.inputs, *sources, *kept)


def digest(*parts: str) -> str:
    """Return a short digest of some texts, with their lengths."""
    found = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        found.update(len(encoded).to_bytes(8, "big") + encoded)
    return found.hexdigest()[:_KEY_CHARACTERS]


@cache
def source_digest(name: str) -> str:
    """Digest a module, or a package with everything in it: files of data decide as much as code."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name)
    origin = Path(spec.origin)
    files = [origin] if origin.name != "__init__.py" else sorted(origin.parent.rglob("*"))
    wanted = [path for path in files if path.is_file() and path.suffix != ".pyc"]
    return digest(*(part for path in wanted for part in (path.name, hashlib.sha256(path.read_bytes()).hexdigest())))
