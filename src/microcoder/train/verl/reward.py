"""The judge as verl's reward manager, `reward.reward_manager.name=microcoder`: judges responses as they end.

A manager, not a reward function, since it sees the tokens: whether a response was cut off, and by which limit.
"""

import asyncio
import atexit
import math
from collections.abc import Mapping
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
from microcoder.train.verl.rows import FIELD, Judged, build_reader
from microcoder.train.verl.settings import PluginSettings, read_settings, refuse_idle

_PROBLEMS_KEPT = 256


def open_judge(evaluator: EvaluatorConfig) -> BaseJudge:
    """Return a reward worker's judge, in its process (with `ray`, a worker per node) or behind HTTP; closed at exit."""
    opened = ExitStack()
    atexit.register(opened.close)
    if isinstance(evaluator.backend, tuple):
        client, _ = opened.enter_context(connect(evaluator))
        return client
    return opened.enter_context(Judge(workers=evaluator.workers, **evaluator.judge_options()))


class ProblemFile:
    """Problems of a JSON-lines file by id, each read when needed: the file may be larger than memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = {
            row.values.get("id"): row.read_again for row in read_file(path, "problem file")
        }
        self.find = lru_cache(_PROBLEMS_KEPT)(self._find)

    def _find(self, problem_id: str) -> Problem:
        if problem_id not in self._rows:
            raise DataError(
                f"{self._path} has no problem {problem_id!r}, which a row of the data names"
            )
        return Problem.model_validate(self._rows[problem_id]())


class JudgeRewardManager(RewardManagerBase):
    """verl's reward manager: response -> program -> verdict -> reward, one response per call, many calls at once."""

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
        refuse_idle(config, self.settings)
        self.rewards, self.extract = (
            build_rewards(self.settings.rewards),
            build_extractor(self.settings.extractor),
        )
        self.reader, self.judge = (
            build_reader(config, tokenizer),
            open_judge(self.settings.evaluator),
        )
        self.problems = (
            None if self.settings.problems is None else ProblemFile(self.settings.problems)
        )
        self._limit = config.data.max_response_length

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Return `reward_score`, nan if unscored, and `reward_extra_info` (verdict, tests passed) of a response."""
        item = data[-1:][0]
        row, ids = item.non_tensor_batch, item.batch["responses"]
        length = int(item.batch["attention_mask"][-len(ids) :].sum())
        judged = await self.judge_response(row, ids[:length].tolist())
        verdict, total = judged.verdict, judged.worth.total
        score = math.nan if total is None else total
        extra = {
            "score": score,
            "acc": float(verdict.is_accepted) if verdict.is_scorable else math.nan,
            "outcome": str(verdict.outcome),
            "tests_passed": float(verdict.tests_passed),
            "tests_total": float(verdict.tests_total),
            FIELD: judged.as_json(),
        }
        return {"reward_score": score, "reward_extra_info": extra}

    async def judge_response(self, row: Mapping[str, Any], token_ids: list[int]) -> Judged:
        """Return verdict and reward of one response, given as token ids, to a row of the data."""
        extra, source = row.get("extra_info") or {}, row.get("data_source", "")
        problem = await asyncio.to_thread(self._find_problem, row, extra)
        name, sampling = (
            problem_name(extra, source),
            row.get(COLUMN) or {"max_response_tokens": self._limit, "step": 0},
        )
        limit = sampling["max_response_tokens"]
        (rollout,) = self.reader.read(name, "", [token_ids], max_response_tokens=limit)
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
        return Judged(
            verdict, self.rewards(problem, rollout, program, verdict, draw=draw), problem.tier
        )

    def _find_problem(self, row: Mapping[str, Any], extra: Mapping[str, Any]) -> Problem:
        if self.problems is not None and "problem_id" in extra:
            return self.problems.find(str(extra["problem_id"]))
        tests = (row.get("reward_model") or {}).get("ground_truth")
        return problem_of_reward(row.get("data_source"), tests, extra)
