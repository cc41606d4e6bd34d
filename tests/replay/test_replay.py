"""Our own runs, replayed under their own recipe and under others."""

import json
import math
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from microcoder import ConfigError, DataError
from microcoder.cli import main
from microcoder.judge.core.files import cut_pieces
from microcoder.replay import Alternative, Replay, describe_replay, open_recording, replay
from microcoder.replay.sentences import NOT_THE_OTHER_RUN, tell_alternative, tell_reproduction
from microcoder.train.algorithm.advantages import leave_one_out, normalise_group
from microcoder.train.run.probe import read_probe
from microcoder.train.runs import RunDirectory, read_rollouts, write_rollouts

MASK_ALL = Alternative("mask all", {"algorithm.masking.kind": "all"})
NO_MASK = Alternative("no mask", {"algorithm.masking.kind": "none"})


def replayed(run: Path, *alternatives: Alternative) -> Replay:
    return replay(open_recording([run]), alternatives)


def rows_of(run: Path, step: int) -> list[dict[str, Any]]:
    return read_rollouts(RunDirectory(run).rollout_file(step))


@pytest.mark.parametrize("name", ["masked_run", "adaptive_run", "rewarded_run", "resumed_run"])
def test_its_own_recipe_gives_what_is_recorded_to_the_last_digit(
    name: str, request: pytest.FixtureRequest
) -> None:
    run: Path = request.getfixturevalue(name)
    # As if it were another recipe: the same decisions come out by the way of alternatives.
    found = replayed(run, Alternative("again", {"algorithm.kl_coefficient": "0.5"}))
    assert found.reproduction is not None
    assert found.reproduction.is_exact, found.reproduction.what
    metrics = RunDirectory(run).read_metrics()
    assert [fact.step for fact in found.facts] == [row["step"] for row in metrics]
    again = found.alternatives[0].steps
    assert not any(answer.differs or answer.rewards_changed for answer in again)
    for row, fact, answer in zip(metrics, found.facts, again, strict=True):
        assert answer.doses == row["doses"]
        assert answer.masked == row["masked"]
        assert answer.reward_mean == row["reward_mean"]
        assert answer.flat_groups / fact.num_groups == row["zero_variance_share"]
        assert fact.diversity == row["diversity"]
        assert fact.length_mean == row["length_mean"]
        assert fact.truncated_share == row["truncated_share"]
        assert fact.looping_share == row["looping_share"]
        assert fact.temperature == row["temperature"]
        assert fact.max_response_tokens == row["max_response_tokens"]


def test_the_runs_have_what_their_replay_is_about(
    masked_run: Path, adaptive_run: Path, rewarded_run: Path
) -> None:
    masked = RunDirectory(masked_run).read_metrics()
    assert any(row["doses"] for row in masked)
    assert len({row["temperature"] for row in masked}) == 2
    adaptive = RunDirectory(adaptive_run).read_metrics()
    assert any(row["filtered_groups"] for row in adaptive)
    assert len({row["max_response_tokens"] for row in adaptive}) == 2
    assert any("penalty_positive" in row["doses"] for row in adaptive)
    rewarded = RunDirectory(rewarded_run).read_metrics()
    assert any(row["rewards"] for row in rewarded)
    assert any(row["masked"] for row in rewarded)


def test_another_mask_takes_what_its_definition_says(masked_run: Path) -> None:
    found = replayed(masked_run, MASK_ALL, NO_MASK)
    mask_all, no_mask = found.alternatives
    num_differing = 0
    dot = 0.0
    squares = [0.0, 0.0]
    for answer in mask_all.steps:
        expected: list[float] = []
        rows = rows_of(masked_run, answer.step)
        for group in cut_pieces(rows, 4):
            whole = normalise_group([row["reward"] for row in group])
            for row, advantage in zip(group, whole, strict=True):
                expected.append(0.0 if row["is_truncated"] else advantage)
        recorded = [row["advantage"] for row in rows]
        differing = sum(x != y for x, y in zip(recorded, expected, strict=True))
        assert answer.differing == differing
        assert answer.masked == {"truncated": sum(row["is_truncated"] for row in rows)}
        right = [row for row in rows if row["is_truncated"] and row["verdict"] == "accepted"]
        assert answer.masked_right == len(right)
        num_differing += differing
        dot += sum(x * y for x, y in zip(recorded, expected, strict=True))
        squares[0] += sum(x * x for x in recorded)
        squares[1] += sum(x * x for x in expected)
    assert num_differing == mask_all.run.differing > 0
    assert mask_all.run.cosine == pytest.approx(dot / math.sqrt(squares[0] * squares[1]))
    assert no_mask.run.masked == {}
    assert no_mask.run.doses == {}
    recorded_masked = 0
    for row in RunDirectory(masked_run).read_metrics():
        recorded_masked += sum(row["masked"].values())
    assert sum(found.recorded.masked.values()) == recorded_masked
    assert sum(found.recorded.doses.values()) > 0


def test_another_estimator_and_another_reward_are_asked_about_the_recorded_verdicts(
    rewarded_run: Path,
) -> None:
    changes = {"algorithm.advantage": "grpo", "algorithm.masking.kind": "none"}
    bare = Alternative("bare", {"rewards": '[{name = "all_tests"}]', **changes})
    found = replayed(rewarded_run, Alternative("grpo", changes), bare)
    with_format, without = found.alternatives
    # A recorded reward is 0, 0.3, 1 or 1.3.
    assert with_format.run.rewards_changed == 0
    assert without.run.rewards_changed > 0
    for answer in without.steps:
        rewards = []
        kept = []
        for row in rows_of(rewarded_run, answer.step):
            rewards.append(float(row["verdict"] == "accepted"))
            kept.append(row["reward"])
        assert answer.reward_mean == pytest.approx(sum(rewards) / len(rewards))
        flat = 0
        for group in cut_pieces(rewards, 4):
            flat += len(set(group)) == 1
        assert answer.flat_groups == flat
        assert answer.filtered["dynamic_reward"] == pytest.approx(flat / 8)
        assert answer.rewards_changed == sum(x != y for x, y in zip(rewards, kept, strict=True))
    assert without.run.became_flat > 0
    # All in the baseline, by RLOO: the recorded mask leaves the truncated out of it.
    (rloo,) = replayed(
        rewarded_run, Alternative("rloo", {"algorithm.masking.kind": "none"})
    ).alternatives
    total = 0.0
    for step in (1, 2):
        for group in cut_pieces(rows_of(rewarded_run, step), 4):
            total += sum(map(abs, leave_one_out([row["reward"] for row in group])))
    assert sum(answer.advantage_total for answer in rloo.steps) == pytest.approx(total)


def test_a_filter_replaces_groups_whose_rollouts_are_not_there(masked_run: Path) -> None:
    changes = {"algorithm.group_filtering": "dynamic", "algorithm.problem_choice": "uniform"}
    (filtered,) = replayed(masked_run, Alternative("filter", changes)).alternatives
    flat = 0
    for step in (1, 2, 3, 4):
        for group in cut_pieces(rows_of(masked_run, step), 4):
            flat += len({row["verdict"] == "accepted" for row in group}) == 1
    assert filtered.run.replaces_groups == flat > 0
    assert filtered.run.filtered["dynamic"] == pytest.approx(flat / 32)
    assert filtered.run.differing == 0
    assert filtered.run.first_difference is not None
    assert "algorithm.problem_choice: not replayed" in filtered.unanswered[0]


def test_the_diversity_rule_is_asked_about_the_recorded_probe(
    adaptive_run: Path, masked_run: Path
) -> None:
    probe = read_probe(RunDirectory(adaptive_run))
    same = Alternative("same", {"rollout.temperature.converged_diversity": "0.3"})
    high = Alternative("high", {"rollout.temperature.converged_diversity": "0.99"})
    found = replayed(adaptive_run, same, high)
    chosen = [alternative.temperature for alternative in found.alternatives]
    assert chosen[0] == probe.choice
    assert chosen[1] is not None
    assert chosen[1].reasons != probe.choice.reasons
    with pytest.raises(
        ConfigError, match=r"no samples at temperature 1\.5; .* may have 0\.6, 0\.9"
    ):
        replayed(adaptive_run, Alternative("grid", {"rollout.temperature.grid": "[0.6, 1.5]"}))
    # Nothing is guessed from a run at constant temperatures.
    asked = Alternative("asked", {"rollout.temperature.kind": "diversity"})
    assert replayed(masked_run, asked).alternatives[0].temperature is None
    assert any("no probe is recorded" in note for note in replayed(masked_run).notes)


def test_what_is_not_recorded_is_said_and_not_guessed(masked_run: Path, adaptive_run: Path) -> None:
    loss = Alternative("loss", {"algorithm.loss": "cispo", "optimizer.learning_rate": "1"})
    with pytest.raises(ConfigError, match=r"unknown key optimizer\.learning_rate"):
        replayed(masked_run, loss)
    recipe = Alternative("whole", recipe=Path("recipes/algorithms/grpo.toml"))
    (grpo,) = replayed(masked_run, recipe).alternatives
    assert any("algorithm.loss.kind: not replayed" in text for text in grpo.unanswered)
    assert any("algorithm.kl_coefficient: not replayed" in text for text in grpo.unanswered)
    with pytest.raises(ConfigError, match="reward fraction looks at all tests"):
        replayed(masked_run, Alternative("f", {"rewards": '[{name = "fraction"}]'}))
    dropped = "groups that dynamic filtering dropped are not recorded"
    assert any(dropped in note for note in replayed(adaptive_run).notes)
    assert not any(dropped in note for note in replayed(masked_run).notes)


def test_a_changed_record_is_noticed(masked_run: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(masked_run, changed)
    file = RunDirectory(changed).rollout_file(3)
    rows = read_rollouts(file)
    rows[5]["advantage"] += 1e-9
    write_rollouts(file, rows)
    found = replayed(changed)
    assert found.reproduction is not None
    assert not found.reproduction.is_exact
    assert found.reproduction.first_step == 3
    assert "advantage of" in found.reproduction.what
    assert "DIFFERS from step 3" in tell_reproduction(found.reproduction)
    exact = replayed(masked_run).reproduction
    assert exact is not None
    assert "gives every recorded reward" in tell_reproduction(exact)


def test_every_sentence_is_written_where_it_is_true_and_only_there(masked_run: Path) -> None:
    found = replayed(masked_run, MASK_ALL, Alternative("same", {"seed": "2"}), NO_MASK)
    mask_all, same, no_mask = (
        " ".join(tell_alternative(one, found.recorded)) for one in found.alternatives
    )
    run = found.alternatives[0].run
    assert (
        f"would first have differed in step {run.first_difference}, and in {run.differing_steps} "
        "of 4 steps" in mask_all
    )
    assert "all 4 updates would have been the same" in same
    assert "all 4 updates" not in mask_all
    assert "would first have differed" not in same
    assert f"It masks {run.masked['truncated']} responses, {run.masked_right} of them" in mask_all
    assert "It takes no advantage away; recorded: 19.0% masked" in no_mask
    assert "It masks" not in no_mask
    assert "the same as recorded; no reward changes" in mask_all
    assert "would have given way" not in mask_all
    assert NOT_THE_OTHER_RUN in describe_replay(found)
    assert NOT_THE_OTHER_RUN not in describe_replay(replayed(masked_run))


def test_a_sentence_names_groups_rewards_and_penalties_where_they_change(
    masked_run: Path, adaptive_run: Path, rewarded_run: Path
) -> None:
    found = replayed(masked_run, MASK_ALL)
    mask_all = " ".join(tell_alternative(found.alternatives[0], found.recorded))
    changes = {"algorithm.group_filtering": "dynamic", "algorithm.problem_choice": "uniform"}
    filtering = replayed(masked_run, Alternative("filter", changes))
    text = " ".join(tell_alternative(filtering.alternatives[0], filtering.recorded))
    replaced = filtering.alternatives[0].run.replaces_groups
    assert f"; {replaced} of 32 groups would have given way to other problems" in text
    # A penalty is moved, and lifts flat groups.
    penal = replayed(adaptive_run, NO_MASK, Alternative("same", {"seed": "2"}))
    without, kept = (" ".join(tell_alternative(one, penal.recorded)) for one in penal.alternatives)
    assert "Its penalty moves" in kept
    assert "% moved." in kept
    assert "Its penalty moves" not in without
    assert "The diversity rule would have chosen temperature" in kept
    assert "The diversity rule" not in mask_all
    assert "rewards change" in without
    outside = {"algorithm.masking.leave_out_of": "denominator", "algorithm.loss": "dapo"}
    left_out = replayed(masked_run, Alternative("outside", outside))
    text = " ".join(tell_alternative(left_out.alternatives[0], left_out.recorded))
    assert f"; {sum(left_out.recorded.masked.values())} responses enter or leave the loss" in text
    assert "denominator" not in mask_all
    bare = Alternative("bare", {"rewards": '[{name = "all_tests"}]'})
    changed = replayed(rewarded_run, bare)
    text = " ".join(tell_alternative(changed.alternatives[0], changed.recorded))
    became = changed.alternatives[0].run
    assert f"{became.became_flat} became flat, {became.became_mixed} mixed" in text
    assert "became flat" not in mask_all


def test_the_command_prints_a_table_json_and_the_rollouts_that_differ(
    masked_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    flags = ["--algorithm.masking.kind", "all", "--against", "dapo", "--rows", str(rows)]
    main(["replay", str(masked_run), *flags])
    text = capsys.readouterr().out
    assert "under its own recipe the replay gives every recorded" in text
    assert "masking.kind=all: the update would first" in text
    main(["replay", str(masked_run), *flags[:4], "--json"])
    found = json.loads(capsys.readouterr().out)
    direct = replayed(
        masked_run,
        Alternative("masking.kind=all", {"algorithm.masking.kind": "all"}),
        Alternative("dapo", recipe=Path("dapo")),
    )
    assert found == json.loads(json.dumps(asdict(direct)))
    assert [one["name"] for one in found["alternatives"]] == ["masking.kind=all", "dapo"]
    written = [json.loads(line) for line in rows.read_text().splitlines()]
    first = [row for row in written if row["alternative"] == "masking.kind=all"]
    assert len(first) == found["alternatives"][0]["run"]["differing"]
    assert all(row["advantage"] != row["advantage_then"] for row in first)


def test_mistakes_say_what_to_type(
    masked_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {
        "type: microcoder replay RUN --against dapo": [],
        "did you mean algorithm.masking.kind?": [str(masked_run), "--algorithm.maskin.kind", "all"],
        "two alternatives are called 'dapo'": [str(masked_run), *["--against", "dapo"] * 2],
        "does not exist; check the path": [str(tmp_path / "nothing")],
        "holds no file of rollouts": [str(tmp_path)],
        "there is no comparison 'exat'": [str(masked_run), "--judge", "strict=exat"],
        "recipe dapoo does not exist; did you mean dapo?": [str(masked_run), "--against", "dapoo"],
    }
    for message, words in wrong.items():
        with pytest.raises(SystemExit) as ended:
            main(["replay", *words])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="holds no rollouts of a training run"):
        open_recording([empty])


def test_a_replay_needs_no_torch(masked_run: Path) -> None:
    program = (
        "import sys; from microcoder.replay import open_recording, replay, Alternative;"
        f"found = replay(open_recording([{str(masked_run)!r}]),"
        "[Alternative('all', {'algorithm.masking.kind': 'all'})]);"
        "assert found.reproduction.is_exact; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
