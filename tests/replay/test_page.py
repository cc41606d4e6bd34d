"""docs/replay.md: its commands and programs, on runs of the tests."""

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

from microcoder.data import write_problems
from microcoder.replay.formats import NAMES
from tests.doc_pages import DOCS, blocks_of, run_here
from tests.replay.trl_run import problems_of_run

PAGE = (DOCS / "replay.md").read_text(encoding="utf-8")
CODE = "```python\nprint(1)\n```"


def test_the_commands_and_programs_of_the_page_run(masked_run: Path, tmp_path: Path) -> None:
    shutil.copytree(masked_run, tmp_path / "runs" / "demo")
    problems = problems_of_run()
    write_problems(tmp_path / "problems.jsonl", problems)
    shutil.copy(tmp_path / "problems.jsonl", tmp_path / "better-tests.jsonl")
    rows = []
    for problem in problems:
        for reward in (0.0, 1.0):
            row = {"step": 1, "prompt": problem.statement, "completion": CODE, "reward": reward}
            rows.append(json.dumps({**row, "advantage": reward - 0.5}))
    (tmp_path / "completions").mkdir()
    (tmp_path / "completions" / "completions_00001.jsonl").write_text("\n".join(rows))
    typed = 0
    for block in blocks_of(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
        if block.title == "replay_run.py":
            printed = run_here(f"python {block.title}", tmp_path)
            assert len(printed.splitlines()) == 4, "a line a step"
        elif block.language == "console":
            for line in block.text.splitlines():
                printed = run_here(line, tmp_path)
                typed += 1
                assert "This is not the other run" in printed or "--json" in line
    assert typed == 9
    assert (tmp_path / "differing.jsonl").exists()


def test_the_reward_of_the_page_logs_what_masks_look_at(tmp_path: Path) -> None:
    (block,) = (block for block in blocks_of(PAGE) if block.title == "logging_reward.py")
    path = tmp_path / block.title
    path.write_text(block.text)
    reward = runpy.run_path(str(path))["LoggingReward"]()
    logged: dict[str, Any] = {}
    problem = problems_of_run()[0].model_dump_json()
    rewards = reward(
        [CODE, CODE],
        prompts=["?", "?"],
        problem=[problem, problem],
        completion_ids=[[1] * 1024, [1, 2]],
        log_extra=logged.__setitem__,
    )
    assert len(rewards) == 2
    assert logged["is_truncated"] == [True, False]
    assert logged["num_tokens"] == [1024, 2]


def test_the_page_lists_every_format() -> None:
    for name in NAMES:
        assert f"| `{name}` |" in PAGE
