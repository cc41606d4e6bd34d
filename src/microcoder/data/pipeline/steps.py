"""What a pipeline is made of: numbered shards of input, and steps that keep or reject each row.

A step declares what decides its result: its settings, and the modules that hold its code. The
digests of these are made here.
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
"""Takes a shard's candidates, returns one row for each, in order.

They are read from a file on each iteration, so a generator holds few of them in memory.
"""

WOULD_REJECT = "would_reject"
"""Step in the lineage of a row that stayed though a step would have rejected it.

Its field is the reason.
"""
_KEY_CHARACTERS = 16
"""Hexadecimal digits of a digest."""
_ALWAYS = "microcoder.data.pipeline"
"""The package whose source decides the results of all steps."""


@dataclass(frozen=True, slots=True)
class InputShard:
    """Successive rows of one source; the same in every run."""

    number: int
    """Position among all shards, from 0."""
    source: int
    """Index of the source in the config."""
    place: Any
    """What the first step reads the rows from, such as a source and parts of files.

    It is not part of any key.
    """
    digest: str
    """Digest of the rows' content and ids."""
    num_rows: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline: everything but its input that decides its result."""

    name: str
    stage: Stage
    settings: Config
    opens: Callable[..., Any]
    """Called with the settings in each process that runs the step (see `MapStep`).

    It is pickled, so a module's function.
    """
    code: tuple[str, ...]
    """Modules and packages whose source decides the result."""
    inputs: tuple[str, ...] = ()
    """Digests of what else decides the result, such as files that the settings do not name."""
    runs: Literal["on_every_core", "alone"] = "on_every_core"
    """`alone`: one shard at a time on a machine, for work that spreads over the cores itself."""
    executes: bool = False
    """Whether it runs the rows' programs, though it belongs to a stage that reads them."""
    turns_away: bool = True
    """Whether rows are rejected.

    If not, such a row stays unchanged, with a line of lineage that says why.
    """

    def keep(self, row: Row) -> Row:
        """Return the row for the next step.

        An audit (not `turns_away`) goes on with the candidate of a rejection, and a note.
        """
        # What never became a candidate cannot stay.
        if self.turns_away or isinstance(row, Candidate) or row.candidate is None:
            return row
        line = Lineage(
            stage=row.stage,
            step=WOULD_REJECT,
            field=row.reason,
            detail=row.detail,
        )
        lineage = (*row.candidate.lineage, line)
        return row.candidate.model_copy(update={"lineage": lineage})


class MapStep(Step):
    """A step that works on one shard at a time.

    `opens(settings, exit_stack)` returns its `Work`.
    """


class BarrierStep(Step):
    """A step that needs to see all rows first; `opens(settings)` returns its `Barrier`."""


class Barrier:
    """Decides on rows after it has seen all: `look` at each, `decide`, `apply`.

    Rows and looks are kept on disk.
    """

    def look(self, candidates: Sequence[Candidate]) -> Sequence[Any]:
        """Return the small part of each row that the decision needs; called in a worker process."""
        raise NotImplementedError

    def decide(self, looks: Iterable[Any]) -> None:
        """Decide from the looks of all rows, in order; the decision is kept for `apply`."""
        raise NotImplementedError

    def needs(self, name: str) -> Sequence[str]:
        """Return the ids of the other rows that `apply` needs for a row."""
        return ()

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Return the candidate for the next step, or its rejection.

        Args:
            others: the rows of `needs`, by id.
        """
        raise NotImplementedError


def step_key(step: Step) -> str:
    """Return the digest of what decides a step's result besides its input."""
    sources = [source_digest(name) for name in (_ALWAYS, *step.code)]
    key_parts = [step.name, step.settings.model_dump_json(), *step.inputs, *sources]
    # In an audit the same step gives other rows.
    if not step.turns_away:
        key_parts.append(WOULD_REJECT)
    return digest(*key_parts)


def digest(*parts: str) -> str:
    """Return a digest of some texts and their lengths, as 16 hexadecimal digits."""
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        # With its length: ("ab", "c") and ("a", "bc") are not the same.
        hashed.update(len(encoded).to_bytes(8, "big") + encoded)
    return hashed.hexdigest()[:_KEY_CHARACTERS]


@cache
def source_digest(name: str) -> str:
    """Return the digest of a module, or of all files of a package.

    Data files decide as much as code.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name)
    origin = Path(spec.origin)
    is_package = origin.name == "__init__.py"
    paths = sorted(origin.parent.rglob("*")) if is_package else [origin]
    names_and_digests = []
    for path in paths:
        # Compiled files come and go with the interpreter, and say no more than their sources.
        if path.is_file() and path.suffix != ".pyc":
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            names_and_digests += [path.name, content]
    return digest(*names_and_digests)
