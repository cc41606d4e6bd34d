from collections.abc import Iterator

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program, TestCase, Verdict
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.run.workers import Workers
from microcoder.judge.sandbox.protocol import LAYERS

ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
NEEDS = {
    name: pytest.mark.skipif(bool(language.find_problem()), reason=language.find_problem())
    for name, language in LANGUAGES.items()
}
NO_NAMESPACES = {layer for layer in LAYERS if not layer.endswith("namespace")}


def make_problem(*tests: tuple[str, str], **options: object) -> Problem:
    """A problem with limits that only a program out of bounds meets, on a slow machine too."""
    settings = {"id": "p", "time_limit_seconds": 5.0, "memory_limit_mib": 128, **options}
    return Problem.model_validate(
        {"tests": [TestCase(input=i, output=o) for i, o in tests], **settings}
    )


@pytest.fixture(scope="session")
def judge_one() -> Iterator[Judge]:
    """One worker, so that programs follow each other in the same sandbox."""
    # Limits as they are written: on a slow machine the measured scale would stretch them.
    with Judge(workers=1, time_scale=1) as judging:
        yield judging


def run(judging: Judge, code: str | None, problem: Problem) -> Verdict:
    """Judge one program."""
    return judging.judge([Program(code)], [problem])[0]


def workers_of(judging: Judge) -> Workers:
    """The threads of a judge that has no processes."""
    assert isinstance(judging._pool, Workers)
    return judging._pool
