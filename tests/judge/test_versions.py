"""A problem chooses the version of its language: of C++ a standard; of Python it may name the one that we run on."""

from __future__ import annotations

import platform
from contextlib import closing

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES, check_language, find_language
from microcoder.judge.languages.environment import name_environment
from microcoder.judge.languages.interpreter import CURRENT_VERSION
from microcoder.judge.languages.packages import PROFILES
from microcoder.judge.run.problem import PreparedProblem
from microcoder.judge.run.session import Session

from .conftest import make_problem  # pyrefly: ignore[missing-import]

SINCE_CPP23 = "#include <iostream>\nint main() { auto n = 3uz; if consteval { n = 0; } std::cout << n << std::endl; }"
TELLS_STANDARD = "#include <iostream>\nint main() { std::cout << __cplusplus << std::endl; }"

needs_cpp = pytest.mark.skipif(bool(LANGUAGES["cpp"].find_problem()), reason=LANGUAGES["cpp"].find_problem())


def test_a_problem_may_name_the_python_that_we_run_on_and_no_other(judge_one: Judge) -> None:
    code = "import sys\nprint('%d.%d' % sys.version_info[:2])"
    for language in ("python", f"python{CURRENT_VERSION}"):
        problem = make_problem(("", CURRENT_VERSION), language_version=CURRENT_VERSION)
        (verdict,) = judge_one.judge([Program(code, language)], [problem])
        assert verdict.is_accepted, verdict.detail
    version = "3.12" if CURRENT_VERSION != "3.12" else "3.13"
    problem = make_problem(("", ""), language_version=version)
    with pytest.raises(EvaluatorFault, match=f"no Python {version} here: .* `microcoder serve` there"):
        judge_one.judge([Program("print(1)")], [problem])
    with closing(Session()) as session:
        verdict = session.judge(Program("print(1)"), PreparedProblem(problem))
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert name_environment(PROFILES["none"], [])["Python"] == platform.python_version()


@needs_cpp
def test_a_problem_chooses_its_standard_of_cpp(judge_one: Judge) -> None:
    def judge(code: str, expected: str, version: str, language: str = "cpp") -> Outcome:
        problem = make_problem(("", expected), language=language, language_version=version)
        return judge_one.judge([Program(code, language)], [problem])[0].outcome

    assert judge(TELLS_STANDARD, "201703", "17") is Outcome.ACCEPTED
    assert judge(TELLS_STANDARD, "201703", "", "cpp17") is Outcome.ACCEPTED
    assert judge(TELLS_STANDARD, "201703", "") is judge(TELLS_STANDARD, "201703", "20") is Outcome.WRONG_ANSWER
    assert judge(SINCE_CPP23, "3", "23") is Outcome.ACCEPTED


def test_versions_that_do_not_exist_or_that_another_asks_for_are_refused() -> None:
    for language, version, message in (
        ("python", "2.7", "use one of 3.11, 3.12, 3.13, 3.14, or leave it out"),
        ("cpp", "98", "for cpp use one of 17, 20, 23, or leave it out for 20"),
        ("cpp17", "20", "contradict each other"),
        ("rust", "1", "use one of"),
    ):
        with pytest.raises(DataError, match=message):
            find_language(language, version)
    problem = make_problem(("", ""), language="cpp")
    for language in ("cpp20", "c++"):
        check_language(Program("", language), problem, "it")
    with pytest.raises(DataError, match="it is in 'cpp17', problem p wants 'cpp 20'"):
        check_language(Program("", "cpp17"), problem, "it")
