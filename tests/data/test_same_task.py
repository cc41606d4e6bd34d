"""A model is asked whether a problem is a benchmark's in disguise."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from microcoder.data import Candidate
from microcoder.data.behaviour.keeping import note_suspects
from microcoder.data.completions import Endpoint
from microcoder.data.corpus.build import plan_build, run_build
from microcoder.data.corpus.same_task import NUM_NEAREST, find_same_task, index_tasks
from microcoder.data.corpus.settings import BuildConfig
from microcoder.data.filter.contamination import Hit
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from tests.data.clean.local_endpoint import endpoint_of
from tests.data.published import write_rows

TASKS = {
    "bridges": "Given a list of integers, compute the largest sum of a contiguous part.",
    "ledger": "Compute the maximum sum of any contiguous part of a list of integers.",
    "words": "Given a text, count its distinct words.",
    **{
        f"other {n}": f"Given a list of integers, compute how many are divisible by {n}."
        for n in range(2, 40)
    },
}
"""What a statement asks once its story is taken away."""
SAME = {"bridges", "ledger"}


def answer(_: int, messages: Sequence[dict[str, str]]) -> str:
    """Answer as a model that knows which stories are which task."""
    text = messages[0]["content"]
    named = []
    for name in TASKS:
        if f"<{name}>" in text:
            named.append(name)
    if text.startswith("State"):
        return json.dumps({"task": TASKS[named[0]]})
    if "<words>" in text:
        return "They are different, I believe."
    return json.dumps({"reason": "stories aside", "is_same": set(named) >= SAME})


def pose(name: str) -> Candidate:
    return Candidate(id=f"made/{name}", dataset="made", statement=f"A tale of <{name}>.")


def test_a_story_is_found_among_restated_tasks_and_asked_of_with_both_statements(
    tmp_path: Path,
) -> None:
    with endpoint_of(answer) as (settings, asked):
        for _ in range(2):
            with closing(Endpoint(settings, cache=tmp_path)) as model:
                posed = []
                for name in TASKS:
                    if name != "ledger":
                        posed.append(pose(name))
                index = index_tasks(posed, model)
                [hit], num_unanswered = find_same_task(pose("ledger"), index, model)
            assert hit.problem_id == "made/bridges"
            assert hit.by == "model"
            assert num_unanswered == 0
            assert hit.detail == "tiny: stories aside"
        texts = [request["messages"][0]["content"] for request in asked]
    # One restatement a problem, and one comparison: the nearest comes first.
    # The second time all replies are kept.
    assert len(texts) == len(TASKS) + 1
    assert "<bridges>" in texts[-1]
    assert "<ledger>" in texts[-1]


def test_what_execution_suspects_is_asked_about_first() -> None:
    suspect = Hit("made/other 39", "behaviour", 9.0, "nothing differs")
    noted = note_suspects(pose("ledger"), [suspect])
    with endpoint_of(answer) as (settings, asked), closing(Endpoint(settings)) as model:
        index = index_tasks([pose(name) for name in TASKS if name != "ledger"], model)
        asked.clear()
        [hit], _ = find_same_task(noted, index, model)
        texts = [request["messages"][0]["content"] for request in asked]
    assert hit.problem_id == "made/bridges"
    # A restatement, the suspect, the nearest.
    assert len(texts) == 3
    assert "<other 39>" in texts[1]
    assert "<bridges>" in texts[2]


def test_near_misses_are_no_hit_and_what_is_not_answered_is_counted() -> None:
    with endpoint_of(answer) as (settings, asked), closing(Endpoint(settings)) as model:
        others = []
        for name in TASKS:
            if name not in SAME:
                others.append(pose(name))
        index = index_tasks(others, model)
        asked.clear()
        assert find_same_task(pose("other 7"), index, model) == ([], 0)
        assert len(asked) == 1 + NUM_NEAREST
        hits, num_unanswered = find_same_task(pose("words"), index, model)
    assert hits == []
    assert num_unanswered > 0


def test_a_build_rejects_what_the_model_calls_the_same(tmp_path: Path) -> None:
    """And asks nothing twice; without benchmarks there is nothing to ask about."""
    tests = json.dumps({"inputs": ["1\n"], "outputs": ["1\n"]})
    for name in ("ledger", "bridges", "words"):
        story = (
            f"{pose(name).statement} The people of the valley of {name} wonder about it, as "
            "they do each year."
        )
        text = (
            f"{story}\n\n"
            "Input\n\n"
            f"One integer, how many {name} there are.\n\n"
            "Output\n\n"
            f"What the {name} come to.\n"
        )
        rows = [{"problem_id": name, "question": text, "input_output": tests}]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    ledger, bridges, other = (
        {"path": str(tmp_path / f"{name}.jsonl"), "format": "apps", "name": name}
        for name in ("ledger", "bridges", "words")
    )
    with endpoint_of(answer) as (settings, asked):
        given: dict[str, Any] = {
            "name": "x",
            "output": tmp_path / "corpus",
            "sources": [ledger, other],
            # A build until filter ends before programs are compared.
            "behaviour": False,
            "workers": 1,
        }
        given["same_task"] = settings
        config = BuildConfig.model_validate({**given, "benchmarks": [bridges]})
        for _ in range(2):
            built = run_build(config, plan_build(config, last="filter"))
            step = next(one for one in built.step_counts if one.step == "ask")
            assert step.num_in == 2
            assert step.num_kept == 1
            assert dict(step.reasons) == {"contaminated": 1}
        # A restatement each, and a comparison that is not answered, three times.
        assert len(asked) == 3 + 1 + 3
        with pytest.raises(ConfigError, match="asked about problems of benchmarks"):
            load_config(BuildConfig, layers=[given])
