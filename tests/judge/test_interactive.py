"""Interactive problems: a program and an interactor talk, and the end of both decides."""

from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from microcoder.judge import Judge, judge_answers
from microcoder.judge.core.types import (
    Checker,
    Interactor,
    Outcome,
    Problem,
    Program,
    Repeat,
    Verdict,
)
from microcoder.judge.run.interactors import ENDED_EARLY
from microcoder.judge.run.reference import judge_by_reference
from microcoder.judge.run.verdicts import DEADLOCKED
from tests.judge.conftest import NEEDS, run
from tests.judge.interactive_problems import (
    BISECT,
    BY_INTERACTOR,
    CHECKED,
    COUNT,
    CPP_BISECT,
    GUESS,
    guess_problem,
)

INTERACTORS = ["testlib", "kattis", pytest.param("cpp", marks=NEEDS["cpp"])]


@pytest.mark.parametrize("name", INTERACTORS)
def test_interactor_decides(judge_one: Judge, name: str) -> None:
    problem = guess_problem(interactor=BY_INTERACTOR[name])
    right = run(judge_one, BISECT, problem)
    assert right.is_accepted, right.detail
    assert run(judge_one, COUNT, problem).outcome is Outcome.WRONG_ANSWER


def test_its_words_are_told(judge_one: Judge) -> None:
    verdict = run(judge_one, COUNT, guess_problem())
    assert verdict.detail == "test 1: the interactor refused it: too many guesses"
    by_kattis = run(judge_one, COUNT, guess_problem(interactor=BY_INTERACTOR["kattis"]))
    assert by_kattis.detail == "test 1: the interactor refused it: no guess was right"


@NEEDS["cpp"]
def test_program_may_be_built(judge_one: Judge) -> None:
    problem = guess_problem(language="cpp")
    verdict = judge_one.judge([Program(CPP_BISECT, "cpp")], [problem])[0]
    assert verdict.is_accepted, verdict.detail


def test_program_that_reads_alone_is_flushed_as_by_python(judge_one: Judge) -> None:
    """Python's `input` flushes what was printed."""
    verdict = run(judge_one, BISECT.replace(", flush=True", ""), guess_problem())
    assert verdict.is_accepted, verdict.detail


UNFLUSHED = "import sys\nprint(1)\nsys.stdin.readline()\n"


@pytest.mark.parametrize("code", [UNFLUSHED, "input()"], ids=["unflushed", "silent"])
def test_deadlock_is_told(judge_one: Judge, code: str) -> None:
    # Far below the limit on its time: nothing more could happen.
    verdict = run(judge_one, code, guess_problem(time_limit_seconds=60))
    assert verdict.outcome is Outcome.TIME_LIMIT
    assert verdict.detail == f"test 1: {DEADLOCKED}"
    assert verdict.tests[0].wall_seconds < 60


FAILING: dict[str, tuple[Outcome, str]] = {
    "ends at once": (Outcome.WRONG_ANSWER, ""),
    "ends early": (Outcome.WRONG_ANSWER, "print(1)"),
    "crashes": (Outcome.RUNTIME_ERROR, "print(1, flush=True)\ninput()\n1 / 0"),
    "fails after it was right": (Outcome.RUNTIME_ERROR, f"{BISECT}\n1 / 0"),
    "reads on after the end": (Outcome.RUNTIME_ERROR, f"{BISECT}\ninput()"),
    "ends with Kattis' code": (Outcome.RUNTIME_ERROR, "import sys\nsys.exit(42)"),
    "spins": (Outcome.TIME_LIMIT, "while True: pass"),
    "floods with lines": (Outcome.WRONG_ANSWER, "while True: print('9' * 1000)"),
    "says nonsense": (Outcome.WRONG_ANSWER, "print('what?', flush=True)\ninput()"),
    "says what is no text": (
        Outcome.WRONG_ANSWER,
        "import os, sys\nos.write(1, bytes([255, 254, 10]))\nsys.stdin.read()",
    ),
    "does not compile": (Outcome.COMPILE_ERROR, "print(1"),
    "takes too much memory": (Outcome.MEMORY_LIMIT, "held = 'x' * (900 << 20)\nprint(held[0])"),
}
"""The outcome of each program."""


@pytest.mark.parametrize("name", FAILING)
def test_failure_is_told_apart(judge_one: Judge, name: str) -> None:
    outcome, code = FAILING[name]
    verdict = run(judge_one, code, guess_problem(time_limit_seconds=0.5, memory_limit_mib=256))
    assert verdict.outcome is outcome, verdict.detail


def test_end_that_breaks_an_interactor_is_the_programs(judge_one: Judge) -> None:
    """Python's `input` raises where nothing comes any more."""
    asking = "import sys\nprint(input() + input())\nsys.exit(1)"
    verdict = run(judge_one, "print(1)", guess_problem(interactor=Interactor(code=asking)))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.detail == f"test 1: {ENDED_EARLY}"


def test_failure_is_the_programs_whoever_is_seen_to_end_first(judge_one: Judge) -> None:
    """The interactor refuses it since it has crashed; that it did so is the verdict, each time."""
    programs = [Program(f"1 / 0  # {number}") for number in range(60)]
    verdicts = judge_one.judge(programs, [guess_problem()] * len(programs))
    assert {verdict.outcome for verdict in verdicts} == {Outcome.RUNTIME_ERROR}


def test_what_follows_the_decision_is_read_by_nobody(judge_one: Judge) -> None:
    verdict = run(judge_one, f"{BISECT}\nfor n in range(100_000): print(n)", guess_problem())
    assert verdict.is_accepted, verdict.detail


def test_program_is_ended_once_it_is_refused(judge_one: Judge) -> None:
    endless = "import time\nprint('1\\n' * 20, flush=True)\nwhile True: time.sleep(1)"
    verdict = run(judge_one, endless, guess_problem(time_limit_seconds=60))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.detail == "test 1: the interactor refused it: too many guesses"


def test_output_that_breaks_an_interactor_is_wrong(judge_one: Judge) -> None:
    """As for a checker: by breaking it no program avoids its verdict."""
    verdict = run(judge_one, "print('what?', flush=True)\ninput()", guess_problem())
    assert verdict.is_checker_crash
    assert "the interactor crashed on this output" in verdict.detail


@pytest.mark.parametrize(
    "code",
    ["1 / 0", "import sys\nsys.exit(7)", "this is no Python"],
    ids=["raises", "unknown code", "no program"],
)
def test_broken_interactor_scores_nobody(judge_one: Judge, code: str) -> None:
    verdict = run(judge_one, BISECT, guess_problem(interactor=Interactor(code=code)))
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert verdict.is_checker_fault


def test_end_of_the_interactors_output_is_seen(judge_one: Judge) -> None:
    """It says all at once and closes its stdout, and the program reads to the end."""
    telling = (
        "import os, sys\nprint('3 4', flush=True)\nos.close(1)\n"
        "sys.exit(0 if sys.stdin.read().strip() == '7' else 1)"
    )
    adding = "import sys\nprint(sum(map(int, sys.stdin.read().split())))"
    problem = guess_problem(interactor=Interactor(code=telling), time_limit_seconds=20)
    verdict = run(judge_one, adding, problem)
    assert verdict.is_accepted, verdict.detail


def test_checker_judges_what_the_interactor_wrote(judge_one: Judge) -> None:
    right = run(judge_one, BISECT, CHECKED)
    assert right.is_accepted, right.detail
    slower = run(judge_one, f"print(1, flush=True)\ninput()\n{BISECT}", CHECKED)
    assert slower.outcome is Outcome.WRONG_ANSWER
    assert slower.detail == "test 1: the checker refused it: 1 wrong"


def test_own_answers_are_not_asked_about(judge_one: Judge) -> None:
    """An output of an interactive problem is a file for its interactor."""
    assert judge_answers(judge_one.judge, CHECKED).is_accepted


def test_what_was_said_is_no_empty_output(judge_one: Judge) -> None:
    for code in (COUNT, "1 / 0"):
        assert run(judge_one, code, guess_problem()).tests[0].output is None


def test_broken_checker_says_nothing_of_the_interactor(judge_one: Judge) -> None:
    """Nor the other way round: who breaks the one that works gets its zero, in any order."""
    breaking = Program("print('what?', flush=True)\ninput()")
    problem = CHECKED.model_copy(update={"checker": Checker(type="program", code="1 / 0")})
    for programs in ([Program(BISECT), breaking], [breaking, Program(BISECT)]):
        verdicts = judge_one.judge(programs, [problem.model_copy()] * 2)
        for program, verdict in zip(programs, verdicts, strict=True):
            assert verdict.is_checker_crash == (program == breaking), verdict.detail
            assert verdict.is_checker_fault == (program != breaking), verdict.detail


def test_what_the_interactor_wrote_is_compared(judge_one: Judge) -> None:
    problem = guess_problem(
        tests=({"input": "500", "output": "0"},), checker=Checker(type="tokens")
    )
    right = run(judge_one, BISECT, problem)
    assert right.is_accepted, right.detail
    slower = run(judge_one, f"print(1, flush=True)\ninput()\n{BISECT}", problem)
    assert slower.outcome is Outcome.WRONG_ANSWER


@pytest.mark.parametrize("code", [BISECT, COUNT, "print(1)", "1 / 0", ""])
def test_reference_judge_agrees(judge_one: Judge, code: str) -> None:
    problem = guess_problem()
    plain = judge_by_reference(Program(code), problem, stop="first_failure")
    assert plain.outcome is run(judge_one, code, problem).outcome


def test_many_lines_are_exchanged(judge_one: Judge) -> None:
    echoing = (
        "import sys\nfor turn in range(20_000):\n    print(turn, flush=True)\n"
        "    if sys.stdin.readline() != f'{turn}\\n': sys.exit(1)\nprint('end', flush=True)"
    )
    answering = "while (said := input()) != 'end': print(said, flush=True)"
    problem = guess_problem(interactor=Interactor(code=echoing), time_limit_seconds=10)
    verdict = run(judge_one, answering, problem)
    assert verdict.is_accepted, verdict.detail


def test_function_does_not_go_with_an_interactor() -> None:
    with pytest.raises(ValidationError, match="talks over stdin and stdout"):
        guess_problem(fn_name="solve")


def test_kattis_interactor_takes_no_checker() -> None:
    with pytest.raises(ValidationError, match="decides by itself"):
        guess_problem(
            interactor=BY_INTERACTOR["kattis"], checker=Checker(type="program", code="pass")
        )


LOOK = """
import os, sys
seen = []
for path in ("input", "answer", "output", "feedback", "../input", "/input", "main.py"):
    if os.path.exists(path):
        seen.append(path)
for folder, folders, names in os.walk("/tmp"):
    seen += [name for name in names if name in ("input", "answer")]
for number in range(3, 64):
    try:
        os.fstat(number)
        seen.append(number)
    except OSError:
        pass
"""
"""Looks for what belongs to the interactor."""
HOSTILE = {
    "looks for its files": f"{LOOK}\nassert not seen, seen",
    "asks for it in /proc": (
        "import glob\nfor path in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    assert b'answer' not in open(path, 'rb').read()"
    ),
    "kills all that it may": (
        "import os, signal\nfor number in range(2, 400):\n"
        "    try:\n"
        "        if number != os.getpid(): os.kill(number, signal.SIGKILL)\n"
        "    except OSError: pass\n"
        "try:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError: pass"
    ),
    "writes to its stdin": (
        "import os\ntry:\n    os.write(0, b'correct\\n')\n    raise SystemExit('written')\n"
        "except OSError: pass"
    ),
    "reads its stdout": (
        "import os\ntry:\n    os.read(1, 1)\n    raise SystemExit('read')\nexcept OSError: pass"
    ),
    "makes its pipes wait for nobody": (
        "import os\nos.set_blocking(0, False)\nos.set_blocking(1, False)\n"
        "os.set_blocking(0, True)\nos.set_blocking(1, True)"
    ),
    "makes its pipes small": (
        "import fcntl\ntry:\n    fcntl.fcntl(1, 1031, 4096)\n    fcntl.fcntl(0, 1031, 4096)\n"
        "except OSError: pass"
    ),
}
"""What a program tries before it answers well: it neither gains by it, nor breaks anything."""


@pytest.mark.parametrize("name", HOSTILE)
def test_program_reaches_nothing_of_the_interactor(judge_one: Judge, name: str) -> None:
    verdict = run(judge_one, f"{HOSTILE[name]}\n{BISECT}", guess_problem())
    assert verdict.is_accepted, verdict.detail


ENDLESS = {
    "a line without end": (
        "import sys\nwhile True: sys.stdout.write('9' * 1_000_000)",
        (Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT),
    ),
    "a number of many digits": (
        "print('9' * 5_000_000, flush=True)\ninput()",
        (Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT),
    ),
    "output after the decision": (
        f"{BISECT}\nwhile True: print('9' * 1000)",
        (Outcome.TIME_LIMIT,),
    ),
    "a thread that writes on": (
        f"import threading\n{BISECT}\ndef write():\n    while True: print(1)\n"
        "threading.Thread(target=write).start()",
        (Outcome.TIME_LIMIT,),
    ),
    "a stop": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        (Outcome.TIME_LIMIT,),
    ),
    "its own kill": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        (Outcome.RUNTIME_ERROR,),
    ),
    "closed streams": (
        "import os, time\nos.close(1)\nos.close(0)\nwhile True: time.sleep(1)",
        (Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT),
    ),
}
"""Programs that do not end by themselves, or badly, and the outcomes that they may have."""


def checked_short(**fields: object) -> Problem:
    return guess_problem(time_limit_seconds=0.5, **fields)


@pytest.fixture(scope="module")
def judge_short() -> Iterator[Judge]:
    """A judge whose interactors have a second."""
    with Judge(workers=1, time_scale=1, checker_seconds=1) as judging:
        yield judging


@pytest.mark.parametrize("name", ENDLESS)
def test_hostile_program_is_bounded(judge_short: Judge, name: str) -> None:
    code, outcomes = ENDLESS[name]
    verdict = run(judge_short, code, checked_short())
    assert verdict.outcome in outcomes, verdict.detail
    assert run(judge_short, BISECT, checked_short()).is_accepted


INTERACTORS_THAT_HARM = {
    "sleeps": "import time\ntime.sleep(100_000)",
    "floods": "import sys\nwhile True: sys.stdout.write('9' * 1_000_000)",
    "never answers": "import sys\nsys.stdin.read()",
    "spins": "while True: pass",
    "fills its folder": "file = open('output', 'wb')\nwhile True: file.write(bytes(1 << 20))",
    "takes all memory": "held = []\nwhile True: held.append(bytearray(b'x' * (8 << 20)))",
    "makes its stdin wait for nobody": (
        "import os, sys\nos.set_blocking(0, False)\nos.set_blocking(1, False)\nsys.exit(1)"
    ),
    "leaves a huge file": (
        "import sys\nopen(sys.argv[2], 'wb').write(b'x' * (15 << 20))\nsys.exit(1)"
    ),
}
"""Interactors that never accept; none may hold the judge up, or cost another problem anything."""


@pytest.mark.parametrize("name", INTERACTORS_THAT_HARM)
def test_hostile_interactor_is_bounded(judge_short: Judge, name: str) -> None:
    problem = checked_short(interactor=Interactor(code=INTERACTORS_THAT_HARM[name]))
    assert not run(judge_short, BISECT, problem).is_accepted
    assert run(judge_short, BISECT, checked_short()).is_accepted


def test_interactor_that_does_not_end_is_ended(judge_short: Judge) -> None:
    """It has a checker's time after the program's end, not as long as the program could wait."""
    sleeping = Interactor(code=INTERACTORS_THAT_HARM["sleeps"])
    problem = guess_problem(interactor=sleeping, time_limit_seconds=60)
    assert run(judge_short, "print(1)", problem).is_checker_crash


def test_verdict_says_as_much_in_a_second_judge(judge_one: Judge) -> None:
    """What a program said is no luck: outcome and words are the same."""

    def tell(verdict: Verdict) -> tuple[object, ...]:
        return verdict.outcome, verdict.detail

    problem = guess_problem()
    with Judge(workers=2, time_scale=1) as other:
        for code in (COUNT, "print(1)", "print(1, flush=True)\ninput()\n1 / 0", GUESS):
            assert tell(run(judge_one, code, problem)) == tell(run(other, code, problem))


COIN = """
import sys

said = sys.stdin.readline()
print(said.strip(), flush=True)
sys.stdin.read()
sys.exit(0 if said == "1\\n" else 1)
"""
"""Accepts who says 1, whatever was said before; repeats what was said."""
GUESS_AGAIN = """
import time

coin = time.time_ns() // 1000 % 2
print(coin, flush=True)
if input() == "0":
    while time.process_time() < 0.215: pass
"""
"""Guesses, and where that was wrong takes just so much time that it is timed again."""


def test_timing_again_is_no_second_guess(judge_one: Judge) -> None:
    problem = guess_problem(
        interactor=Interactor(code=COIN),
        time_limit_seconds=0.2,
        tests=({"input": "", "output": ""},),
    )
    programs = [Program(f"{GUESS_AGAIN}\n# {number}") for number in range(6)]
    for verdict in judge_one.judge(programs, [problem] * len(programs)):
        # A run that counts in place of another is never accepted where that was refused.
        reasons = [uncounted.reason for uncounted in verdict.uncounted]
        assert not (verdict.is_accepted and Repeat.NEAR_LIMIT in reasons)
