"""An OpenEnv environment: `reset` returns a problem, `step` judges the response.

`make_app` serves it.
"""

import json
import os
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from openenv.core.env_server import Environment, create_app
from openenv.core.env_server.types import Action, Observation, State

from microcoder.integrations.shared import SharedJudge, as_figures, read_corpus, shared_judge
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.prompts import instruct
from microcoder.judge.core.rewards import score_verdict
from microcoder.judge.core.types import Problem

CORPUS = "MICROCODER_CORPUS"
"""Environment variable with the path of the problems."""

JUDGE = "MICROCODER_JUDGE"
"""Environment variable with the judge's options as JSON."""

_MOST_SESSIONS = 1024
"""Most sessions of a server at a time."""


class CodeAction(Action):
    """An answer: the full response, and whether it reached the length limit.

    Its last code block is judged.
    """

    response: str
    is_truncated: bool = False


class CodeObservation(Observation):
    """After `reset` the problem, after `step` the result in `metadata`.

    `reward` is None if the sandbox failed.
    """

    problem_id: str
    prompt: str = ""


class CodeEnvironment(Environment[CodeAction, CodeObservation, State]):
    """One session; all sessions of a server share its problems and its judge."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, problems: Sequence[Problem], judge: SharedJudge) -> None:
        super().__init__()
        self._problems = {problem.id: problem for problem in problems}
        self._judge = judge
        self._problem: Problem | None = None
        self._state = State(step_count=0)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        problem_id: str | None = None,
    ) -> CodeObservation:
        """Return the problem of that id, or one drawn by the seed.

        Raises:
            DataError: there is no such problem.
        """
        name = problem_id
        if name is None:
            # The same seed asks the same problem, on every server.
            name = random.Random(seed).choice(list(self._problems))
        if name not in self._problems:
            raise DataError(
                f"unknown problem {name!r}; the first of {len(self._problems)} is "
                f"{min(self._problems)!r}"
            )
        self._problem = self._problems[name]
        self._state = State(episode_id=episode_id, step_count=0)
        return CodeObservation(problem_id=name, prompt=instruct(self._problem))

    def step(self, action: CodeAction, timeout_s: float | None = None) -> CodeObservation:
        """Judge an answer; raises like `Judge.judge`, and DataError before the first `reset`."""
        problem = self._problem
        if problem is None:
            raise DataError("no problem was asked yet; call reset() first")
        self._state.step_count += 1
        program = extract_program(
            action.response,
            is_truncated=action.is_truncated,
            language=problem.language,
        )
        (verdict,) = self._judge.judge([program], [problem])
        return CodeObservation(
            done=True,
            reward=score_verdict(verdict),
            problem_id=problem.id,
            metadata=as_figures(verdict),
        )

    @property
    def state(self) -> State:
        """OpenEnv's state; `step_count` is the number of answers judged since the last `reset`."""
        return self._state


def make_app() -> object:
    """Return OpenEnv's server, an ASGI application, to be called by `uvicorn --factory`.

    Two environment variables configure it. MICROCODER_CORPUS is a folder of `microcoder data build`
    or a file of rows. MICROCODER_JUDGE is a JSON object with options of `Judge`, or the `url` of a
    service.

    Raises:
        ConfigError, DataError: the corpus or an option is missing or wrong.
    """
    corpus = os.environ.get(CORPUS)
    if not corpus:
        raise ConfigError(f"no corpus is set; type: export {CORPUS}=problems.jsonl")
    try:
        # `dict` refuses numbers and texts, which are JSON, too.
        text = os.environ.get(JUDGE) or "{}"
        options = dict(json.loads(text))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{JUDGE} is not a JSON object ({error}); write it as {JUDGE}='{{\"workers\": 4}}'"
        ) from None
    # Read once, before the first session: a server makes an environment for each.
    problems = read_corpus(Path(corpus))
    environment = partial(CodeEnvironment, problems, shared_judge(**options))
    return create_app(
        environment,
        CodeAction,
        CodeObservation,
        env_name="microcoder",
        max_concurrent_envs=_MOST_SESSIONS,
    )
