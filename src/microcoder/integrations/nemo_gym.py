"""A resources server of NeMo-Gym; its `app.py` is `CodeServer.run_webserver()`."""

import asyncio
from typing import Any

from fastapi import HTTPException
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.config_types import AggregateMetrics, AggregateMetricsRequest
from pydantic import ConfigDict, Field

from microcoder.data.formats.rows import to_problem
from microcoder.integrations.shared import as_figures, shared_judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.rewards import score_verdict

_COLUMNS = {"responses_create_params", "verifier_metadata"}
"""Columns of a row that its problem is read from."""


class CodeServerConfig(BaseResourcesServerConfig):
    """The server's keys in its YAML file."""

    judge: dict[str, Any] = Field(default_factory=dict)
    """Options of `Judge`, such as `workers: 8`, or `url`, that of a judge service."""


class CodeVerifyRequest(BaseVerifyRequest):
    """A row of a data set with a model's answer."""

    model_config = ConfigDict(extra="allow")

    verifier_metadata: dict[str, Any]


class CodeVerifyResponse(BaseVerifyResponse):
    """The verdict, with the row's other columns but not its tests."""

    model_config = ConfigDict(extra="allow")

    mask_sample: bool
    """Whether the sandbox failed: `reward` is then meaningless and must be ignored."""
    instance_config: dict[str, bool]
    """`mask_sample` under the name that NeMo-RL reads."""
    extracted_model_code: str | None
    outcome: str
    detail: str


class CodeServer(SimpleResourcesServer):
    """Judges answers to rows in NeMo-Gym's form, ours in `verifier_metadata.problem` included."""

    config: CodeServerConfig

    def model_post_init(self, context: object) -> None:
        """Raise ConfigError for unknown options, before the first request."""
        shared_judge(**self.config.judge)

    async def verify(self, body: CodeVerifyRequest) -> CodeVerifyResponse:
        """Judge an answer; a row that cannot be judged is the client's error, 422."""
        row = body.model_dump(mode="json", include=_COLUMNS)
        try:
            # Rows may hold megabytes of tests: off the event loop.
            problem = await asyncio.to_thread(to_problem, row)
        except DataError as error:
            raise HTTPException(422, str(error)) from None
        is_truncated = body.response.incomplete_details is not None
        program = extract_program(
            body.response.output_text or "",
            is_truncated=is_truncated,
            language=problem.language,
        )
        verdict = await shared_judge().judge_async(program, problem)
        reward = score_verdict(verdict)
        return CodeVerifyResponse(
            # Tests may be megabytes, and the client has them.
            **body.model_dump(exclude={"verifier_metadata"}),
            # NeMo-Gym has no reward of None; the mask says that this one is none.
            reward=0.0 if reward is None else reward,
            mask_sample=reward is None,
            instance_config={"mask_sample": reward is None},
            extracted_model_code=program.code,
            **as_figures(verdict),
        )

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """Return NeMo-Gym's figures without the masked samples, and how many samples were
        masked."""
        # The reward of a masked one is a placeholder, and would count as a wrong answer.
        scored = [response for response in body.verify_responses if not response.get("mask_sample")]
        request = AggregateMetricsRequest(verify_responses=scored)
        metrics = await super().aggregate_metrics(request)
        num_masked = len(body.verify_responses) - len(scored)
        figures = {**metrics.agent_metrics, "num_masked": num_masked}
        return metrics.model_copy(update={"agent_metrics": figures})
