"""Runs on stock verl, whole: what they write, that a killed one goes on,
and that TRL does the same.
"""

import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from microcoder.judge.core.config import load_config
from microcoder.replay import open_recording, replay
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.probe import read_probe
from microcoder.train.run.training import run_training
from microcoder.train.runs import RunDirectory, read_rollouts
from microcoder.train.trl import engine
from tests.train.keyed_sampling import KeyedSampling
from tests.train.small_runs import comparable_rollouts, without_times
from tests.train.verl.verl_runs import ONE_UPDATE, RECIPE, Runs, make_runs, needs_verl, train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), needs_verl]


@pytest.fixture(scope="module")
def runs(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """What was trained."""
    return make_runs(tiny_checkpoint, tmp_path_factory.mktemp("verl"))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def largest_difference(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in theirs)


def test_a_run_directory_holds_the_whole_story(runs: Runs, tiny_checkpoint: Path) -> None:
    """Of a run that was killed after its first step: nothing twice, nothing lost."""
    finished = runs.resumed
    manifest = finished.read_manifest()
    rows = finished.read_metrics()
    assert manifest["packages"]["verl"] == "0.9.1"
    assert manifest["machine"]["num_processes"] == 1
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert [row["temperature"] for row in rows] == [0.4, 1.2, 1.2]
    assert [row["max_response_tokens"] for row in rows] == [28, 32, 32]
    for row in rows:
        assert {"loss", "grad_norm", "entropy"} <= row["optimizer"].keys()
    evaluations = finished.read_evaluations()
    assert [row["step"] for row in evaluations] == [0, 3]
    assert finished.read_summary() is not None
    assert (finished.root / "report" / "index.html").exists()
    rollouts = []
    for step in (1, 2, 3):
        rollouts.extend(comparable_rollouts(finished.rollout_file(step)))
    assert len(rollouts) == 3 * 8 * 4
    assert any(row["num_tokens"] > 28 for row in rollouts), "the stage did not reach the sampler"
    for row in rollouts:
        if row["program"] is not None and row["verdict"] != "compile_error":
            assert row["tests"]
    masked = []
    for row in rollouts:
        if row["masked_why"]:
            masked.append(row)
    assert masked, "nothing was masked, so the test shows nothing about masking"
    for row in masked:
        assert row["is_truncated"]
        assert row["advantage"] == 0
    assert any(row["advantage"] for row in rollouts), (
        "nothing was learnt, so the test shows nothing about updates"
    )
    assert largest_difference(weights(finished.model), weights(tiny_checkpoint)) > 1e-4
    assert not list(finished.model.glob("*.pt"))


def test_a_run_that_samples_ahead_goes_on_where_it_was_killed(runs: Runs) -> None:
    """What it samples depends on what arrives when, so no two runs are alike:
    what must hold of every one.

    Sixteen prompts are asked before the first step, which takes eight:
    the others must survive the kill.
    """
    ahead = runs.ahead
    rows = ahead.read_metrics()
    log = (ahead.logs / "verl.log").read_text(errors="replace")
    assert [row["step"] for row in rows] == [1, 2, 3]
    probe = read_probe(ahead)
    assert [(point.temperature, point.num_samples) for point in probe.points] == [
        (0.6, 16),
        (0.9, 16),
    ]
    assert {row["temperature"] for row in rows} == {probe.choice.temperature}
    rollouts = []
    for step in (1, 2, 3):
        rollouts.extend(read_rollouts(ahead.rollout_file(step)))
    assert len(rollouts) == 3 * 8 * 4
    asked = pq.read_table(ahead.root / "verl" / "train.parquet")["extra_info"].to_pylist()
    # Another batch is begun than is trained on: verl begins its data anew.
    offered = Counter(row["problem_id"] for row in [*asked, *asked[:8]])
    trained = Counter(row["problem_id"] for row in rollouts)
    for name in trained:
        assert trained[name] <= 4 * offered[name], "a prompt was trained on twice"
    assert re.findall(r"Restored (\d+) training prompt groups", log) == ["8"]
    # Some were sampled from older weights than the newest,
    # and each is cut by one of the two limits.
    assert max(row["staleness_mean"] for row in rows) > 0
    lengths = set()
    for row in rollouts:
        if row["is_truncated"]:
            lengths.add(row["num_tokens"])
    assert lengths <= {28, 32}
    # Handed over to new weights, and not cut by it.
    spans = [float(span) for span in re.findall(r"trajectory_spans/max:(?:np\.\w+\()?(\d+)", log)]
    assert max(spans) > 1, "no response went on with other weights"
    for row in rollouts:
        if not row["is_truncated"]:
            assert not row["masked_why"]
    for row in rows:
        assert {"weight"} <= row["mismatch"].keys()
    assert (ahead.model / "model.safetensors").exists()


def test_a_replay_under_its_own_recipe_gives_what_is_recorded(runs: Runs) -> None:
    """Stages of temperature and length, a probe, sampling ahead; killed and resumed."""
    for run in (runs.resumed, runs.adapted, runs.ahead):
        found = replay(open_recording([run.root]))
        assert found.reproduction is not None
        assert found.reproduction.is_exact, f"{run.root.name}: {found.reproduction.what}"
        rows = run.read_metrics()
        assert [fact.step for fact in found.facts] == [row["step"] for row in rows]
        assert [answer.doses for answer in found.recorded_steps] == [row["doses"] for row in rows]
        assert [fact.diversity for fact in found.facts] == [row["diversity"] for row in rows]


def test_what_verl_itself_writes_of_its_rollouts_is_read(runs: Runs) -> None:
    recording = open_recording([runs.dump])
    assert recording.format == "verl"
    steps = list(recording.read())
    assert [step.step for step in steps] == [1, 2]
    for step in steps:
        read = Counter()
        for group in step.scored_P_G:
            assert len(group) == 4
            for sample in group:
                read[sample.rollout.completion, sample.reward] += 1
        recorded = Counter()
        for row in read_rollouts(runs.adapted.rollout_file(step.step)):
            recorded[row["completion"], row["reward"]] += 1
        assert read == recorded


def test_the_weights_load_as_an_ordinary_model(runs: Runs, tiny_checkpoint: Path) -> None:
    """An adapter's too: it is added to the weights."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    for run in (runs.resumed, runs.adapted):
        model = AutoModelForCausalLM.from_pretrained(run.model, dtype="auto")
        ids = PreTrainedTokenizerFast.from_pretrained(run.model)("print", return_tensors="pt")[
            "input_ids"
        ]
        assert model.dtype is torch.float32
        assert model(input_ids=ids).logits.shape[:2] == ids.shape
    before = weights(tiny_checkpoint)
    after = weights(runs.adapted.model)
    assert before.keys() <= after.keys()
    moved = set()
    for name in before:
        if not torch.equal(before[name], after[name]):
            moved.add(name)
    assert moved
    for name in moved:
        assert "proj" in name, "more than what the adapter is on has moved"


def test_two_ranks_sample_and_decide_what_one_does(runs: Runs) -> None:
    """Of the first step: adapters begin at nothing, so that both sample from the same weights.

    With verl's own rollout correction at work.

    A logit's last bits hang on how many rows are sampled together, so a draw near a boundary may
    take another token: whole groups are compared, where no response of the group is another.
    """
    assert runs.adapted.read_manifest()["machine"]["num_processes"] == 2
    shards = runs.adapted.checkpoints / "global_step_2" / "actor"
    assert len(list(shards.glob("model_world_size_2_rank_*.pt"))) == 2
    assert "rollout_corr/" in (runs.adapted.logs / "verl.log").read_text(errors="replace")
    ours = comparable_rollouts(runs.adapted.rollout_file(1))
    theirs = comparable_rollouts(runs.resumed.rollout_file(1))
    assert [row["problem_id"] for row in ours] == [row["problem_id"] for row in theirs]
    pairs = []
    for start in range(0, len(ours), 4):
        pairs.append((ours[start : start + 4], theirs[start : start + 4]))
    sampled = []
    for pair in pairs:
        if [row["completion"] for row in pair[0]] == [row["completion"] for row in pair[1]]:
            sampled.append(pair)
    assert len(sampled) > len(pairs) / 2
    for mine, other in sampled:
        assert mine == other


@pytest.mark.long
def test_a_resumed_run_is_bit_identical(runs: Runs, tiny_checkpoint: Path, tmp_path: Path) -> None:
    whole = train(tiny_checkpoint, RunDirectory(tmp_path / "whole"))
    resumed = runs.resumed
    assert list(map(without_times, whole.read_metrics())) == list(
        map(without_times, resumed.read_metrics())
    )
    assert list(map(without_times, whole.read_evaluations())) == list(
        map(without_times, resumed.read_evaluations())
    )
    for step in (1, 2, 3):
        assert comparable_rollouts(whole.rollout_file(step)) == comparable_rollouts(
            resumed.rollout_file(step)
        )
    assert largest_difference(weights(whole.model), weights(resumed.model)) == 0
    shutil.rmtree(whole.root)


def test_trl_decides_the_same_and_makes_the_same_update(
    runs: Runs,
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(engine, "MicroCoderTrainer", KeyedSampling)
    changes = {"engine": "trl", "model.path": str(tiny_checkpoint), "num_steps": "1"}
    config = load_config(TrainConfig, overrides={**RECIPE, **ONE_UPDATE, **changes})
    run_training(config, run_directory=tmp_path / "trl", observer=Observer())
    trl = RunDirectory(tmp_path / "trl")
    finished = runs.resumed
    # Prompts, responses, programs, verdicts, rewards, masks and advantages: bit for bit.
    assert comparable_rollouts(trl.rollout_file(1)) == comparable_rollouts(finished.rollout_file(1))
    ours = finished.read_metrics()[0]["optimizer"]
    theirs = trl.read_metrics()[0]["optimizer"]
    assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], abs=1e-5)
    assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-6)
    before, verls, trls = (
        weights(run) for run in (tiny_checkpoint, finished.checkpoint(1), trl.checkpoint(1))
    )
    assert largest_difference(trls, before) > 1e-4, "nothing was updated"
    # Adam's first update is rate * g / (|g| + 1e-8): where a gradient is itself some 1e-8, the last
    # bits of float32, which depend on the processor's kernels, decide about its sign. So no weight
    # differs by more than a tenth of the rate, and on average they differ by less than a
    # hundred-thousandth of it.
    rate = config.optimizer.learning_rate
    assert largest_difference(verls, trls) < rate / 10
    differences = torch.cat([(verls[name] - trls[name]).abs().flatten() for name in trls])
    assert float(differences.mean()) < rate * 1e-5
