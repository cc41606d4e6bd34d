"""Scoring through a real client against a server on this machine that speaks the OpenAI protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from microcoder.data import Candidate
from microcoder.data.completions import BadReply, Endpoint, EndpointSettings
from microcoder.data.difficulty import DIMENSIONS, read_scores, score_difficulty
from microcoder.judge.core.errors import ConfigError

CANDIDATE = Candidate(id="made/p", dataset="made", statement="Sum {two} numbers.")


class Server(ThreadingHTTPServer):
    """Answers with the schema's keys, all with the score 1 + seed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[dict[str, Any]] = []
        self.is_broken = False


class Answers(BaseHTTPRequestHandler):
    server: Server  # pyrefly: ignore[bad-override]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(request)
        names = request["response_format"]["json_schema"]["schema"]["required"]
        text = "certainly!" if self.server.is_broken else json.dumps(dict.fromkeys(names, 1 + request["seed"]))
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def open_endpoint(server: Server, cache: Path | None = None) -> Endpoint:
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    return Endpoint(EndpointSettings(model="tiny", base_url=url, max_retries=0), cache=cache)


def test_a_problem_is_scored_three_times_and_answers_are_kept(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        endpoint = open_endpoint(server, tmp_path / "cache" / "answers")
        scored = score_difficulty(CANDIDATE, endpoint)
        endpoint.close()
        assert scored.difficulty.predicted == 2.0
        assert scored.difficulty.predictor.startswith("tiny ")
        assert "implementation 2.00" in scored.lineage[-1].detail
    assert [request["seed"] for request in server.asked] == [0, 1, 2]
    assert "Sum {two} numbers." in server.asked[0]["messages"][0]["content"]


def test_answers_beside_the_schema_leave_no_difficulty_and_a_dead_server_is_an_error(server: Server) -> None:
    server.is_broken = True
    endpoint = open_endpoint(server)
    assert score_difficulty(CANDIDATE, endpoint) == CANDIDATE
    assert [request["seed"] for request in server.asked] == [0, 3, 6]
    endpoint.close()
    nowhere = Endpoint(EndpointSettings(model="tiny", base_url="http://127.0.0.1:9/v1", max_retries=0))
    with pytest.raises(ConfigError, match="check that it is up"):
        score_difficulty(CANDIDATE, nowhere)
    nowhere.close()


def test_scores_are_weighted_onto_one_to_five() -> None:
    assert sum(weight for weight, _ in DIMENSIONS.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("scores", [{}, {"implementation": 1}])
def test_an_answer_must_follow_the_schema(scores: dict[str, int]) -> None:
    with pytest.raises(BadReply, match="wanted are algorithmic_thinking"):
        read_scores(scores)


@pytest.mark.parametrize("score", [0, 6, 2.5, True, "3", None])
def test_a_score_must_be_on_the_scale(score: object) -> None:
    with pytest.raises(BadReply, match="wanted is 1 to 5"):
        read_scores(dict.fromkeys(DIMENSIONS, score))
