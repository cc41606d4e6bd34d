"""Programs in a built language, from a program that deserves each outcome; and what its declarative file says."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program
from microcoder.judge.languages import LANGUAGES, find_language

from .conftest import make_problem  # pyrefly: ignore[missing-import]

needs_cpp = pytest.mark.skipif(bool(LANGUAGES["cpp"].find_problem()), reason=LANGUAGES["cpp"].find_problem())

ADD = "#include <iostream>\nint main() { long long a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }"
TAKES_MEMORY = """
#include <cstring>
#include <vector>
int main() {
    std::vector<char*> held;
    for (;;) { held.push_back(new char[8 << 20]); std::memset(held.back(), 1, 8 << 20); }
}
"""
RECURSES = """
#include <cstdio>
int depth(int n) { volatile char room[1000]; room[0] = 1; return n ? depth(n - 1) + room[0] : 0; }
int main() { std::printf("%d\\n", depth(80000) - 79997); }
"""
RECURSES_DEEPLY = RECURSES.replace("80000", "195000").replace("79997", "194997")
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


def cpp_problem(**options: object) -> Problem:
    return make_problem(("1 2\n", "3\n"), language="cpp", **options)


@needs_cpp
@pytest.mark.parametrize(
    ("code", "outcome", "detail"),
    [
        (ADD, Outcome.ACCEPTED, ""),
        (ADD.replace("a + b", "a - b"), Outcome.WRONG_ANSWER, 'expected "3", got "-1"'),
        ("int main() { return x; }", Outcome.COMPILE_ERROR, "main.cpp:1:21: error: "),
        ('#include "/etc/passwd"\nint main() {}', Outcome.COMPILE_ERROR, "No such file"),
        ("int main() { for (volatile int i = 0;; i = i + 1) {} }", Outcome.TIME_LIMIT, "cpu"),
        ("int main() { *(volatile int*)0 = 1; }", Outcome.RUNTIME_ERROR, "SIGSEGV"),
        ("int main() { return 3; }", Outcome.RUNTIME_ERROR, "exit code 3"),
        (TAKES_MEMORY, Outcome.MEMORY_LIMIT, "of 128 MiB"),
        ('#include <cstdio>\nint main() { for (;;) std::puts("xxxxxxxxx"); }', Outcome.OUTPUT_LIMIT, "16 MiB"),
        (RECURSES, Outcome.ACCEPTED, ""),
        (SANDBOX_PROBES, Outcome.ACCEPTED, ""),
    ],
)
def test_cpp(judge_one: Judge, code: str, outcome: Outcome, detail: str) -> None:
    seconds = 0.3 if outcome is Outcome.TIME_LIMIT else 10.0
    (verdict,) = judge_one.judge([Program(code, "cpp")], [cpp_problem(time_limit_seconds=seconds)])
    assert verdict.outcome is outcome, verdict.detail
    assert detail in verdict.detail


@needs_cpp
def test_cpp_with_threads_and_memory_in_each(judge_one: Judge) -> None:
    fits, does_not = ["2 1", "1 100", "8 50", "8 60", "256 1"], ["8 70"]
    problems = [
        make_problem((given, "3\n"), language="cpp", memory_limit_mib=512, time_limit_seconds=30.0)
        for given in (*fits, *does_not)
    ]
    # One program, which is built once.
    verdicts = judge_one.judge([Program(THREADS, "cpp")] * len(problems), problems)
    expected = [Outcome.ACCEPTED] * len(fits) + [Outcome.MEMORY_LIMIT] * len(does_not)
    assert [verdict.outcome for verdict in verdicts] == expected


@needs_cpp
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (RECURSES_DEEPLY, Outcome.ACCEPTED),
        (RECURSES.replace("80000", "2000000000"), Outcome.MEMORY_LIMIT),
    ],
    ids=["195 MiB of stack", "endless recursion"],
)
def test_cpp_with_a_deep_stack(judge_one: Judge, code: str, outcome: Outcome) -> None:
    (verdict,) = judge_one.judge([Program(code, "cpp")], [cpp_problem(memory_limit_mib=512, time_limit_seconds=30.0)])
    assert verdict.outcome is outcome, verdict.detail


@needs_cpp
def test_equal_sources_are_built_once_and_names_have_aliases(judge_one: Judge) -> None:
    problem = cpp_problem()
    first, second = judge_one.judge([Program(ADD, "c++"), Program(ADD, "cpp")], [problem, problem])
    assert first.is_accepted
    assert second.is_accepted


def test_a_missing_compiler_is_said_before_anything_runs(judge_one: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EvaluatorFault, match=r"no compiler for cpp: none of g\+\+, clang\+\+ found; install one"):
        judge_one.judge([Program(ADD, "cpp")], [cpp_problem()])


def test_an_unknown_language_is_refused(judge_one: Judge) -> None:
    with pytest.raises(DataError, match="language = 'cobol'; use one of cpp, java, javascript, python, or add"):
        judge_one.judge([Program("", "cobol")], [make_problem(("", ""), language="cobol")])
    assert find_language("C++").name == "cpp"


def test_only_python_functions_can_be_called(judge_one: Judge) -> None:
    problem = make_problem(("1", "2"), language="cpp", fn_name="f")
    with pytest.raises(DataError, match="only Python programs can be called"):
        judge_one.judge([Program(ADD, "cpp")], [problem])
