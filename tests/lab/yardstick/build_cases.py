"""Makes the yardstick's cases from the judge's own suites of attacks: `python -m lab.yardstick.build_cases` in `tests`.

Forgeries, right programs and pairs of outputs are stored there alone, and edited there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import microcoder.lab.yardstick
from judge.safety_suites import HOSTILE  # pyrefly: ignore[missing-import]
from microcoder.judge.core.types import Outcome
from microcoder.lab.yardstick.cases import DATA_VERSION, Case, Suite, make_id

DATA = Path(microcoder.lab.yardstick.__file__).parent / "data"

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
    "isolation": build_isolation,
    "timeouts": build_timeouts,
}

if __name__ == "__main__":
    for suite, build in SUITES.items():
        (DATA / f"{suite}.jsonl").write_text(write_cases(build()))
