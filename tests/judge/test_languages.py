"""What a built language gets and does not, and its versions: of C++ a standard;
of Python the one that we run on.
"""

import platform
from contextlib import closing

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import check_language, find_language
from microcoder.judge.languages.definition import CURRENT_VERSION
from microcoder.judge.languages.packages import PROFILES, name_environment
from microcoder.judge.run.judging import Session
from microcoder.judge.run.verdicts import PreparedProblem
from tests.judge.conftest import NEEDS, make_problem

RECURSES = """
#include <cstdio>
int depth(int n) { volatile char room[1000]; room[0] = 1; return n ? depth(n - 1) + room[0] : 0; }
int main() { int n; if (std::scanf("%d", &n) == 1) std::printf("%d\\n", depth(n) - n + 3); }
"""
THREADS = """
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>
int main() {
    int num_threads, mib_each;
    if (std::scanf("%d%d", &num_threads, &mib_each) != 2) return 1;
    std::atomic<int> ready{0};
    std::vector<std::vector<char>> held(num_threads);
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; i++)
        threads.emplace_back([&, i] {
            held[i].assign(1 + (mib_each << 20), 1);
            for (ready++; ready < num_threads;) std::this_thread::yield();
        });
    for (auto& thread : threads) thread.join();
    int sum = 3 - num_threads;
    for (auto& part : held) sum += part[part.size() / 2];
    std::printf("%d\\n", sum);
}
"""
SANDBOX_PROBES = """
#include <cstdio>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int main() {
    if (fork() >= 0) std::puts("forked");
    if (std::fopen("/etc/passwd", "r")) std::puts("read a file");
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) std::puts("opened a socket");
    execl("/bin/sh", "sh", "-c", "echo executed", nullptr);
    const char *arguments[] = {"ld", "--version", nullptr}, *loader = "/lib64/ld-linux-x86-64.so.2";
    syscall(SYS_execveat, AT_FDCWD, loader, arguments, nullptr, AT_EMPTY_PATH);
    std::puts("3");
}
"""


def judge_cpp(judging: Judge, code: str, *inputs: str, **options: object) -> list[Outcome]:
    """Judge one program, which is built once, on each input; its answer is 3."""
    problems = [make_problem((given, "3\n"), language="cpp", **options) for given in inputs]
    outcomes = []
    for verdict in judging.judge([Program(code, "c++")] * len(problems), problems):
        outcomes.append(verdict.outcome)
    return outcomes


@NEEDS["cpp"]
def test_cpp_is_closed_in_and_has_its_threads_memory_and_stack(judge_one: Judge) -> None:
    assert judge_cpp(judge_one, SANDBOX_PROBES, "") == [Outcome.ACCEPTED]
    large = {"memory_limit_mib": 512, "time_limit_seconds": 30.0}
    fits = ["1 100", "8 50", "256 1"]
    expected = [Outcome.ACCEPTED] * len(fits) + [Outcome.MEMORY_LIMIT]
    assert judge_cpp(judge_one, THREADS, *fits, "8 70", **large) == expected
    assert judge_cpp(judge_one, RECURSES, "80000", time_limit_seconds=10.0) == [Outcome.ACCEPTED]
    # 195 MiB of stack.
    deep = judge_cpp(judge_one, RECURSES, "195000", "2000000000", **large)
    assert deep == [Outcome.ACCEPTED, Outcome.MEMORY_LIMIT]


def test_what_cannot_be_built_or_called_is_refused(
    judge_one: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_language("C++").name == "cpp"
    for language, options, error, message in (
        (
            "cobol",
            {},
            DataError,
            "language = 'cobol'; use one of cpp, java, javascript, python, or add",
        ),
        ("cpp", {"fn_name": "f"}, DataError, "only Python programs can be called"),
        (
            "cpp",
            {},
            EvaluatorFault,
            r"no compiler for cpp: none of g\+\+, clang\+\+ found; install one",
        ),
    ):
        if error is EvaluatorFault:
            monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(error, match=message):
            judge_one.judge(
                [Program("x", language)], [make_problem(("1", "2"), language=language, **options)]
            )


SINCE_CPP23 = (
    "#include <iostream>\n"
    "int main() { auto n = 3uz; if consteval { n = 0; } std::cout << n << std::endl; }"
)
TELLS_STANDARD = "#include <iostream>\nint main() { std::cout << __cplusplus << std::endl; }"


def test_a_problem_may_name_the_python_that_we_run_on_and_no_other(judge_one: Judge) -> None:
    code = "import sys\nprint('%d.%d' % sys.version_info[:2])"
    for language in ("python", f"python{CURRENT_VERSION}"):
        problem = make_problem(("", CURRENT_VERSION), language_version=CURRENT_VERSION)
        (verdict,) = judge_one.judge([Program(code, language)], [problem])
        assert verdict.is_accepted, verdict.detail
    version = "3.12" if CURRENT_VERSION != "3.12" else "3.13"
    problem = make_problem(("", ""), language_version=version)
    with pytest.raises(
        EvaluatorFault, match=f"no Python {version} here: .* `microcoder serve` there"
    ):
        judge_one.judge([Program("print(1)")], [problem])
    with closing(Session()) as session:
        verdict = session.judge(Program("print(1)"), PreparedProblem(problem))
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert name_environment(PROFILES["none"], [])["Python"] == platform.python_version()


@NEEDS["cpp"]
def test_a_problem_chooses_its_standard_of_cpp(judge_one: Judge) -> None:
    def judge(code: str, expected: str, version: str, language: str = "cpp") -> Outcome:
        problem = make_problem(("", expected), language=language, language_version=version)
        return judge_one.judge([Program(code, language)], [problem])[0].outcome

    assert judge(TELLS_STANDARD, "201703", "17") is Outcome.ACCEPTED
    assert judge(TELLS_STANDARD, "201703", "", "cpp17") is Outcome.ACCEPTED
    assert (
        judge(TELLS_STANDARD, "201703", "")
        is judge(TELLS_STANDARD, "201703", "20")
        is Outcome.WRONG_ANSWER
    )
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
