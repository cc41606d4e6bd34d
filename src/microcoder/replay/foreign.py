"""Rows of other trainers' files -> recorded steps.

Rows of one step follow each other, in one file or in several. Groups are those that a row names,
else the rows of one step with one prompt. A problem without an id is named by a digest of its
prompt, or by the problem whose statement stands in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Outcome, Problem, Rollout, Verdict
from microcoder.replay.formats import (
    ForeignRow,
    Format,
    digest_prompt,
    find_format,
    order_files,
    peek,
    read_rows,
    recognise,
)
from microcoder.replay.recordings import RIGHT_ABOVE, Lack, RecordedStep, Recording, open_run
from microcoder.replay.settings import PLAIN
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.runs import RunDirectory

_ALWAYS = frozenset((Lack.RECIPE, Lack.LOG_PROBS, Lack.PROBE))
"""What no other trainer records in a form that is read here."""


def open_recording(
    paths: Sequence[Path | str],
    *,
    format: str | None = None,
    problems: Mapping[str, Problem] | None = None,
    limit: int | None = None,
) -> Recording:
    """Return the recording in a folder of ours, or in files of any trainer.

    Args:
        paths: a folder that `microcoder train` wrote; or files and folders of rollouts.
        format: a name of `formats.FORMATS`; None: that by which the first row is recognised.
        problems: by id; a row without a problem's id is given that of the problem whose statement
            stands in its prompt.
        limit: of response tokens, where the files do not say it.

    Raises:
        DataError: nothing is there, or rows cannot be read.
    """
    places = [Path(path) for path in paths]
    if not places:
        raise DataError("nothing to replay; name a folder of a run, or files of rollouts")
    if len(places) == 1 and RunDirectory(places[0]).manifest.exists():
        return open_run(places[0])
    files = order_files(places)
    form = find_format(format) if format else recognise(peek(files[0]))
    source = _Source(files, form, _Names(problems or {}), limit)
    return Recording(
        name=places[0].name if len(places) == 1 else places[0].parent.name,
        format=form.name,
        config=PLAIN,
        read=source.read,
        lacks=_find_lacks(source),
        paths=tuple(places),
    )


@dataclass
class _Names:
    """Finds the problem that a prompt asks."""

    problems: Mapping[str, Problem]
    _found: dict[str, str] = field(default_factory=dict)

    def find(self, prompt: str) -> str:
        """Return the id of the problem whose statement stands in a prompt, or a digest of it."""
        name = self._found.get(prompt)
        if name is None:
            name = self._search(prompt)
            self._found[prompt] = name
        return name

    def _search(self, prompt: str) -> str:
        words = " ".join(prompt.split())
        fitting = []
        for problem in self.problems.values():
            statement = " ".join(problem.statement.split())
            if statement and statement in words:
                fitting.append((len(statement), problem.id))
        # One statement may be part of another: the longer one is asked.
        return max(fitting)[1] if fitting else digest_prompt(prompt)


@dataclass(frozen=True)
class _Source:
    files: Sequence[Path]
    form: Format
    names: _Names
    limit: int | None

    def read(self) -> Iterator[RecordedStep]:
        """Yield the steps, a step's rows in memory at a time."""
        before: list[tuple[str, str]] = []
        for step, rows in self._read_steps():
            shown = [(row.prompt, row.response) for row in rows]
            # TRL writes a batch again at each of its updates.
            if self.form.name == "trl" and shown == before:
                continue
            before = shown
            yield RecordedStep(
                step=step,
                scored_P_G=[self._score_group(group) for group in _group(rows)],
                max_response_tokens=self.limit,
            )

    def _read_steps(self) -> Iterator[tuple[int, list[ForeignRow]]]:
        rows: list[ForeignRow] = []
        done: set[int] = set()
        for file in self.files:
            for row in read_rows(file, self.form):
                if rows and row.step != rows[0].step:
                    done.add(rows[0].step)
                    yield rows[0].step, rows
                    rows = []
                if row.step in done:
                    raise DataError(
                        f"{row.where} is of step {row.step}, which had ended before; sort the rows "
                        "by step"
                    )
                rows.append(row)
        if rows:
            yield rows[0].step, rows

    def _score_group(self, rows: Sequence[ForeignRow]) -> list[ScoredRollout]:
        first = rows[0]
        name = first.problem_id or self.names.find(first.prompt)
        scored_G = []
        for index, row in enumerate(rows):
            scored_G.append(self._score(row, name, index))
        return scored_G

    def _score(self, row: ForeignRow, name: str, index: int) -> ScoredRollout:
        is_truncated = bool(row.is_truncated)
        if row.is_truncated is None and row.num_tokens is not None and self.limit is not None:
            is_truncated = row.num_tokens >= self.limit
        # Where tokens are unknown, placeholders keep the length.
        token_ids = row.token_ids
        if token_ids is None:
            token_ids = range(row.num_tokens or 0)
        program = extract_program(row.response, is_truncated=is_truncated)
        if row.verdict is not None:
            outcome = row.verdict
        elif row.reward is None:
            outcome = Outcome.SANDBOX_FAULT
        elif row.reward > RIGHT_ABOVE:
            outcome = Outcome.ACCEPTED
        else:
            outcome = Outcome.NO_CODE if program.code is None else Outcome.WRONG_ANSWER
        return ScoredRollout(
            rollout=Rollout(name, row.prompt, row.response, tuple(token_ids), is_truncated),
            program=program,
            verdict=Verdict(outcome, (), 0),
            reward=row.reward,
            advantage=row.advantage or 0.0,
            masked_why="",
            tier=None,
            sample_index=index,
            rewards=row.rewards,
        )


def _group(rows: Sequence[ForeignRow]) -> list[list[ForeignRow]]:
    """Return the rows of a step by group, in the order in which groups begin."""
    groups: dict[str, list[ForeignRow]] = {}
    for row in rows:
        key = row.group or row.problem_id or row.prompt
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _find_lacks(source: _Source) -> frozenset[Lack]:
    """Return what the first file's rows do not have."""
    row = next(read_rows(source.files[0], source.form))
    lacks = set(_ALWAYS)
    if row.verdict is None:
        lacks.add(Lack.VERDICTS)
    if row.token_ids is None:
        lacks.add(Lack.TOKENS)
    if row.num_tokens is None:
        lacks.add(Lack.LENGTHS)
    if row.is_truncated is None and (row.num_tokens is None or source.limit is None):
        lacks.add(Lack.TRUNCATION)
    if source.limit is None:
        lacks.add(Lack.LIMIT)
    if row.group is None and row.problem_id is None:
        lacks.add(Lack.GROUPS)
    if row.problem_id is None and source.names.find(row.prompt).startswith("prompt-"):
        lacks.add(Lack.PROBLEM_IDS)
    if row.advantage is None:
        lacks.add(Lack.ADVANTAGES)
    if row.rewards:
        lacks.add(Lack.WEIGHTS)
    return frozenset(lacks)
