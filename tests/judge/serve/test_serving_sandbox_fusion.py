"""What clients of SandboxFusion send, and what they read in the answers."""

import base64
import threading
from typing import Any

import pytest

from microcoder.judge import Judge
from microcoder.judge.languages import find_language
from tests.judge.serve.conftest import ADD, TOKEN, Running, http, serving

CPP = (
    "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }"
)
LOOP = "while True: pass"
TESTS = [
    {"input": {"stdin": "1 2\n"}, "output": {"stdout": "3\n"}},
    {"input": {"stdin": "4 5\n"}, "output": {"stdout": "9\n"}},
]
needs_cpp = pytest.mark.skipif(
    bool(find_language("cpp").find_problem()), reason="no compiler for C++ is here"
)


def run_code(running: Running, code: str, **options: object) -> dict[str, Any]:
    """Ask as verl's client does."""
    message = {
        "compile_timeout": 10,
        "run_timeout": 10,
        "code": code,
        "stdin": "1 2",
        "memory_limit_MB": 1024,
        "language": "python",
        "files": {},
        "fetch_files": [],
        **options,
    }
    answer = running.post("/run_code", message)
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(running: Running, completion: str, **config: object) -> dict[str, Any]:
    """Ask as SandboxFusion's own client does for a problem that it brings along."""
    answer = running.post("/submit", submission(completion, **config))
    assert answer.status_code == 200, answer.text
    return answer.json()


def submission(completion: str, **config: object) -> dict[str, Any]:
    defaults = {
        "dataset_type": "CommonOJDataset",
        "language": "python",
        "provided_data": {"id": 1, "content": "Add.", "test": TESTS},
    }
    return {
        "dataset": "mine",
        "id": 1,
        "completion": completion,
        "config": {**defaults, **config},
    }


def test_a_program_that_ends_in_order_is_a_success(running: Running) -> None:
    answer = run_code(running, ADD)
    assert answer["status"] == "Success"
    assert answer["compile_result"] is None
    assert answer["run_result"]["status"] == "Finished"
    assert answer["run_result"]["stdout"] == "3\n"
    assert answer["run_result"]["return_code"] == 0


@pytest.mark.parametrize(
    ("code", "options", "return_code"),
    [
        ("import sys; sys.exit(3)", {}, 3),
        ("import os; os.abort()", {}, -6),
        ("x =", {}, 1),
        ("x = bytearray(1 << 30)", {"memory_limit_MB": 64}, 1),
    ],
)
def test_a_program_that_fails_has_its_return_code(
    running: Running, code: str, options: dict[str, Any], return_code: int
) -> None:
    answer = run_code(running, code, **options)
    assert answer["status"] == "Failed"
    assert answer["run_result"]["return_code"] == return_code


def test_a_program_that_spins_is_late_and_has_no_return_code(running: Running) -> None:
    answer = run_code(running, LOOP, run_timeout=0.2)
    assert answer["status"] == "Failed"
    assert answer["run_result"]["status"] == "TimeLimitExceeded"
    assert answer["run_result"]["return_code"] is None


def test_the_traceback_is_in_stderr(running: Running) -> None:
    answer = run_code(running, "1 / 0")
    assert "ZeroDivisionError" in answer["run_result"]["stderr"]


def test_files_lie_beside_the_program(running: Running) -> None:
    content = base64.b64encode("größer".encode()).decode()
    answer = run_code(running, "print(open('d/a.txt').read())", files={"d/a.txt": content})
    assert answer["run_result"]["stdout"] == "größer\n"


@needs_cpp
def test_a_built_program_has_a_compile_result(running: Running) -> None:
    answer = run_code(running, CPP, language="cpp")
    assert answer["status"] == "Success"
    assert answer["compile_result"]["return_code"] == 0
    assert answer["run_result"]["stdout"] == "3\n"


@needs_cpp
def test_what_the_compiler_refuses_is_not_run(running: Running) -> None:
    answer = run_code(running, "int main() {", language="cpp")
    assert answer["status"] == "Failed"
    assert answer["run_result"] is None
    assert "error" in answer["compile_result"]["stderr"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"language": "verilog"}, "verilog"),
        ({"fetch_files": ["out.txt"]}, "fetch_files"),
        ({"files": {"a.txt": "?"}}, "base64"),
        ({"files": {"../a.txt": ""}}, "file name"),
    ],
)
def test_what_cannot_be_run_here_is_a_sandbox_error_that_says_why(
    running: Running, options: dict[str, Any], named: str
) -> None:
    answer = run_code(running, ADD, **options)
    assert answer["status"] == "SandboxError"
    assert named in answer["message"]


def test_who_names_no_limit_gets_what_the_service_allows(judge: Judge) -> None:
    message = {"code": ADD, "language": "python", "stdin": "1 2"}
    with serving(judge, max_cpu_seconds=2, max_memory_mib=128, grace_seconds=0) as small:
        answer = small.post("/run_code", message).json()
    assert answer["status"] == "Success"


def test_limits_above_the_services_are_lowered_aloud(judge: Judge) -> None:
    """tinker-cookbook asks for seconds that would be enough for all tests of a problem."""
    limits = {"run_timeout": 71, "memory_limit_MB": 512}
    message = {"code": LOOP, "language": "python", **limits}
    with serving(judge, max_cpu_seconds=0.3, max_memory_mib=128, grace_seconds=0) as small:
        answer = small.post("/run_code", message).json()
    assert answer["run_result"]["status"] == "TimeLimitExceeded"
    assert "run_timeout to 0.3 s, memory_limit_MB to 128" in answer["message"]


def test_a_full_queue_is_waited_for(judge: Judge) -> None:
    answers = []

    def ask(running: Running) -> None:
        answers.append(run_code(running, ADD)["status"])

    with serving(judge, max_queued=1, grace_seconds=0) as narrow:
        threads = [threading.Thread(target=ask, args=(narrow,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["Success"] * 6


def test_who_waits_too_long_is_told_to_send_it_again(judge: Judge) -> None:
    message = {"code": LOOP, "language": "python", "run_timeout": 1, "compile_timeout": 0}
    with serving(judge, request_seconds=0.1, grace_seconds=0) as hasty:
        assert hasty.post("/run_code", message).status_code == 504


def test_the_token_is_wanted_here_too(judge: Judge) -> None:
    message = {"code": ADD, "language": "python"}
    with serving(judge, tokens=(TOKEN,), grace_seconds=0) as guarded:
        assert guarded.post("/run_code", message).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert guarded.post("/run_code", message, headers=headers).status_code == 200


def test_a_ping_is_answered(running: Running) -> None:
    assert http.get(f"{running.url}/v1/ping").json() == "pong"


@pytest.mark.parametrize("completion", [f"Here:\n```python\n{ADD}\n```\n", ADD])
def test_a_right_response_passes_the_tests_that_come_with_it(
    running: Running, completion: str
) -> None:
    answer = submit(running, completion)
    assert answer["accepted"]
    assert [test["passed"] for test in answer["tests"]] == [True, True]
    assert answer["extracted_code"].strip() == ADD


def test_a_wrong_response_fails_the_test_that_it_gets_wrong(running: Running) -> None:
    answer = submit(running, "```python\nprint(3)\n```")
    assert not answer["accepted"]
    assert [test["passed"] for test in answer["tests"]] == [True, False]
    assert answer["tests"][1]["exec_info"]["run_result"]["stdout"] == "3\n"


def test_a_response_without_a_program_is_not_accepted(running: Running) -> None:
    answer = submit(running, "I cannot do that.")
    assert not answer["accepted"]
    assert answer["extracted_code"] == ""


def test_a_row_may_hold_its_tests_as_json(running: Running) -> None:
    row = {"id": 1, "test": '[{"input": {"stdin": "1 2"}, "output": {"stdout": "3"}}]'}
    assert submit(running, ADD, provided_data=row)["accepted"]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"provided_data": None}, "provided_data"),
        ({"dataset_type": "HumanEvalDataset"}, "CommonOJDataset"),
        ({"provided_data": {"test": []}}, "must be a list"),
        ({"provided_data": {"test": "["}}, "must be a list"),
        ({"provided_data": {"test": [{"input": {"a": ""}, "output": {}}]}}, "input.stdin"),
        ({"language": None}, "config.language"),
        ({"language": "verilog"}, "verilog"),
        ({"custom_extract_logic": "import os"}, "custom_extract_logic"),
    ],
)
def test_what_cannot_be_judged_here_is_refused_in_a_sentence(
    running: Running, config: dict[str, Any], named: str
) -> None:
    answer = running.post("/submit", submission(ADD, **config))
    assert answer.status_code in (400, 422)
    assert named in answer.json()["detail"]
