"""The judge of a run: in this process, behind HTTP, or on the nodes of the run's Ray cluster."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from microcoder.judge import Judge, JudgingEnvironment
from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.core.installation import how_to_install
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.protocols import BatchJudge, Judging, OnVerdict
from microcoder.judge.languages.environment import digest_languages
from microcoder.judge.languages.packages import load_profile
from microcoder.train.recipe.judge import EvaluatorConfig

TOKEN_VARIABLE = "MICROCODER_JUDGE_TOKEN"
_START_PATIENCE_SECONDS = 10.0
_PROGRAM_BYTES = 1 << 18
"""Room for a program beside its problem, in one request."""
_LOG = logging.getLogger(__name__)


@contextmanager
def open_judge(config: EvaluatorConfig, problems: Sequence[Problem]) -> Iterator[tuple[BatchJudge, Mapping[str, Any]]]:
    """Open the recipe's judge; yield it, with its isolation and environment for the manifest."""
    if config.backend == "http":
        with connect(config, problems) as (client, held):
            yield client, held
    elif config.backend == "ray":
        profile, level = load_profile(config.packages), "of each node of the Ray cluster"
        on_nodes = JudgingEnvironment(level, profile, languages=digest_languages()).as_record()
        isolation = {"level": level, "enforced": [], "missing": {}}
        yield _OnNodes(), {"isolation": isolation, "environment": on_nodes}
    else:
        with Judge(workers=config.workers, **config.judge_options()) as judge:
            yield judge, {"isolation": judge.isolation.as_record(), "environment": judge.environment.as_record()}


@contextmanager
def connect(config: EvaluatorConfig, problems: Sequence[Problem]) -> Iterator[tuple[Judging, Mapping[str, Any]]]:
    """Open the judge of a recipe behind HTTP, at one address or several; see `open_judge`."""
    try:
        from microcoder.judge.fleet.http import JudgeClient, TokenRefused
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; type: {how_to_install('serve')}") from None
    check = partial(_check_service, config, problems)
    with JudgeClient(config.url, token=os.environ.get(TOKEN_VARIABLE), check=check) as client:
        try:
            about = client.about(patience_seconds=_START_PATIENCE_SECONDS)
        except TokenRefused as error:
            raise ConfigError(f"{error}; its token is read from the environment, {TOKEN_VARIABLE}") from None
        except EvaluatorFault as fault:
            raise EvaluatorFault(
                f"no judge at evaluator.url ({fault}); start one there: microcoder serve --stop {config.stop}"
            ) from None
        yield client, {name: about[name] for name in ("isolation", "environment")}
        if client.outages:
            gone = ", ".join(f"{url} {number} times" for url, number in sorted(client.outages.items()))
            _LOG.warning("judges were unreachable and skipped meanwhile: %s", gone)


def _check_service(config: EvaluatorConfig, problems: Sequence[Problem], url: str, about: Mapping[str, Any]) -> None:
    """Refuse a service that would judge differently, or not all problems; also one that restarts otherwise."""
    if about["stop"] != config.stop:
        raise ConfigError(
            f"{url} stops tests by the rule {about['stop']}, the recipe asks for {config.stop}; "
            f"start it with --stop {config.stop}, or pass --evaluator.stop {about['stop']}"
        )
    for needed, limit, option in _find_needs(problems, about["limits"]):
        raise ConfigError(f"{needed}, {url} takes at most {limit:g}; start it with {option}, or leave the problem out")
    if about["environment"]["packages"]["digest"] != load_profile(config.packages).digest:
        theirs = about["environment"]["packages"]
        raise ConfigError(
            f"{url} lets programs import the packages {theirs['profile']} {theirs['digest']}, the recipe "
            f"{load_profile(config.packages).label}; start it with --packages {config.packages}, or pass "
            "--evaluator.packages with its own"
        )


def _find_needs(problems: Sequence[Problem], limits: Mapping[str, float]) -> Iterator[tuple[str, float, str]]:
    """Yield by which limits of a service the problems are too large: the largest need, the limit, and its flag."""
    if not problems:
        return
    longest = max(problems, key=lambda problem: problem.time_limit_seconds)
    if (seconds := longest.time_limit_seconds) > (limit := limits["max_cpu_seconds"]):
        yield f"problem {longest.id} has a time limit of {seconds:g} s", limit, f"--max-cpu-seconds {seconds:g}"
    widest = max(problems, key=lambda problem: problem.memory_limit_mib)
    if (mib := widest.memory_limit_mib) > (limit := limits["max_memory_mib"]):
        yield f"problem {widest.id} has a memory limit of {mib} MiB", limit, f"--max-memory-mib {mib}"
    fullest = max(problems, key=lambda problem: len(problem.tests))
    if (num_tests := len(fullest.tests)) > (limit := limits["max_tests"]):
        yield f"problem {fullest.id} has {num_tests} tests", limit, f"--max-tests {num_tests}"
    largest = max(problems, key=lambda problem: sum(len(test.input) + len(test.output) for test in problem.tests))
    num_bytes = len(largest.model_dump_json().encode("utf-8", "surrogatepass")) + _PROGRAM_BYTES
    if (mib := math.ceil(num_bytes / (1 << 20))) > (limit := limits["max_body_mib"]):
        yield f"problem {largest.id} is a request of {mib} MiB", limit, f"--max-body-mib {mib}"


class _OnNodes:
    """Stands for the judges of verl's reward workers, one a node; this process judges nothing."""

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        raise EvaluatorFault(
            'evaluator.backend = "ray" judges in verl\'s reward workers alone; use "process" or "http"'
        )
