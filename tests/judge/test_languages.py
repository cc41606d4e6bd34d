"""What a built language gets and does not; each of its outcomes is in `test_outcomes`."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES, find_language

from .conftest import make_problem  # pyrefly: ignore[missing-import]

needs_cpp = pytest.mark.skipif(bool(LANGUAGES["cpp"].find_problem()), reason=LANGUAGES["cpp"].find_problem())

RECURSES = """
#include <cstdio>
int depth(int n) { volatile char room[1000]; room[0] = 1; return n ? depth(n - 1) + room[0] : 0; }
int main() { std::printf("%d\\n", depth(80000) - 79997); }
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
    return [verdict.outcome for verdict in judging.judge([Program(code, "c++")] * len(problems), problems)]


@needs_cpp
def test_cpp_is_closed_in_and_has_its_threads_memory_and_stack(judge_one: Judge) -> None:
    assert judge_cpp(judge_one, SANDBOX_PROBES, "") == [Outcome.ACCEPTED]
    large = {"memory_limit_mib": 512, "time_limit_seconds": 30.0}
    fits = ["1 100", "8 50", "256 1"]
    expected = [Outcome.ACCEPTED] * len(fits) + [Outcome.MEMORY_LIMIT]
    assert judge_cpp(judge_one, THREADS, *fits, "8 70", **large) == expected
    assert judge_cpp(judge_one, RECURSES, "", time_limit_seconds=10.0) == [Outcome.ACCEPTED]
    deeply = RECURSES.replace("80000", "195000").replace("79997", "194997")
    assert judge_cpp(judge_one, deeply, "", **large) == [Outcome.ACCEPTED], "195 MiB of stack"
    assert judge_cpp(judge_one, RECURSES.replace("80000", "2000000000"), "", **large) == [Outcome.MEMORY_LIMIT]


def test_what_cannot_be_built_or_called_is_refused(judge_one: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_language("C++").name == "cpp"
    for language, options, error, message in (
        ("cobol", {}, DataError, "language = 'cobol'; use one of cpp, java, javascript, python, or add"),
        ("cpp", {"fn_name": "f"}, DataError, "only Python programs can be called"),
        ("cpp", {}, EvaluatorFault, r"no compiler for cpp: none of g\+\+, clang\+\+ found; install one"),
    ):
        if error is EvaluatorFault:
            monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(error, match=message):
            judge_one.judge([Program("x", language)], [make_problem(("1", "2"), language=language, **options)])
