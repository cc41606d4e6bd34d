"""The endpoint backend against a real server: what it sends, what it bears, what it says when it gives up."""

from __future__ import annotations

from typing import Any

import pytest
from completions_server import Reply, completion, serve

from microcoder.data.benchmarks.questions import Question
from microcoder.eval.config import EndpointGeneration, ResponseSampling
from microcoder.eval.generation import ResponseRequest, ask_endpoint
from microcoder.eval.report import Sample
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import Problem, TestCase

FILTERED: Reply = (200, {}, b'{"choices": []}')
BUSY: Reply = (503, {"Retry-After": "0"}, b"warming up")


SAMPLING = ResponseSampling(num_samples=2, temperature=0.5, top_p=0.9, max_tokens=77)


def config(url: str, **changes: Any) -> EndpointGeneration:
    return EndpointGeneration(kind="endpoint", base_url=url, model="m", **changes)


def requests(number: int) -> list[ResponseRequest]:
    return [
        ResponseRequest(f"p{index}", 0, [{"role": "user", "content": f"ask {index}"}], 100 + index)
        for index in range(number)
    ]


def echo(body: dict[str, Any], number: int) -> Reply:
    return completion(body["messages"][0]["content"].upper())


def test_every_request_is_answered_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    with serve(echo, seconds=0.02) as server:
        asked = config(server.url, concurrency=3, api_key_env="SOME_KEY")
        answers = {request.problem_id: response for request, response in ask_endpoint(asked, requests(12), SAMPLING)}
    assert {name: response.text for name, response in answers.items()} == {f"p{i}": f"ASK {i}" for i in range(12)}
    assert (answers["p0"].num_tokens, answers["p0"].is_truncated) == (2, False)
    assert 1 < server.most_at_once <= 3
    assert set(server.keys) == {"Bearer secret"}
    sent = next(body for body in server.requests if body["seed"] == 103)
    assert sent == {
        "path": "/v1/chat/completions",
        "model": "m",
        "messages": [{"role": "user", "content": "ask 3"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 77,
        "seed": 103,
    }


def test_what_a_server_refuses_can_be_left_out_and_a_response_at_the_length_limit_is_truncated() -> None:
    with serve(lambda body, number: completion("```", finish="length")) as server:
        changes = {"send_seed": False, "max_tokens_key": "max_completion_tokens", "extra": {"top_k": 20}}
        ((_, response),) = ask_endpoint(config(server.url, **changes), requests(1), SAMPLING)
    assert response.is_truncated
    assert "seed" not in server.requests[0]
    assert (server.requests[0]["max_completion_tokens"], server.requests[0]["top_k"]) == (77, 20)
    assert server.keys == [None]


def test_what_a_server_parsed_as_thinking_is_part_of_the_response() -> None:
    replies = [
        completion("```python\nprint(2)\n```", reasoning_content="```python\nprint(1)\n```"),
        completion(None, finish="length", reasoning="```python\nprint(1)\n```", reasoning_details=[{}]),
        completion("```python\nprint(3)\n```", reasoning=None, reasoning_content=["odd"]),
    ]
    problem = Problem(id="p0", tests=(TestCase(input="", output="2"),))
    question = Question(problem, "", lambda: problem)
    with serve(lambda body, number: replies[number - 1]) as server:
        answers = ask_endpoint(config(server.url, concurrency=1), requests(3), SAMPLING)
        samples = [Sample.from_response(question, 0, response) for _, response in answers]
    assert [sample.program for sample in samples] == ["print(2)\n", None, "print(3)\n"]
    assert [str(sample.completion).count("print(1)") for sample in samples] == [1, 1, 0]
    assert samples[1].extraction == "no_answer_after_thinking"


def test_a_busy_server_is_asked_again_and_one_whose_reply_cannot_be_unpacked() -> None:
    late = (524, {"Retry-After": "0"}, b"a proxy gave up")
    first = {1: BUSY, 2: late, 4: (200, {"Content-Encoding": "gzip"}, b"no gzip"), 6: completion("\ud800"), 7: FILTERED}
    with serve(lambda body, number: first.get(number) or echo(body, number)) as server:
        answers = list(ask_endpoint(config(server.url, concurrency=1, max_retries=2), requests(4), SAMPLING))
    assert (len(server.requests), [answer.text for _, answer in answers]) == (7, ["ASK 0", "ASK 1", "?", ""])


def test_a_server_that_stays_busy_or_is_not_there_or_has_no_address_ends_it_with_what_to_do() -> None:
    with (
        serve(lambda body, number: BUSY) as server,
        pytest.raises(ConfigError, match=r"failed 2 times, last: status 503: warming up; check that it is up"),
    ):
        list(ask_endpoint(config(server.url, concurrency=1, max_retries=1), requests(3), SAMPLING))
    with pytest.raises(ConfigError, match=r"ConnectError.*type the same command again to resume"):
        list(ask_endpoint(config(server.url, max_retries=0), requests(1), SAMPLING))
    with pytest.raises(ConfigError, match=r"is not an address \(.*port.*; write one such as http://localhost:8000/v1"):
        list(ask_endpoint(config("http://localhost:80a0/v1"), requests(1), SAMPLING))


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ((401, {}, b"no key"), r"status 401: no key; set the key in the environment variable"),
        ((404, {}, b"no such model"), r"status 404: no such model; check the address"),
        ((400, {}, b"bad top_p"), r"status 400: bad top_p; .* check the name of the model and the sampling options"),
        ((200, {}, b"<html>"), r"something else than a chat completion .*<html>"),
        ((200, {}, b'{"choices": [1]}'), r"something else than a chat completion \(TypeError"),
        ((200, {}, b'{"choices": [{"message": {"content": [1]}}]}'), r"content is list"),
    ],
)
def test_what_no_retry_helps_is_said_at_once(reply: Reply, why: str) -> None:
    with serve(lambda body, number: reply) as server, pytest.raises(ConfigError, match=why):
        list(ask_endpoint(config(server.url, concurrency=1), requests(2), SAMPLING))
    assert len(server.requests) == 1


def test_what_came_before_an_error_is_kept() -> None:
    with serve(lambda body, number: echo(body, number) if number <= 3 else (401, {}, b"")) as server:
        answers = ask_endpoint(config(server.url, concurrency=1), requests(9), SAMPLING)
        assert len([next(answers) for _ in range(3)]) == 3
        with pytest.raises(ConfigError, match="status 401"):
            next(answers)
