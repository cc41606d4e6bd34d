"""docs/trainers.md: its lines are run as the trainers call them, by their published signatures."""

import asyncio
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.doc_pages import DOCS, blocks_of, type_in

PAGE = DOCS / "trainers.md"
ADD = "a, b = map(int, input().split())\nprint(a + b)"
RIGHT = f"```python\n{ADD}\n```"
WRONG = "```python\nprint(3)\n```"
TESTS = json.dumps({"inputs": ["1 2", "4 5"], "outputs": ["3", "9"]})
PROMPT = "Add two numbers."


def lines_of(trainer: str, language: str = "python") -> str:
    """Return the program of a section of the page."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = []
    for part in parts:
        if part.startswith(f"{trainer}\n"):
            found += blocks_of(part)
    (program,) = [block.text for block in found if block.language == language]
    return program


def defined_by(trainer: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(lines_of(trainer), names)
    return names


def test_unsloths_reward_is_trls() -> None:
    (reward,) = defined_by("Unsloth")["reward_funcs"]
    columns = {"input_output": [TESTS, TESTS]}
    scores = reward(prompts=[PROMPT] * 2, completions=[RIGHT, WRONG], **columns)
    assert scores == [1.0, 0.0]


@pytest.fixture
def swift(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the lines import of ms-swift: a class, and the table in which they enter their own."""

    class ORM:
        def __init__(self, args: object = None, **kwargs: object) -> None:
            self.args = args

    rewards = ModuleType("swift.rewards")
    rewards.ORM = ORM  # pyrefly: ignore[missing-attribute]
    rewards.orms = {}  # pyrefly: ignore[missing-attribute]
    monkeypatch.setitem(sys.modules, "swift", ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.rewards", rewards)
    return rewards


def test_ms_swift_finds_the_reward_in_its_table(swift: ModuleType) -> None:
    defined_by("ms-swift")
    reward = swift.orms["microcoder"](args=None)
    scores = reward([RIGHT, WRONG], input_output=[TESTS, TESTS], trainer_state=None)
    assert scores == [1.0, 0.0]


def test_openrlhf_gets_a_tensor_a_query() -> None:
    pytest.importorskip("torch")
    reward = defined_by("OpenRLHF")["reward_func"]
    found = reward([PROMPT + RIGHT, PROMPT + WRONG], [PROMPT] * 2, [TESTS] * 2)
    assert found["rewards"].tolist() == [1.0, 0.0]


def test_areal_gets_a_number() -> None:
    reward = defined_by("AReaL")["reward_fn"]
    assert reward(PROMPT, RIGHT, [1], [2], input_output=TESTS, level="easy") == 1.0
    assert reward(PROMPT, WRONG, [1], [2], input_output=TESTS, level="easy") == 0.0


def test_slime_awaits_a_number() -> None:
    reward = defined_by("slime")["reward"]
    sample = SimpleNamespace(response=RIGHT, label=TESTS, metadata={}, prompt=PROMPT)
    assert asyncio.run(reward(SimpleNamespace(), sample)) == 1.0


def test_harbors_script_writes_the_reward(tmp_path: Path) -> None:
    script = lines_of("Harbor", "bash")
    for folder in ("tests", "app", "logs/verifier"):
        (tmp_path / folder).mkdir(parents=True)
        script = script.replace(f" /{folder}", f" {tmp_path}/{folder}")
        script = script.replace(f'"/{folder}', f'"{tmp_path}/{folder}')
    tests = [{"input": "1 2", "output": "3"}]
    lines = ""
    for name, tier in (("sum", "Easy"), ("unanswered", "Hard")):
        lines += json.dumps({"id": name, "tests": tests, "tier": tier, "statement": name}) + "\n"
    (tmp_path / "tests" / "problems.jsonl").write_text(lines)
    answer = {"problem_id": "sum", "response": RIGHT}
    (tmp_path / "app" / "answers.jsonl").write_text(json.dumps(answer))
    type_in(script, tmp_path)
    assert float((tmp_path / "logs/verifier/reward.txt").read_text()) == 0.5
