"""Rollouts of other trainers: files that TRL wrote here, and rows of published formats."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from microcoder import ConfigError, DataError, Judge
from microcoder.cli import main
from microcoder.replay import Alternative, Lack, Rejudging, open_recording, replay
from microcoder.train.algorithm.advantages import normalise_group
from tests.replay.trl_run import LIMIT, problems_of_run, train_with_trl

PAIRS = ["problem_a", "problem_b"]
CODE = "```python\nprint(1)\n```"


@pytest.fixture(scope="module")
def plain_trl(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Completions of TRL as it logs them, two updates a batch."""
    folder = tmp_path_factory.mktemp("trl")
    return train_with_trl(tiny_checkpoint, folder, logs_more=False, updates=2)


@pytest.fixture(scope="module")
def logging_trl(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with what masks look at, logged by the reward."""
    return train_with_trl(tiny_checkpoint, tmp_path_factory.mktemp("more"), logs_more=True)


def test_completions_of_trl_are_read_once_a_batch_in_their_groups(plain_trl: Path) -> None:
    assert len(list(plain_trl.glob("*.parquet"))) == 6
    recording = open_recording([plain_trl])
    assert recording.format == "trl"
    steps = list(recording.read())
    assert [step.step for step in steps] == [1, 3, 5], "a batch is logged at each of its updates"
    for step in steps:
        assert [len(group) for group in step.scored_P_G] == [4] * 8
        for group in step.scored_P_G:
            assert len({sample.rollout.prompt for sample in group}) == 1
            recorded = [sample.advantage for sample in group]
            # TRL adds another epsilon to the deviation, in single precision.
            expected = normalise_group([sample.reward for sample in group])
            assert recorded == pytest.approx(expected, rel=1e-3)
    same, maxrl = replay(
        recording,
        [Alternative("same"), Alternative("maxrl", {"algorithm.advantage": "maxrl"})],
    ).alternatives
    assert same.run.first_difference is None
    assert same.run.cosine == pytest.approx(1.0)
    assert maxrl.run.first_difference is not None


def test_what_trl_does_not_log_is_said_and_not_guessed(plain_trl: Path) -> None:
    recording = open_recording([plain_trl])
    assert recording.lacks == {
        Lack.TOKENS,
        Lack.LENGTHS,
        Lack.LOG_PROBS,
        Lack.TRUNCATION,
        Lack.LIMIT,
        Lack.GROUPS,
        Lack.PROBLEM_IDS,
        Lack.RECIPE,
        Lack.PROBE,
    }
    found = replay(recording)
    assert found.reproduction is None
    assert all(fact.diversity is None for fact in found.facts)
    assert all(fact.truncated_share is None for fact in found.facts)
    with pytest.raises(ConfigError, match="looks at truncation, which completions does not record"):
        replay(recording, [Alternative("all", {"algorithm.masking.kind": "all"})])
    penalty = {"algorithm.masking.kind": "soft_penalty", "algorithm.masking.window_tokens": "8"}
    with pytest.raises(ConfigError, match="looks at lengths and their limit"):
        replay(recording, [Alternative("soft", penalty)])


def test_what_a_reward_logs_beside_is_read(logging_trl: Path) -> None:
    recording = open_recording([logging_trl], limit=LIMIT)
    assert recording.lacks == {Lack.LOG_PROBS, Lack.RECIPE, Lack.PROBE}
    found = replay(recording, [Alternative("all", {"algorithm.masking.kind": "all"})])
    truncated = 0
    for step in recording.read():
        for group in step.scored_P_G:
            truncated += sum(sample.rollout.is_truncated for sample in group)
    assert found.alternatives[0].run.masked == {"truncated": truncated}
    assert truncated > 0
    assert all(fact.diversity for fact in found.facts)


def test_completions_of_trl_are_judged_again_by_the_problem_in_their_prompt(
    plain_trl: Path,
) -> None:
    problems = {problem.id: problem for problem in problems_of_run()}
    recording = open_recording([plain_trl], problems=problems)
    assert Lack.PROBLEM_IDS not in recording.lacks
    with Judge(workers=1) as judge:
        again = Rejudging(judge, problems)
        found = replay(recording, rejudging=again)
    assert again.num_unknown == 0
    assert found.alternatives[0].run.rewards_changed == 0, "TRL was paid by this very judge"
    assert found.payments is not None
    assert sum(step.wrong for step in found.payments.steps) == 0
    assert sum(step.paid for step in found.payments.steps) > 0


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def write_verl(folder: Path) -> None:
    for step in (1, 2, 10):
        rows = []
        for prompt in PAIRS:
            for score in (1.0, 0.0):
                rows.append(
                    {"input": prompt, "output": CODE, "gts": None, "score": score, "step": step}
                )
        write_lines(folder / f"{step}.jsonl", rows)


def write_verifiers(folder: Path) -> None:
    for step in (1, 2, 10):
        rows = []
        for number, prompt in enumerate(PAIRS):
            for reward in (1.0, 0.0):
                rows.append(
                    {
                        "example_id": number,
                        "prompt": [{"role": "user", "content": prompt}],
                        "completion": [{"role": "assistant", "content": CODE}],
                        "answer": "",
                        "reward": reward,
                        "metrics": {},
                        "is_truncated": reward == 0,
                    }
                )
        write_lines(folder / f"step_{step}" / "results.jsonl", rows)


def write_traces(folder: Path) -> None:
    for step in (1, 2, 10):
        rows = []
        for prompt in PAIRS:
            for score in (1.0, 0.0):
                message = {"role": "assistant", "content": CODE}
                trace = {
                    "rewards": {"accepted": {"score": 2 * score, "weight": 0.5}},
                    "nodes": [
                        {"message": {"role": "user", "content": prompt}},
                        {"message": message},
                    ],
                }
                rows.append({"task": {"data": {"id": prompt, "prompt": prompt}}, "traces": [trace]})
        write_lines(folder / f"step_{step}" / "traces.jsonl", rows)


def write_prime_rl(folder: Path) -> None:
    for step in (1, 2, 10):
        rows = []
        for number, prompt in enumerate(PAIRS):
            for reward in (1.0, 0.0):
                rows.append(
                    {
                        "example_id": number,
                        "prompt": [{"role": "user", "content": prompt}],
                        "completion": [{"role": "assistant", "content": CODE}],
                        "reward": reward,
                        "advantage": reward - 0.5,
                        "is_truncated": reward == 0,
                        "trajectory": [{"tokens": {"completion_ids": [1, 2, 3]}}],
                    }
                )
        write_lines(folder / f"step_{step}" / "train_rollouts.jsonl.gz", rows)


def write_nemo_gym(folder: Path) -> None:
    for step in (1, 2, 10):
        rows = []
        for number, prompt in enumerate(PAIRS):
            for index, reward in enumerate((1.0, 0.0)):
                reason = {0.0: {"reason": "max_output_tokens"}, 1.0: None}[reward]
                message = {"role": "assistant", "content": [{"type": "output_text", "text": CODE}]}
                rows.append(
                    {
                        "_ng_task_index": number,
                        "_ng_rollout_index": index,
                        "responses_create_params": {"input": [{"role": "user", "content": prompt}]},
                        "response": {
                            "output": [message],
                            "incomplete_details": reason,
                            "usage": {"output_tokens": 3},
                        },
                        "reward": reward,
                    }
                )
        write_lines(folder / f"rollouts_step_{step}.jsonl", rows)


def write_slime(folder: Path) -> None:
    import torch

    for step in (1, 2, 10):
        samples = []
        for number, prompt in enumerate(PAIRS):
            for index, reward in enumerate((1.0, 0.0)):
                samples.append(
                    {
                        "group_index": number,
                        "index": 2 * number + index,
                        "prompt": prompt,
                        "tokens": [7, 8, 1, 2, 3],
                        "response": CODE,
                        "response_length": 3,
                        "reward": reward,
                        "status": {0.0: "truncated", 1.0: "completed"}[reward],
                        "rollout_log_probs": [-0.1, -0.2, -0.3],
                        "image": torch.zeros(2),
                    }
                )
        saved = {"rollout_id": step, "samples": samples}
        torch.save(saved, folder / f"rollout_{step}.pt")


def write_skyrl(folder: Path) -> None:
    for step in (1, 2, 10):
        rows = []
        for prompt in PAIRS:
            for score in (1.0, 0.0):
                rows.append(
                    {
                        "input_prompt": prompt,
                        "output_response": CODE,
                        "score": [0.0, 0.0, score],
                        "stop_reason": {0.0: "length", 1.0: "stop"}[score],
                        "env_class": "code",
                        "data_source": "code",
                    }
                )
        write_lines(folder / f"global_step_{step}_evals" / "code.jsonl", rows)


def write_rows(folder: Path) -> None:
    rows = []
    for step in (1, 2, 10):
        for prompt in PAIRS:
            for reward in (1.0, 0.0):
                rows.append(
                    {
                        "step": step,
                        "problem_id": prompt,
                        "response": CODE,
                        "reward": reward,
                        "is_truncated": reward == 0,
                    }
                )
    write_lines(folder / "mine.jsonl", rows)


WRITERS = {
    "verl": write_verl,
    "verifiers": write_traces,
    "verifiers_results": write_verifiers,
    "prime_rl": write_prime_rl,
    "nemo_gym": write_nemo_gym,
    "slime": write_slime,
    "skyrl": write_skyrl,
    "rows": write_rows,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_published_format_is_recognised_and_read(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path)
    recording = open_recording([tmp_path])
    assert recording.format == name
    steps = list(recording.read())
    assert [step.step for step in steps] == [1, 2, 10]
    for step in steps:
        assert len(step.scored_P_G) == 2
        for group in step.scored_P_G:
            assert [sample.reward for sample in group] == [1.0, 0.0]
            assert {sample.program.code for sample in group} == {"print(1)\n"}
            if Lack.TRUNCATION not in recording.lacks:
                assert [sample.rollout.is_truncated for sample in group] == [False, True]
            if Lack.LENGTHS not in recording.lacks:
                assert [len(sample.rollout.token_ids) for sample in group] == [3, 3]
    assert (Lack.TRUNCATION in recording.lacks) == (name in ("verl", "verifiers"))
    assert (Lack.LENGTHS in recording.lacks) == (name not in ("prime_rl", "nemo_gym", "slime"))
    assert (Lack.ADVANTAGES in recording.lacks) == (name != "prime_rl")
    (found,) = replay(recording, [Alternative("dr", {"algorithm.advantage": "rloo"})]).alternatives
    assert found.run.num_rollouts == 12
    assert found.run.first_difference == 1


def test_a_file_of_torch_runs_no_code(tmp_path: Path) -> None:
    """A pickle may name any function; none is called."""
    import torch

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "touched",))

    torch.save({"rollout_id": 1, "samples": [], "evil": Evil()}, tmp_path / "rollout_1.pt")
    with pytest.raises(DataError, match="is empty"):
        open_recording([tmp_path / "rollout_1.pt"])
    assert not (tmp_path / "touched").exists()
    (tmp_path / "no.pt").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"is no file that torch\.save wrote"):
        open_recording([tmp_path / "no.pt"])


def test_rows_that_cannot_be_read_say_which_and_what_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {"step": 1, "problem_id": "a", "response": CODE, "reward": 1.0}
    wrong: dict[str, list[dict[str, Any]]] = {
        "line 2 has no response; a row needs step": [whole, {"step": 1, "reward": 0.0}],
        "line 1: reward is 'much', not a number": [{**whole, "reward": "much"}],
        "line 3 is of step 1, which had ended before; sort": [whole, {**whole, "step": 2}, whole],
    }
    for message, rows in wrong.items():
        path = write_lines(tmp_path / "mine.jsonl", rows)
        with pytest.raises(SystemExit):
            main(["replay", str(path), "--against", "maxrl"])
        assert message in capsys.readouterr().err
    path = write_lines(tmp_path / "mine.jsonl", [whole])
    with pytest.raises(DataError, match="no format of rollouts is called 'rov'; use one of slime"):
        open_recording([path], format="rov")
    with pytest.raises(ConfigError, match="changes rewards, which are made of verdicts"):
        replay(
            open_recording([path]),
            [Alternative("parts", {"rewards": '[{name = "format"}, {name = "all_tests"}]'})],
        )
