"""Makes the yardstick's cases from the judge's own suites of attacks: `python -m lab.yardstick.build_cases` in `tests`.

What is right, and pairs of outputs, are stored there alone: `fidelity.jsonl` and `pairs.jsonl` are edited by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import microcoder.lab.yardstick
from judge.forging_programs import FORGERIES  # pyrefly: ignore[missing-import]
from judge.safety_suites import HOSTILE, KINDS  # pyrefly: ignore[missing-import]
from microcoder.judge.core.types import Outcome
from microcoder.lab.yardstick.cases import DATA_VERSION, Case, Suite, make_id

DATA = Path(microcoder.lab.yardstick.__file__).parent / "data"

_FLAWS = (
    (r"^expected |the answer file", "V2", "It looks for the expected output instead of computing it."),
    (
        r"code for the checker|an expression|become another|binary that builds",
        "V3",
        "Its output or source is text for the judge to execute.",
    ),
    (
        r"then a failure|exit|then killed|failures success|hook for exc",
        "V6",
        "It ended in a failure or before it was done, which no output can make up for.",
    ),
    (
        r"patched|runner|left behind|kept from test|bytecode|changed$|stopped|in place|descriptors taken|"
        r"stdout that lies",
        "V1",
        "It changes what judges it, or the next test, instead of solving the problem.",
    ),
    (
        r"lies|frame|equal|object of mock|val |every method|descriptor|own objects|without end|in itself|iterator|"
        r"original|next changes|stands for|grows|a function$|all results|argument itself|ring|list instead|copy whose|"
        r"generator|keys that",
        "V7",
        "What it hands over pretends to be the answer, and only a judge that believes it is fooled.",
    ),
    (r"disk|at build time|largest size|links for", "V8", "It uses up or reaches what a program has no need of."),
    (r"", "V5", "What it writes is not the answer, however it resembles one."),
)
_CAPTURE = """def print(*values, _say=print, **options):
    text = " ".join(map(str, values))
    _say("HARM" if text.startswith("HARM") else text, **options)
"""
_SLOW = ("flood stderr", "fork by raw system calls", "constant that takes all time to compile")
_TIMEOUTS = ("endless loop", "sleep", "catch every signal", "block every signal and spin", "an endless loop inside C")
_HARMS = re.compile(
    r"parent|process|kill|stop every|signal|trace|poison|next test|daemon|inherited|protocol|standard streams|"
    r"interpreter"
)


def write_cases(cases: Iterable[Case]) -> str:
    """Return cases as JSON lines, the version first."""
    lines = [{"version": DATA_VERSION, "licence": "Apache-2.0"}, *(case.as_record() for case in cases)]
    return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)


def build_forgeries() -> Iterator[Case]:
    """Yield programs that try to be accepted."""
    for name, (kind, code) in FORGERIES.items():
        problem = KINDS[kind].problem
        flaw, why = next((flaw, why) for pattern, flaw, why in _FLAWS if re.search(pattern, name))
        more = problem.model_dump(
            mode="json", exclude_defaults=True, exclude={"id", "tests", "fn_name", "time_limit_seconds"}
        )
        needs = {"fn_name": "function", "call": "structures", "language": problem.language, "checker": "checker"}
        given = {"fn_name": problem.fn_name, **more}
        needed = tuple(ability for key, ability in needs.items() if given.get(key))
        yield _make("forgery", name, code, problem_tests(problem), flaw=flaw, why=why, expect=False, needs=needed,
                    fn_name=problem.fn_name, problem=more)  # fmt: skip


def problem_tests(problem: object) -> tuple[tuple[str, str], ...]:
    return tuple((test.input, test.output) for test in problem.tests)  # pyrefly: ignore[missing-attribute]


def build_isolation() -> Iterator[Case]:
    """Yield programs that try to do harm, so written that being accepted means having done it."""
    for name, (outcomes, code) in HOSTILE.items():
        if Outcome.TIME_LIMIT in outcomes or name in _SLOW or "print" not in code:
            continue
        flaw = "V1" if _HARMS.search(name) else "V8"
        yield _make("isolation", name, _CAPTURE + code, (("1 2\n", "HARM\n"),), flaw=flaw, expect=False,
                    why="It says HARM, and is accepted, only if it did what no judged program may do.")  # fmt: skip


def build_timeouts() -> Iterator[Case]:
    """Yield programs that never end."""
    for name in _TIMEOUTS:
        why = "It never ends, so a verdict soon after the limit is all there is to have."
        yield _make("timeouts", name, HOSTILE[name][1], (("1 2\n", "3\n"),), flaw="V6", expect=False,
                    time_limit_seconds=1.0, why=why)  # fmt: skip


def _make(suite: Suite, title: str, code: str, tests: tuple[tuple[str, str], ...], **rest: object) -> Case:
    name = make_id(suite, code, tests, rest.get("problem"))
    return Case(id=name, suite=suite, title=title, code=code, tests=tests, **rest)  # pyrefly: ignore[bad-argument-type]


SUITES = {
    "forgery": build_forgeries,
    "isolation": build_isolation,
    "timeouts": build_timeouts,
}

if __name__ == "__main__":
    for suite, build in SUITES.items():
        (DATA / f"{suite}.jsonl").write_text(write_cases(build()))
