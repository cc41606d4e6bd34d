"""The judge as a reward function of TRL's trainers; see docs/integrations.md."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.data.formats.rows import find_record, to_problem
from microcoder.data.formats.values import text_of
from microcoder.integrations.shared import Mode, check_mode, score, shared_judge
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
Completions = Sequence[str | Sequence[Mapping[str, Any]]]
"""Texts, or the messages of chats."""


class CodeReward:
    """A reward function: 1.0, 0.0, or None if the sandbox failed, which TRL leaves out of its group."""

    __name__ = "code_reward"

    def __init__(self, mode: Mode = "all", *, format: str | None = None, **judge: Any) -> None:
        """Set the options; the judge starts with the first program.

        Args:
            mode: `all`, 1 where every test passed; `fraction`, the share of the tests that passed.
            format: row format of the data set's columns (docs/rows.md); None to detect it.
            judge: options of `Judge`, such as `workers`, or `url`; a process has one judge.

        Raises:
            ConfigError: an option is wrong, or differs from that of this process's judge.
        """
        self._mode, self._format = mode, format
        self._judge = shared_judge(**check_mode(mode, judge))

    def __call__(self, completions: Completions, **columns: Any) -> list[float | None]:
        """Return one reward per completion.

        Raises:
            DataError: a row's columns hold no problem that can be judged.
        """
        programs, problems = self._read(completions, columns)
        return self._score(self._judge.judge(programs, problems), columns)

    def _read(
        self, completions: Completions, columns: Mapping[str, Any]
    ) -> tuple[list[Program], list[Problem]]:
        if isinstance(completions, str) or any(isinstance(one, Mapping) for one in completions):
            raise DataError(
                "completions are a list, also of one: [text], or [[message, ...]] of a chat"
            )
        names = [name for name in columns if name not in _OF_TRL]
        prompts = columns.get("prompts") or [None] * len(completions)
        for name, column in (("prompts", prompts), *((name, columns[name]) for name in names)):
            if isinstance(column, str) or len(column) != len(completions):
                raise DataError(
                    f"column {name} is no list of {len(completions)} values, one for each completion"
                )
        problems = []
        for index, prompt in enumerate(prompts):
            row = {name: columns[name][index] for name in names}
            # Our own record takes no further fields; other rows are told apart by their prompt, too.
            problems.append(
                to_problem(row if find_record(row) else {"prompt": prompt, **row}, self._format)
            )
        texts = map(text_of, completions)
        found = zip(texts, problems, strict=True)
        return [
            extract_program(text, language=problem.language) for text, problem in found
        ], problems

    def _score(self, verdicts: Sequence[Verdict], columns: Mapping[str, Any]) -> list[float | None]:
        if log_metric := columns.get("log_metric"):
            for name in (Outcome.SANDBOX_FAULT, Outcome.NO_CODE, Outcome.TIME_LIMIT):
                log_metric(
                    f"code/{name}_share",
                    sum(one.outcome is name for one in verdicts) / len(verdicts),
                )
        if log_extra := columns.get("log_extra"):
            log_extra("outcome", [str(verdict.outcome) for verdict in verdicts])
        return [score(verdict, self._mode) for verdict in verdicts]


class AsyncCodeReward(CodeReward):
    """`CodeReward` for TRL's event loop: judges while other asynchronous reward functions wait for theirs."""

    async def __call__(self, completions: Completions, **columns: Any) -> list[float | None]:  # pyrefly: ignore[bad-override]
        """Return one reward per completion; raises like `CodeReward`."""
        programs, problems = await asyncio.to_thread(self._read, completions, columns)
        verdicts = await asyncio.gather(*map(self._judge.judge_async, programs, problems))
        return self._score(verdicts, columns)
