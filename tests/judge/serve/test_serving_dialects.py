"""What others' clients send, and what they read in the answers; their own code where it is installed."""

from typing import Any

import pytest

from microcoder.judge import Judge

from .conftest import ADD, Running, serving  # pyrefly: ignore[missing-import]

CPP = "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }"
LOOP = "while True: pass"


def run_code(running: Running, code: str, stdin: str | None = "1 2", **options: object) -> dict[str, Any]:
    message = {"code": code, "stdin": stdin, "language": "python", "memory_limit_MB": 1024, "files": {}, **options}
    answer = running.post("/run_code", {"compile_timeout": 10, "run_timeout": 10, "fetch_files": [], **message})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("code", "options", "status", "run_status", "return_code"),
    [
        (ADD, {}, "Success", "Finished", 0),
        ("import sys; sys.exit(3)", {}, "Failed", "Finished", 3),
        ("import os; os.abort()", {}, "Failed", "Finished", -6),
        ("x =", {}, "Failed", "Finished", 1),
        (LOOP, {"run_timeout": 0.2}, "Failed", "TimeLimitExceeded", None),
        ("x = bytearray(1 << 30)", {"memory_limit_MB": 64}, "Failed", "Finished", 1),
        ("print(open('d/a.txt').read())", {"files": {"d/a.txt": "Mw=="}}, "Success", "Finished", 0),
    ],
)
def test_sandbox_fusion_runs(
    running: Running, code: str, options: dict[str, Any], status: str, run_status: str, return_code: int | None
) -> None:
    answer = run_code(running, code, **options)
    assert (answer["status"], answer["compile_result"]) == (status, None)
    assert (answer["run_result"]["status"], answer["run_result"]["return_code"]) == (run_status, return_code)
    if status == "Success":
        assert answer["run_result"]["stdout"] == "3\n"


def test_sandbox_fusion_tells_the_compiler_from_the_program(running: Running) -> None:
    right, wrong = (run_code(running, code, language="cpp") for code in (CPP, "int main() {"))
    assert (right["status"], right["compile_result"]["return_code"]) == ("Success", 0)
    assert right["run_result"]["stdout"] == "3\n"
    assert (wrong["status"], wrong["run_result"]) == ("Failed", None)
    assert wrong["compile_result"]["return_code"] == 1
    assert "error" in wrong["compile_result"]["stderr"]


def test_verl_itself_gets_right_verdicts(running: Running) -> None:
    fusion = pytest.importorskip("verl.utils.reward_score.sandbox_fusion.utils", exc_type=ImportError)
    cases = {"inputs": ["1 2", "4 5"], "outputs": ["3", "9"]}
    calls = {"inputs": ["1\n2"], "outputs": ["3"], "fn_name": "add"}
    for generation, given, expected in (
        (ADD, cases, [True, True]),
        ("print(3)", cases, [True, False]),
        ("1 / 0", cases, [-2, -2]),
        ("class Solution:\n    def add(self, a, b):\n        return a + b", calls, [True]),
    ):
        results, _ = fusion.check_correctness(f"{running.url}/run_code", given, generation, timeout=5)
        assert results == expected


def test_who_names_no_limit_gets_what_the_service_allows(judge: Judge) -> None:
    with serving(judge, max_cpu_seconds=2, max_memory_mib=128, grace_seconds=0) as small:
        for path, message, explicit in (
            ("/v1/run", {"code": ADD, "stdin": "1 2"}, {"memory_limit_mib": 512}),
            ("/run_code", {"code": ADD, "language": "python", "stdin": "1 2"}, {"run_timeout": 10}),
            ("/run_code", {"code": ADD, "language": "python", "stdin": "1 2"}, {"memory_limit_MB": 512}),
        ):
            assert small.post(path, message).status_code == 200, path
            answer = small.post(path, {**message, **explicit})
            assert (answer.status_code, "limit of" in answer.text) == (422, True), answer.text
