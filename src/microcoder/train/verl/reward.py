"""The judge as verl's reward manager, `reward.reward_manager.name=microcoder`.

It judges responses as they end. It is a manager and not a reward function, since a manager sees the
tokens: whether a response was cut off, and by which limit.
"""

import asyncio
import atexit
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from microcoder.data.formats.rows import problem_of_reward
from microcoder.data.rowfiles import read_file
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem
from microcoder.judge.fleet.judge import BaseJudge
from microcoder.train.algorithm.masking import draw_uniform
from microcoder.train.algorithm.scoring import REWARD_DRAW
from microcoder.train.recipe.judge import EvaluatorConfig
from microcoder.train.recipe.recipe import build_extractor, build_rewards
from microcoder.train.run.judging import connect
from microcoder.train.verl.names import COLUMN, problem_name
from microcoder.train.verl.rows import FIELD, ResponseJudgement, build_reader
from microcoder.train.verl.settings import PluginSettings, read_settings, refuse_idle

_PROBLEMS_KEPT = 256
"""Problems that a reward worker keeps in memory: a problem's samples end one after another."""


def open_judge(evaluator: EvaluatorConfig) -> BaseJudge:
    """Return a reward worker's judge, closed at exit.

    It is in the worker's process (with `ray`, a worker per node), or behind HTTP.
    """
    opened = ExitStack()
    atexit.register(opened.close)
    if isinstance(evaluator.backend, tuple):
        client, _ = opened.enter_context(connect(evaluator))
        return client
    return opened.enter_context(Judge(workers=evaluator.workers, **evaluator.judge_options()))


class ProblemFile:
    """Problems of a JSON-lines file by id, each read when needed.

    The file may be larger than memory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_again: dict[Any, Callable[[], Any]] = {}
        for row in read_file(path, "problem file"):
            self._read_again[row.values.get("id")] = row.read_again
        self.find = lru_cache(_PROBLEMS_KEPT)(self._find)

    def _find(self, problem_id: str) -> Problem:
        if problem_id not in self._read_again:
            raise DataError(
                f"{self._path} has no problem {problem_id!r}, which a row of the data names"
            )
        return Problem.model_validate(self._read_again[problem_id]())


class JudgeRewardManager(RewardManagerBase):
    """verl's reward manager: response -> program -> verdict -> reward.

    It takes one response per call, and many calls at once.
    """

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any = None,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.settings: PluginSettings = read_settings(config)
        # A worker may be started by another trainer than ours.
        refuse_idle(config, self.settings)
        self.rewards = build_rewards(self.settings.rewards)
        self.extract = build_extractor(self.settings.extractor)
        self.reader = build_reader(config, tokenizer)
        self.judge = open_judge(self.settings.evaluator)
        self.problems = None
        if self.settings.problems is not None:
            self.problems = ProblemFile(self.settings.problems)
        self._limit = config.data.max_response_length

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Return `reward_score` (nan if unscored) and `reward_extra_info` of a response.

        The latter has what verl's metrics average, and the verdict for our trainer.
        """
        # The last of a session's outputs is the response.
        item = data[-1:][0]
        ids = item.batch["responses"]
        # Responses are padded on the right.
        length = int(item.batch["attention_mask"][-len(ids) :].sum())
        judged = await self.judge_response(item.non_tensor_batch, ids[:length].tolist())
        verdict = judged.verdict
        total = judged.reward.total
        score = math.nan if total is None else total
        accuracy = float(verdict.is_accepted) if verdict.is_scorable else math.nan
        extra = {
            "score": score,
            "acc": accuracy,
            "outcome": str(verdict.outcome),
            "tests_passed": float(verdict.tests_passed),
            "tests_total": float(verdict.tests_total),
            FIELD: judged.as_json(),
        }
        return {"reward_score": score, "reward_extra_info": extra}

    async def judge_response(
        self, row: Mapping[str, Any], token_ids: list[int]
    ) -> ResponseJudgement:
        """Return verdict and reward of a response, given as token ids, to a row of the data."""
        extra = row.get("extra_info") or {}
        # It reads a file, which would hold up all other responses.
        problem = await asyncio.to_thread(self._find_problem, row, extra)
        name = problem_name(extra, row.get("data_source", ""))
        sampling = row.get(COLUMN) or {"max_response_tokens": self._limit, "step": 0}
        (rollout,) = self.reader.read(
            name, "", [token_ids], max_response_tokens=sampling["max_response_tokens"]
        )
        program = self.extract(
            rollout.completion, is_truncated=rollout.is_truncated, language=problem.language
        )
        verdict = await self.judge.judge_async(program, problem)
        draw = draw_uniform(
            seed=self.settings.seed,
            step=sampling["step"],
            problem_id=f"{REWARD_DRAW}{name}",
            sample_index=int(row.get("session_id", 0)),
        )
        reward = self.rewards(problem, rollout, program, verdict, draw=draw)
        return ResponseJudgement(verdict, reward, problem.tier)

    def _find_problem(self, row: Mapping[str, Any], extra: Mapping[str, Any]) -> Problem:
        """Return the problem of a row: by its id from our file, or from the row itself."""
        if self.problems is not None and "problem_id" in extra:
            return self.problems.find(str(extra["problem_id"]))
        tests = (row.get("reward_model") or {}).get("ground_truth")
        # Rows of public data sets hold their tests themselves.
        return problem_of_reward(row.get("data_source"), tests, extra)
