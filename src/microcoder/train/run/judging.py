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
_START_PATIENCE_SECONDS = 10.0


@contextmanager
def open_judge(config: EvaluatorConfig) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Open the recipe's judge (None with `ray`); yield it, with its isolation and environment for the manifest."""
    if isinstance(config.backend, tuple):
        with connect(config) as (client, held):
            yield client, held
    elif config.backend == "ray":
        profile, level = load_profile(config.packages), "of each node of the Ray cluster"
        on_nodes = JudgingEnvironment(level, profile, languages=digest_languages()).as_record()
        isolation = {"level": level, "enforced": [], "missing": {}}
        # Verl's reward workers judge, each by a judge of its own.
        yield None, {"isolation": isolation, "environment": on_nodes}
    else:
        with Judge(workers=config.workers, **config.judge_options()) as judge:
            yield (
                judge,
                {
                    "isolation": judge.isolation.as_record(),
                    "environment": judge.environment.as_record(),
                },
            )


@contextmanager
def connect(config: EvaluatorConfig) -> Iterator[tuple[BaseJudge, Mapping[str, Any]]]:
    """Connect to a recipe's judge over HTTP, at one address or several; yields what `open_judge` does."""
    from microcoder.judge.fleet.http import JudgeClient, TokenRefused

    def check(url: str, about: Mapping[str, Any]) -> None:
        """Raise ConfigError if a service's stop rule or packages are not the recipe's; also after it restarted."""
        if about["stop"] != config.stop:
            raise ConfigError(
                f"{url} stops tests by the rule {about['stop']}, the recipe asks for {config.stop}; "
                f"start it with --stop {config.stop}, or pass --evaluator.stop {about['stop']}"
            )
        ours, theirs = load_profile(config.packages), about["environment"]["packages"]
        if theirs["digest"] != ours.digest:
            raise ConfigError(
                f"{url} lets programs import the packages {theirs['profile']} {theirs['digest']}, the recipe "
                f"{ours.label}; start it with --packages {config.packages}, or pass --evaluator.packages with its own"
            )

    with JudgeClient(config.backend, token=os.environ.get(TOKEN_VARIABLE), check=check) as client:
        try:
            about = client.about(patience_seconds=_START_PATIENCE_SECONDS)
        except TokenRefused as error:
            raise ConfigError(
                f"{error}; its token is read from the environment, {TOKEN_VARIABLE}"
            ) from None
        except EvaluatorFault as fault:
            raise EvaluatorFault(
                f"no judge at evaluator.backend ({fault}); start one there: microcoder serve --stop {config.stop}"
            ) from None
        yield client, {name: about[name] for name in ("isolation", "environment")}
