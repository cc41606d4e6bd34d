"""Languages that need a runtime, and language files of the user's own: what they get,
and what they do not.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES_VARIABLE, add_language, find_language
from tests.judge import hostile_runtimes as hostile
from tests.judge.conftest import NEEDS, make_problem

AWK = """\
name = "awk"
source_file = "main.awk"
compilers = ["sh"]
build = ["{compiler}", "-c", "cp main.awk main"]
readable = ["/bin", "/usr/bin"]
install = "apt install mawk"

[runtime]
commands = ["mawk", "gawk"]
program_file = "main.awk"
run = ["{runtime}", "-f", "main.awk"]
address_space_mib = 512
"""
AWK_PROBES = """
{ sum = $1 + $2 }
END {
    if (getline byte < "/proc/self/exe" == 1 || getline line < "/proc/1/status" == 1) print "HARM \
proc";
    if (getline line < "/etc/passwd" == 1) print "HARM reads";
    if (system("true") == 0) print "HARM starts";
    print sum
}
"""


@pytest.fixture(autouse=True)
def own_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the languages of a test, in this process and for those after it."""
    monkeypatch.setenv(LANGUAGES_VARIABLE, "")


def check(judge: Judge, language: str, code: str, outcome: Outcome, number: int = 1) -> None:
    seconds = 0.3 if outcome is Outcome.TIME_LIMIT else 20.0
    limits = {"memory_limit_mib": 256, "time_limit_seconds": seconds}
    test = (f"{number} {3 - number}\n", "3\n")
    (verdict,) = judge.judge(
        [Program(code, language)], [make_problem(test, language=language, **limits)]
    )
    assert verdict.outcome is outcome, (verdict.detail, verdict.tests)


PRINTS_JAVA = " { public static void main(String[] a) { System.out.println(4); } }"
ENDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "java": {
        # One program, which is built once.
        "probes": (hostile.JAVA, Outcome.ACCEPTED, 0),
        "deep": (hostile.JAVA, Outcome.ACCEPTED, 1),
        "threads": (hostile.JAVA, Outcome.ACCEPTED, 2),
        "heap": (hostile.JAVA, Outcome.MEMORY_LIMIT, 3),
        "threads spin": (hostile.JAVA, Outcome.TIME_LIMIT, 4),
        "throws": (hostile.JAVA, Outcome.RUNTIME_ERROR, 5),
        "adds": (hostile.JAVA, Outcome.ACCEPTED, 6),
        "wrong": (
            "class Helper { }\npublic final class Peragrams" + PRINTS_JAVA,
            Outcome.WRONG_ANSWER,
        ),
        "behind an interface": (
            "interface Thing { }\nclass Unnamed" + PRINTS_JAVA,
            Outcome.WRONG_ANSWER,
        ),
        "no java": ("public class Main { int x = ; }", Outcome.COMPILE_ERROR),
    },
    "javascript": {
        "adds": (hostile.JAVASCRIPT_ADDS, Outcome.ACCEPTED),
        "wrong": (hostile.JAVASCRIPT_ADDS.replace("a + b", "a - b"), Outcome.WRONG_ANSWER),
        "no javascript": ("let x = ;", Outcome.COMPILE_ERROR),
        "throws": ("throw new Error('no')", Outcome.RUNTIME_ERROR),
        "deep": (hostile.JAVASCRIPT_RECURSES, Outcome.ACCEPTED),
        "probes": (hostile.JAVASCRIPT_PROBES, Outcome.ACCEPTED),
        "workers spin": (hostile.JAVASCRIPT_SPINS_IN_WORKERS, Outcome.TIME_LIMIT),
        "heap": (hostile.JAVASCRIPT_TAKES_HEAP, Outcome.MEMORY_LIMIT),
        "buffers": (hostile.JAVASCRIPT_TAKES_BUFFERS, Outcome.MEMORY_LIMIT),
        "leaves": (hostile.LEAVES_A_FILE, Outcome.ACCEPTED),
        "finds nothing left": (hostile.FINDS_A_FILE, Outcome.ACCEPTED),
    },
}


@pytest.mark.parametrize(
    ("language", "name"),
    [pytest.param(of, name, marks=NEEDS[of]) for of, programs in ENDS.items() for name in programs],
)
def test_programs_of_a_runtime_end_as_they_deserve(
    judge_one: Judge,
    language: str,
    name: str,
) -> None:
    check(judge_one, language, *ENDS[language][name])


@NEEDS["javascript"]
def test_a_checker_may_be_written_in_a_language_with_a_runtime(judge_one: Judge) -> None:
    code = (
        "const fs = require('fs'); process.exit(fs.readFileSync(process.argv[3], "
        "'utf8').trim() === '3' ? 0 : 1);"
    )
    checker = {"type": "program", "code": code, "language": "javascript", "protocol": "testlib"}
    asked = make_problem(("1 2\n", "3\n"), checker=checker)
    right, wrong = judge_one.judge([Program("print(3)"), Program("print(4)")], [asked, asked])
    assert right.outcome == Outcome.ACCEPTED, (
        right,
        wrong,
    )
    assert wrong.outcome == Outcome.WRONG_ANSWER, (
        right,
        wrong,
    )


def test_a_runtime_of_ones_own_sees_nothing_of_the_machine(
    judge_one: Judge, tmp_path: Path
) -> None:
    if not (shutil.which("mawk") or shutil.which("gawk")):
        pytest.skip("no awk")
    (tmp_path / "awk.toml").write_text(AWK)
    add_language(tmp_path / "awk.toml")
    check(judge_one, "awk", AWK_PROBES, Outcome.ACCEPTED)


def test_a_language_file_that_says_something_wrong_is_refused(tmp_path: Path) -> None:
    for old, new, message in (
        (
            '"-f", "main.awk"]\n',
            '"-f", "{main}"]\n',
            r"awk.toml line 11: runtime.run: .*\{main\}.*run knows \{runtime\}",
        ),
        (
            "address_space_mib = 512",
            "address_space = 512",
            "awk.toml line 12: runtime.address_space: unknown key",
        ),
        ('name = "awk"', 'name = "py"', "py is a language already; use another name"),
        ('name = "awk"', "name = awk", "at line 1"),
        ('build = ["{compiler}", "-c", "cp main.awk main"]\n', "", "a runtime needs a `build`"),
    ):
        assert old in AWK
        (tmp_path / "awk.toml").write_text(AWK.replace(old, new))
        with pytest.raises(ConfigError, match=message):
            add_language(tmp_path / "awk.toml")
        with pytest.raises(DataError, match="language = 'awk'; use one of"):
            find_language("awk")
