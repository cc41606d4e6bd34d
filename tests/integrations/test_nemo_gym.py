"""The resources server under NeMo-Gym's own base classes, asked over HTTP as its agents do."""

from typing import Any

import pytest

from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, Pair, judged

pytest.importorskip(
    "nemo_gym", reason="nemo-gym is not here (it wants Python 3.12); type: make test-integrations"
)

from fastapi.testclient import TestClient
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import ServerClient
from omegaconf import OmegaConf

from microcoder.integrations.nemo_gym import CodeServer, CodeServerConfig

TESTS = {"inputs": ["1 2", "5 6"], "outputs": ["3", "11"], "fn_name": None}


def start(**judge: Any) -> TestClient:
    """Return a client of a server as NeMo-Gym sets it up."""
    head = BaseServerConfig(host="127.0.0.1", port=11000)
    client = ServerClient(head_server_config=head, global_config_dict=OmegaConf.create({}))
    config = CodeServerConfig(
        name="microcoder",
        host="127.0.0.1",
        port=8940,
        entrypoint="app.py",
        judge=judge,
    )
    return TestClient(CodeServer(config=config, server_client=client).setup_webserver())


@pytest.fixture(scope="module")
def server() -> TestClient:
    """A server for all tests here."""
    return start()


def request(text: str, metadata: dict[str, Any], *, is_truncated: bool = False) -> dict[str, Any]:
    """Return what an agent sends when a model has answered."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    response = {
        "id": "r",
        "created_at": 0,
        "model": "m",
        "object": "response",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "incomplete_details": {"reason": "max_output_tokens"} if is_truncated else None,
    }
    asked = {"input": [{"role": "user", "content": "Sum?"}]}
    return {
        "responses_create_params": asked,
        "verifier_metadata": metadata,
        "response": response,
        "difficulty": "easy",
    }


def verify(server: TestClient, *arguments: Any, **options: Any) -> dict[str, Any]:
    """Return the answer to a request."""
    answer = server.post("/verify", json=request(*arguments, **options))
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_rewards_are_the_judges_verdicts(server: TestClient, pairs: list[Pair]) -> None:
    found = []
    for pair in pairs:
        record = {"problem": pair.problem.model_dump(mode="json", exclude_defaults=True)}
        answer = verify(server, pair.response, record)
        found.append((answer["reward"], answer["outcome"], answer["mask_sample"]))
    assert found == [(float(one.is_accepted), one.outcome.value, False) for one in judged(pairs)]


def test_rows_of_its_own_code_server_are_read(server: TestClient) -> None:
    answer = verify(server, RIGHT, {"unit_tests": TESTS})
    assert answer["reward"] == 1.0
    assert answer["tests_passed"] == 2
    assert answer["tests_total"] == 2
    assert answer["difficulty"] == "easy"
    assert "verifier_metadata" not in answer
    cut = verify(server, RIGHT + "\n```python\nprint(", {"unit_tests": TESTS}, is_truncated=True)
    assert cut["reward"] == 0.0
    assert cut["outcome"] == "no_code"
    assert cut["extracted_model_code"] is None


def test_a_fault_of_the_sandbox_masks_the_sample_and_is_in_no_mean(server: TestClient) -> None:
    broken = verify(
        server,
        RIGHT,
        {"problem": FAULTY.model_dump(mode="json", exclude_defaults=True)},
    )
    assert broken["mask_sample"] is True
    assert broken["outcome"] == "sandbox_fault"
    assert broken["instance_config"] == {"mask_sample": True}
    right = verify(server, RIGHT, {"unit_tests": TESTS})
    assert right["instance_config"] == {"mask_sample": False}
    rows = []
    for place, answer in enumerate((right, broken)):
        rows.append({"_ng_task_index": place, "_ng_rollout_index": 0, **answer})
    found = server.post("/aggregate_metrics", json={"verify_responses": rows}).json()[
        "agent_metrics"
    ]
    assert found["mean/reward"] == 1.0
    assert found["num_masked"] == 1


def test_a_row_or_an_option_that_is_wrong_is_named(server: TestClient) -> None:
    refused = server.post(
        "/verify", json=request(RIGHT, {"unit_tests": {"inputs": ["1 2"], "outputs": []}})
    )
    assert refused.status_code == 422
    assert "unit_tests" in refused.json()["detail"]
    with pytest.raises(ValueError, match="no option 'worker'"):
        start(worker=1)
