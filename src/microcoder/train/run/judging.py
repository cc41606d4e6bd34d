"""The judge of a run: in this process, behind HTTP, or on the nodes of its Ray cluster."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from microcoder.judge import Judge, JudgingEnvironment
from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.fleet.judge import BaseJudge
from microcoder.judge.languages.packages import digest_languages, load_profile
from microcoder.train.recipe.judge import EvaluatorConfig

TOKEN_VARIABLE = "MICROCODER_JUDGE_TOKEN"
"""Variable of the environment that holds the token of `microcoder serve`."""
_START_PATIENCE_SECONDS = 10.0
"""Time that a service has to answer: it may be starting beside this run."""


@contextmanager
def open_judge(config: EvaluatorConfig) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Open the recipe's judge; yield it, with its isolation and environment for the manifest.

    With `ray` the judge is None: verl's reward workers judge, each by a judge of its own.
    """
    if isinstance(config.backend, tuple):
        with connect(config) as (client, record):
            yield client, record
    elif config.backend == "ray":
        yield None, _describe_nodes(config)
    else:
        with Judge(workers=config.workers, **config.judge_options()) as judge:
            record = {
                "isolation": judge.isolation.as_record(),
                "environment": judge.environment.as_record(),
            }
            yield judge, record


def _describe_nodes(config: EvaluatorConfig) -> dict[str, Any]:
    """Return isolation and environment of judges on a Ray cluster, as far as known here."""
    level = "of each node of the Ray cluster"
    profile = load_profile(config.packages)
    environment = JudgingEnvironment(level, profile, languages=digest_languages())
    return {
        "isolation": {"level": level, "enforced": [], "missing": {}},
        "environment": environment.as_record(),
    }


@contextmanager
def connect(config: EvaluatorConfig) -> Iterator[tuple[BaseJudge, Mapping[str, Any]]]:
    """Connect to a recipe's judge over HTTP, at one address or several.

    Yields what `open_judge` does.
    """
    from microcoder.judge.fleet.http import JudgeClient, TokenRefused

    def check(url: str, about: Mapping[str, Any]) -> None:
        """Raise ConfigError for a service with other rules; called again when a service has
        restarted.
        """
        _check_service(config, url, about)

    # A service may be restarted with other rules during a run.
    with JudgeClient(config.backend, token=os.environ.get(TOKEN_VARIABLE), check=check) as client:
        try:
            about = client.about(patience_seconds=_START_PATIENCE_SECONDS)
        except TokenRefused as error:
            raise ConfigError(
                f"{error}; its token is read from the environment, {TOKEN_VARIABLE}"
            ) from None
        except EvaluatorFault as fault:
            raise EvaluatorFault(
                f"no judge at evaluator.backend ({fault}); start one there: microcoder serve "
                f"--stop {config.stop}"
            ) from None
        yield client, {name: about[name] for name in ("isolation", "environment")}


def _check_service(config: EvaluatorConfig, url: str, about: Mapping[str, Any]) -> None:
    """Raise ConfigError if a service's stop rule or packages are not the recipe's."""
    if about["stop"] != config.stop:
        raise ConfigError(
            f"{url} stops tests by the rule {about['stop']}, the recipe asks for {config.stop}; "
            f"start it with --stop {config.stop}, or pass --evaluator.stop {about['stop']}"
        )
    ours = load_profile(config.packages)
    theirs = about["environment"]["packages"]
    if theirs["digest"] != ours.digest:
        raise ConfigError(
            f"{url} lets programs import the packages {theirs['profile']} {theirs['digest']}, "
            f"the recipe {ours.label}; start it with --packages {config.packages}, or pass "
            "--evaluator.packages with its own"
        )
