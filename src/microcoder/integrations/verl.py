"""The judge as the reward function of a stock verl; see docs/integrations.md.

verl has no reward of None. So a program on which the sandbox failed each time ends the run. With
`on_fault=leave_out` and one of our advantage estimators
(`algorithm.adv_estimator=microcoder_grpo`) the response is left out of its group instead: of mean,
deviation and gradient.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from microcoder.data.formats.rows import problem_of_reward
from microcoder.integrations.shared import (
    Mode,
    SharedJudgeKeys,
    as_figures,
    check_mode,
    fault_of,
    score,
    shared_judge,
)
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extract import extract_program


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    mode: Mode = "all",
    on_fault: Literal["raise", "leave_out"] = "raise",
    reward_router_address: str | None = None,
    reward_model_tokenizer: object = None,
    **judge: Unpack[SharedJudgeKeys],
) -> dict[str, float | str]:
    """Return `score` and every field of the verdict, with the same keys for all responses.

    verl makes metrics of those that are numbers.

    Args:
        data_source: the row's, like `ground_truth` and `extra_info`; docs/rows.md lists what these
            may hold.
        solution_str: the response.
        ground_truth: the tests.
        extra_info: further fields of the problem; `problem` may hold our whole record.
        mode: `all`, 1 where every test passed; `fraction`, the share of the tests that passed.
        on_fault: what to do if the sandbox fails each time: `raise`, or `leave_out`, a score of
            nan.
        reward_router_address: verl's reward model; not used here.
        reward_model_tokenizer: likewise.
        judge: options of `Judge`, such as `workers`, or `url`; each of verl's reward workers has
            one judge.

    Raises:
        ConfigError: an option is wrong.
        DataError: the row holds no problem that can be judged.
        EvaluatorFault: the sandbox failed each time, and `on_fault` is `raise`.
    """
    # verl passes on what a config says, whatever the annotation here.
    if on_fault not in ("raise", "leave_out"):
        raise ConfigError(f'on_fault = {on_fault!r}; use "raise" or "leave_out"')
    judging = shared_judge(**check_mode(mode, judge))
    problem = problem_of_reward(data_source, ground_truth, extra_info)
    program = extract_program(solution_str, language=problem.language)
    verdict = await judging.judge_async(program, problem)
    value = score(verdict, mode)
    if value is None and on_fault == "raise":
        raise fault_of(verdict)
    reward = math.nan if value is None else value
    return {"score": reward, "acc": reward, **as_figures(verdict)}


def compute_score_sync(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    mode: Mode = "all",
    on_fault: Literal["raise", "leave_out"] = "raise",
    reward_router_address: str | None = None,
    reward_model_tokenizer: object = None,
    **judge: Unpack[SharedJudgeKeys],
) -> dict[str, float | str]:
    """Same as `compute_score`, for verl's manager `remote`.

    Its workers wait for one program at a time.
    """
    scoring = compute_score(
        data_source,
        solution_str,
        ground_truth,
        extra_info,
        mode=mode,
        on_fault=on_fault,
        reward_router_address=reward_router_address,
        reward_model_tokenizer=reward_model_tokenizer,
        **judge,
    )
    return asyncio.run(scoring)
