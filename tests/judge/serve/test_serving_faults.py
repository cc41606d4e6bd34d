"""What is overloaded, cut off or killed: nothing is lost, nothing is told twice,
a fault is not a verdict.
"""

import concurrent.futures
import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from microcoder import read_problem
from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, Verdict
from microcoder.judge.fleet.http import JudgeClient
from tests.judge.processes import wait_until
from tests.judge.serve.conftest import (
    ADD,
    PROBLEM,
    TOKEN,
    Running,
    http,
    judge_alternating,
    serving,
    stub_judge,
)

SLOW = Problem(id="slow", tests=PROBLEM.tests, time_limit_seconds=0.3, memory_limit_mib=256)
TOO_LONG = Problem(id="long", tests=PROBLEM.tests, time_limit_seconds=600)

_PATIENCE_SECONDS = 6
"""Of a client of a judge that judges nothing: time enough to be asked on a busy machine."""


def endless(name: object) -> dict[str, object]:
    program = {"problem": 0, "code": f"while True: pass  # {name}"}
    return {"problems": [SLOW.model_dump(mode="json")], "programs": [program]}


def num_queued(running: Running) -> int:
    return int(running.service.metrics.queued._value.get())


def test_overload_is_answered_429_and_is_over_when_it_is_over(judge: Judge) -> None:
    with serving(judge, max_queued=4, grace_seconds=0) as running, ThreadPoolExecutor(12) as pool:
        answers = list(
            pool.map(lambda n: running.post("/v1/judge", endless(f"over {n}")), range(12))
        )
        refused = []
        for answer in answers:
            if answer.status_code == 429:
                refused.append(answer)
        judged = []
        for answer in answers:
            if answer.status_code == 200:
                judged.append(answer.json()["verdicts"][0]["outcome"])
        assert len(refused) + len(judged) == 12
        assert refused
        assert set(judged) == {"time_limit"}
        for answer in refused:
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert "at most 4 are taken" in refused[0].json()["detail"]
        assert http.get(f"{running.url}/readyz").status_code == 200
        too_many = {
            "problems": endless(0)["problems"],
            "programs": [{"problem": 0, "code": "x"}] * 5,
        }
        assert running.post("/v1/judge", too_many).status_code == 413
        with JudgeClient(running.url) as client:
            judge_alternating(client, "over", 20)
        assert wait_until(lambda: num_queued(running) == 0)


def test_a_checker_that_fails_makes_no_service_sick(running: Running) -> None:
    for checker, language in (("import sys; sys.exit(9)", "python"), ("int main() {", "cpp")):
        broken = {"type": "program", "code": checker, "language": language}
        problem = {**SLOW.model_dump(mode="json"), "checker": broken}
        programs = [{"problem": 0, "code": f"{ADD}  # {checker} {n}"} for n in range(21)]
        verdicts = running.post("/v1/judge", {"problems": [problem], "programs": programs}).json()[
            "verdicts"
        ]
        assert {verdict["outcome"] for verdict in verdicts} == {"sandbox_fault"}
        assert "the checker " in verdicts[0]["detail"]
    assert http.get(f"{running.url}/healthz").status_code == 200


def test_a_client_that_leaves_takes_its_programs_with_it(running: Running) -> None:
    judged = running.judge.statistics.judged
    endless_programs = [{"problem": 0, "code": f"while True: pass  # left {n}"} for n in range(40)]
    with pytest.raises(httpx.ReadTimeout):
        http.post(
            f"{running.url}/v1/judge",
            json={**endless(0), "programs": endless_programs},
            timeout=0.5,
        )
    assert wait_until(lambda: num_queued(running) == 0)
    stayed = running.post("/v1/judge", endless("stayed")).json()["verdicts"][0]
    assert stayed["outcome"] == "time_limit", stayed["detail"]
    assert running.judge.statistics.judged - judged < 20


def test_the_client_says_what_the_judge_says(running: Running) -> None:
    codes = [ADD, "print(3)", "1 / 0", None, ADD]
    programs = []
    for code in codes:
        programs.append(Program(code, reason="" if code else "cut"))
    with JudgeClient(running.url) as client:
        verdicts = client.judge(programs, [PROBLEM] * 5)
        assert client.about()["workers"] == 2
        assert verdicts[0] is verdicts[4] is client.submit(Program(ADD), PROBLEM).result(30)
        assert client.judge([Program(ADD, "PYTHON")], [PROBLEM]) == running.judge.judge(
            [Program(ADD)], [PROBLEM]
        )
        for mine, theirs in zip(
            verdicts,
            running.judge.judge(programs, [PROBLEM] * 5),
            strict=True,
        ):
            assert mine.outcome == theirs.outcome
            assert mine.detail == theirs.detail
            assert mine.tests_total == theirs.tests_total
            assert [test.verdict for test in mine.tests] == [test.verdict for test in theirs.tests]
        # Requests that are too large are halved; a program that is refused takes no other with it.
        large = [Program(f"{ADD}  # {'x' * 300_000} {n}") for n in range(8)]
        for verdict in client.judge(large, [PROBLEM] * 8):
            assert verdict.is_accepted
        with pytest.raises(DataError, match="413"):
            client.judge([Program("#" * (2 << 20))], [PROBLEM])
        with pytest.raises(DataError, match=r"JSON cannot hold it: .*surrogates"):
            client.judge([Program(ADD), Program("# \ud800")], [PROBLEM] * 2)
        waiting = []
        for n in range(6):
            waiting.append(client.submit(Program(f"{ADD} # {n}"), TOO_LONG if n == 3 else PROBLEM))
        with pytest.raises(DataError, match="time limit of 600 s"):
            waiting[3].result(60)
        for n, future in enumerate(waiting):
            if n != 3:
                assert future.result(60).is_accepted
        with pytest.raises(DataError, match="101 tests in one request; send at most 100"):
            client.judge(
                [Program(ADD)], [Problem(id="x", tests=(TestCase(input="", output=""),) * 101)]
            )
    with pytest.raises(EvaluatorFault, match="closed"):
        client.submit(Program(ADD), PROBLEM)
    with pytest.raises(DataError, match="program 0 is in 'cpp', problem sum wants 'python 3"):
        running.judge.judge([Program("int main(){}", "cpp")], [PROBLEM])


def test_the_client_tells_a_fault_from_a_refusal(judge: Judge) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = [f"http://127.0.0.1:{taken.getsockname()[1]}/{name}" for name in "ab"]
        with JudgeClient(nobody, patience_seconds=0.5) as client:
            with pytest.raises(
                EvaluatorFault,
                match=r"verdict for 0\.5 s: http.*/a: ConnectError.*/b: ConnectError",
            ):
                client.judge([Program(ADD)] * 3, [PROBLEM] * 3)
            with pytest.raises(EvaluatorFault, match="ConnectError"):
                client.about(patience_seconds=0)
            waiting = client.submit(Program(ADD), PROBLEM)
        assert waiting.result(10).outcome is Outcome.SANDBOX_FAULT
    with serving(judge, tokens=(TOKEN,), grace_seconds=0) as guarded:
        with (
            JudgeClient(guarded.url, token="another") as client,
            pytest.raises(ConfigError, match="401"),
        ):
            client.judge([Program(ADD)], [PROBLEM])
        with JudgeClient(guarded.url, token=TOKEN) as client:
            assert client.judge([Program(ADD)], [PROBLEM])[0].is_accepted
    for url in ("judge:8077", [], ["http://x"] * 2):
        with pytest.raises(ConfigError):
            JudgeClient(url)


def test_one_of_several_services_that_ends_costs_no_verdict_and_is_used_again_when_it_is_back() -> (
    None
):
    with (
        Judge(workers=1, time_scale=1.0, cache_size=0) as first,
        Judge(workers=1, time_scale=1.0, cache_size=0) as second,
        serving(first, grace_seconds=0) as stays,
        serving(second, grace_seconds=0) as goes,
        JudgeClient([stays.url, goes.url]) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        port = goes.server.port
        url = goes.url
        judging = pool.submit(judge_alternating, client, "several", 40)
        assert wait_until(lambda: second.statistics.judged > 8)
        goes.server.handle_exit(signal.SIGTERM, None)
        goes.thread.join(30)
        judging.result(60)
        # It may have ended between two requests.
        assert client.outages.keys() <= {url}
        before = second.statistics.judged
        with serving(second, port=port, grace_seconds=0):
            assert wait_until(lambda: http.get(f"{url}/readyz").status_code == 200)
            while second.statistics.judged == before:
                judge_alternating(client, f"again {first.statistics.judged}", 20)
        assert first.statistics.judged > 8


def test_verdicts_land_one_by_one_and_a_stream_that_ends_early_says_why(judge: Judge) -> None:
    programs = []
    for code in ("while True: pass  # one by one", f"{ADD}  # one by one"):
        programs.append({"problem": 0, "code": code})
    with serving(judge, request_seconds=2.0, grace_seconds=0) as running:
        request = {"problems": [PROBLEM.model_dump(mode="json")], "programs": programs}
        with http.stream("POST", f"{running.url}/v1/judge/stream", json=request) as answer:
            assert answer.headers["content-type"].startswith("application/x-ndjson")
            load, landed, failure = (json.loads(line) for line in answer.iter_lines())
        assert load == {"workers": 2, "queued": 2}
        assert landed["index"] == 1
        assert landed["verdict"]["outcome"] == "accepted"
        assert failure["status"] == 504
        assert failure["retry_after_seconds"] == 1
        refused = running.post(
            "/v1/judge/stream", {**request, "programs": [{"problem": 1, "code": ""}]}
        )
        assert refused.status_code == 422
        assert "names problem 1 of 1" in refused.text
        assert wait_until(lambda: num_queued(running) == 0)


def stick(number: int, found: list[Verdict]) -> list[Verdict | None]:
    """Judge nothing, and only say to be there."""
    return [None] * len(found)


def test_a_judge_that_is_there_and_judges_nothing_is_given_up_and_named(judge: Judge) -> None:
    # What is out there may take some seconds by its limits,
    # far less than the 600 s that it allows a request.
    with stub_judge(judge, stick) as (url, _):
        said = (
            rf"no judge service gave a verdict for [\d.]+ s: {url}: .*alive, but without a verdict"
        )
        client = JudgeClient(url, patience_seconds=_PATIENCE_SECONDS)
        with client, pytest.raises(EvaluatorFault, match=said):
            client.judge([Program(ADD)] * 3, [SLOW] * 3)


def test_a_service_of_small_limits_is_asked_in_small_requests(judge: Judge) -> None:
    one_test = PROBLEM.model_copy(update={"tests": PROBLEM.tests[:1]})
    limits = {"max_batch": 1, "max_total_tests": 1, "max_queued": 1}
    with (
        serving(judge, grace_seconds=0, **limits) as small,
        JudgeClient(small.url, patience_seconds=5) as client,
    ):
        assert client.judge([Program(ADD), Program("print(4)")], [one_test] * 2)[0].is_accepted


def test_who_cancels_what_a_judge_has_does_not_blame_the_judge(judge: Judge) -> None:
    with stub_judge(judge, stick) as (url, asked), JudgeClient(url) as client:
        (service,) = client._backends.values()
        future = client.submit(Program(ADD), PROBLEM)
        assert wait_until(lambda: len(asked) == 1 and len(service.held) == 1)
        assert future.cancel()
        assert wait_until(lambda: not service.held)
        assert concurrent.futures.wait([future], 10).done == {future}
        assert not client.outages


def test_an_address_where_no_judge_is_is_named_at_once(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        mistyped = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with JudgeClient([running.url, mistyped]) as client:
            for verdict in client.judge([Program(ADD)] * 3, [PROBLEM] * 3):
                assert verdict.is_accepted
            assert wait_until(lambda: client.outages[mistyped])
    assert (
        caplog.text.count(f"the judge {mistyped} is left out until it is there again: ConnectError")
        == 1
    )


def test_integers_of_more_digits_than_python_reads_are_judged_over_http(running: Running) -> None:
    long = 10**6000 + 7
    functions = {"fn_name": "f", "inputs": [[long]], "outputs": [2 * long]}
    problem = read_problem({"input_output": functions})
    printed = Problem(id="p", tests=(TestCase(input="1\n", output=f"1{'0' * 5999}7\n"),))
    programs = [Program(f"def f(x):\n    return {factor} * x\n") for factor in (2, 3)]
    printing = Program("import sys\nsys.set_int_max_str_digits(0)\nprint(10 ** 6000 + 7)\n")
    with JudgeClient(running.url) as client:
        right, wrong = client.judge(programs, [problem, problem])
        (shown,) = client.judge([printing], [printed])
    assert right.outcome == Outcome.ACCEPTED
    assert wrong.outcome == Outcome.WRONG_ANSWER
    assert shown.outcome == Outcome.ACCEPTED


def test_a_number_of_a_request_that_is_too_long_is_the_callers_fault(running: Running) -> None:
    program = {"problem": 0, "code": ADD}
    problem = PROBLEM.model_dump(mode="json")
    assert problem["memory_limit_mib"] == 256
    text = json.dumps({"problems": [problem], "programs": [program]})
    text = text.replace('"memory_limit_mib": 256', f'"memory_limit_mib": {"9" * 5000}')
    answer = http.post(
        f"{running.url}/v1/judge",
        content=text,
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 422
