"""The judge as a reward function of TRL's trainers; see docs/integrations.md."""

import asyncio
from collections.abc import Mapping, Sequence, Sized
from typing import Any, Unpack

from microcoder.data.formats.rows import find_record, to_problem
from microcoder.data.formats.values import text_of
from microcoder.integrations.shared import Mode, SharedJudgeKeys, check_mode, score, shared_judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict

_OF_TRL = (
    "prompts",
    "completions",
    "completion_ids",
    "trainer_state",
    "log_extra",
    "log_metric",
    "environments",
)
"""Arguments of TRL's call that are no columns of the data set."""

Completions = Sequence[str | Sequence[Mapping[str, Any]]]
"""Texts, or the messages of chats."""


class CodeReward:
    """A reward function: 1.0, 0.0, or None if the sandbox failed.

    TRL leaves a reward of None out of its group.
    """

    # TRL names a reward's metrics by this, which an instance does not have by itself.
    __name__ = "code_reward"

    def __init__(
        self,
        mode: Mode = "all",
        *,
        format: str | None = None,
        **judge: Unpack[SharedJudgeKeys],
    ) -> None:
        """Set the options; the judge starts with the first program.

        Args:
            mode: `all`, 1 where every test passed; `fraction`, the share of the tests that passed.
            format: row format of the data set's columns (docs/rows.md); None to detect it.
            judge: options of `Judge`, such as `workers`, or `url`; a process has one judge.

        Raises:
            ConfigError: an option is wrong, or differs from that of this process's judge.
        """
        self._mode: Mode = mode
        self._format = format
        self._judge = shared_judge(**check_mode(mode, judge))

    def __call__(self, completions: Completions, **columns: object) -> list[float | None]:
        """Return one reward per completion.

        Raises:
            DataError: a row's columns hold no problem that can be judged.
        """
        programs, problems = self._read(completions, columns)
        return self._score(self._judge.judge(programs, problems), columns)

    def _read(
        self,
        completions: Completions,
        columns: Mapping[str, Any],
    ) -> tuple[list[Program], list[Problem]]:
        """Return the program of each completion, and its problem."""
        # One text or chat would pass for a list of letters or of messages.
        is_single_chat = any(isinstance(completion, Mapping) for completion in completions)
        if isinstance(completions, str) or is_single_chat:
            raise DataError(
                "completions are a list, also of one: [text], or [[message, ...]] of a chat"
            )
        num = len(completions)
        prompts = columns.get("prompts") or [None] * num
        _check_column("prompts", prompts, num)
        own = {name: column for name, column in columns.items() if name not in _OF_TRL}
        for name, column in own.items():
            _check_column(name, column, num)
        programs = []
        problems = []
        for index, completion in enumerate(completions):
            row = {name: column[index] for name, column in own.items()}
            # Our own record takes no further fields; other rows are told apart by their prompt,
            # too.
            if not find_record(row):
                row = {"prompt": prompts[index], **row}
            problem = to_problem(row, self._format)
            problems.append(problem)
            programs.append(extract_program(text_of(completion), language=problem.language))
        return programs, problems

    def _score(self, verdicts: Sequence[Verdict], columns: Mapping[str, Any]) -> list[float | None]:
        """Return the rewards, and log shares of outcomes where TRL offers to."""
        log_metric = columns.get("log_metric")
        if log_metric:
            for outcome in (Outcome.SANDBOX_FAULT, Outcome.NO_CODE, Outcome.TIME_LIMIT):
                num = sum(verdict.outcome is outcome for verdict in verdicts)
                log_metric(f"code/{outcome}_share", num / len(verdicts))
        log_extra = columns.get("log_extra")
        if log_extra:
            log_extra("outcome", [str(verdict.outcome) for verdict in verdicts])
        return [score(verdict, self._mode) for verdict in verdicts]


def _check_column(name: str, column: Sized, num: int) -> None:
    """Raise DataError unless a column has one value for each completion."""
    # A text of the right length would be cut into letters.
    if isinstance(column, str) or len(column) != num:
        raise DataError(f"column {name} is no list of {num} values, one for each completion")


class AsyncCodeReward(CodeReward):
    """`CodeReward` for TRL's event loop.

    It judges while other asynchronous reward functions wait for theirs.
    """

    async def __call__(self, completions: Completions, **columns: object) -> list[float | None]:  # pyrefly: ignore[bad-override]
        """Return one reward per completion; raises like `CodeReward`."""
        # Rows may hold megabytes of tests: off the event loop.
        programs, problems = await asyncio.to_thread(self._read, completions, columns)
        verdicts = await asyncio.gather(*map(self._judge.judge_async, programs, problems))
        return self._score(verdicts, columns)
