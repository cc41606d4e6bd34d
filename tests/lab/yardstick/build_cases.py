"""Makes the yardstick's cases from the evaluator's own suites: `python -m yardstick.build_cases` in `tests`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import microcoder.lab.yardstick
from judge.fidelity_programs import CALLS, INPUT, PROGRAMS  # pyrefly: ignore[missing-import]
from judge.forging_programs import FORGERIES  # pyrefly: ignore[missing-import]
from judge.output_pairs import PAIRS  # pyrefly: ignore[missing-import]
from judge.safety_suites import HOSTILE, KINDS  # pyrefly: ignore[missing-import]
from microcoder.judge.core.types import Checker, Outcome
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
_ABOUT_THE_MACHINE = re.compile(
    r"argument|environment|platform|interpreter|user and|uname|own source|source of|call stack|caller|traced|trace|"
    r"line of an|recursion|stack|random of|import of main|linecache|glob|temporary|file|memory|dis and|set order|"
    r"time|locale|zone|subprocess|malloc|digits|peak|module|warning|names of|\bdate|numpy prints|hundreds"
)
"""In the title: what tells of the interpreter or the machine rather than of the input; no contest asks for it."""
_CAPTURE = """def print(*values, _say=print, **options):
    text = " ".join(map(str, values))
    _say("HARM" if text.startswith("HARM") else text, **options)
"""
_MOST_CHARACTERS = 20_000
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


def build_fidelity() -> Iterator[Case]:
    """Yield right programs of unusual form, with the output that plain Python gives."""
    for name, code in PROGRAMS.items():
        if _ABOUT_THE_MACHINE.search(name):
            continue
        output = run_plainly(code)
        is_text = output is not None and all(c.isprintable() or c in "\n\t" for c in output)
        if output is not None and is_text and output.strip() and len(code) + len(output) < _MOST_CHARACTERS:
            needs = _packages(code)
            yield _make("fidelity", name, code, ((INPUT.decode(), output),), flaw="V6", expect=True, needs=needs,
                        why="Plain Python ends it with exit code 0 and this output.")  # fmt: skip
    for name, code in CALLS.items():
        if not _ABOUT_THE_MACHINE.search(name):
            yield _make("fidelity", f"call: {name}", code, (("[1, 2]\n3", "[3, 6]"),) * 2, flaw="V6", expect=True,
                        needs=("function", *_packages(code)), fn_name="solve",
                        why="Its function returns what the tests ask for, in every test.")  # fmt: skip


def _packages(code: str) -> tuple[str, ...]:
    return ("packages",) if re.search(r"numpy|sorted_?containers|SortedList|\bnp\.", code) else ()


def run_plainly(code: str) -> str | None:
    """Return what `python main.py` writes; None where it fails, or where the text is no UTF-8."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.py").write_bytes(code.encode())
        Path(folder, "stdin").write_bytes(INPUT)
        environment = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
        command, quiet = [sys.executable, "main.py"], subprocess.DEVNULL
        with open(Path(folder, "stdin"), "rb") as stdin, open(Path(folder, "stdout"), "w+b") as stdout:
            plain = subprocess.run(
                command, stdin=stdin, stdout=stdout, stderr=quiet, cwd=folder, env=environment, timeout=120, check=False
            )
        try:
            return Path(folder, "stdout").read_bytes().decode() if plain.returncode == 0 else None
        except UnicodeDecodeError:
            return None


def build_pairs() -> Iterator[Case]:
    """Yield programs that write a text, for the comparison alone."""
    for checker, is_right, output, expected in PAIRS:
        if checker != Checker() or not output.isprintable():
            continue
        yield _make("pairs", f"{output[:40]!r} for {expected[:40]!r}", f"import sys\nsys.stdout.write({output!r})\n",
                    (("1\n", expected + "\n"),), flaw="V6" if is_right else "V5", expect=is_right,
                    why="The same answer in another spelling." if is_right else "Another answer.")  # fmt: skip


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
    "fidelity": build_fidelity,
    "pairs": build_pairs,
    "isolation": build_isolation,
    "timeouts": build_timeouts,
}

if __name__ == "__main__":
    for suite, build in SUITES.items():
        (DATA / f"{suite}.jsonl").write_text(write_cases(build()))
