"""The judge of a run: in this process, behind HTTP, or on the nodes of the run's Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from microcoder.errors import ConfigError, EvaluatorFault
from microcoder.evaluator import Judge
from microcoder.evaluator.judge import OnVerdict
from microcoder.serving.judging import BatchJudge
from microcoder.training.config import EvaluatorConfig
from microcoder.types import Problem, Program, Verdict

TOKEN_VARIABLE = "MICROCODER_JUDGE_TOKEN"
_START_PATIENCE_SECONDS = 10.0
_ON_NODES = {"level": "of each node of the Ray cluster", "enforced": [], "missing": {}}


@contextmanager
def open_judge(config: EvaluatorConfig) -> Iterator[tuple[BatchJudge, Mapping[str, Any]]]:
    """Open the recipe's judge; yield it, and what is enforced around programs, for the manifest.

    Raises:
        ConfigError: a package is missing, or the service wants a token or stops tests by another rule.
        EvaluatorFault: a sandbox cannot be closed, or the service was not reached.
    """
    if config.backend == "http":
        with _connect(config) as (client, isolation):
            yield client, isolation
    elif config.backend == "ray":
        judge = _OnNodes(config)
        try:
            yield judge, _ON_NODES
        finally:
            judge.close()
    else:
        with Judge(workers=config.workers, stop=config.stop, unsafe=config.unsafe_sandbox) as judge:
            yield judge, judge.isolation.as_record()


@contextmanager
def _connect(config: EvaluatorConfig) -> Iterator[tuple[BatchJudge, Mapping[str, Any]]]:
    try:
        from microcoder.serving.client import JudgeClient
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; type: pip install 'microcoder[serve]'") from None
    assert config.url is not None
    with JudgeClient(config.url, token=os.environ.get(TOKEN_VARIABLE)) as client:
        try:
            about = client.about(patience_seconds=_START_PATIENCE_SECONDS)
        except ConfigError as error:
            raise ConfigError(f"{error}; its token is read from the environment, {TOKEN_VARIABLE}") from None
        except EvaluatorFault as fault:
            raise EvaluatorFault(
                f"no judge at evaluator.url = {config.url} ({fault}); start one there: "
                f"microcoder serve --stop {config.stop}"
            ) from None
        if about["stop"] != config.stop:
            raise ConfigError(
                f"{config.url} stops tests by the rule {about['stop']}, the recipe asks for {config.stop}; "
                f"start it with --stop {config.stop}, or pass --evaluator.stop {about['stop']}"
            )
        yield client, about["isolation"]


class _OnNodes:
    """A judge on each node, opened at its first use: the engine joins the cluster after judges are opened."""

    def __init__(self, config: EvaluatorConfig) -> None:
        self._config = config
        self._judge: Any = None

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        if self._judge is None:
            from microcoder.serving.ray_judge import RayJudge

            # The trainer has reserved the processors; judging and updating take turns.
            self._judge = RayJudge(
                workers_per_node=self._config.workers,
                processors_per_worker=0,
                stop=self._config.stop,
                unsafe=self._config.unsafe_sandbox,
            )
        return self._judge.judge(programs, problems, on_verdict=on_verdict)

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
