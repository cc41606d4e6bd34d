"""Runs, whole: what they write, and that a killed one ends as if it had not been."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tensorboard.backend.event_processing import event_accumulator
from transformers import TrainerCallback

from microcoder.data import write_problems
from microcoder.data.micro import generate_problems
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError, TrainingError
from microcoder.judge.core.files import cut_pieces
from microcoder.train.algorithm.advantages import normalise_group
from microcoder.train.algorithm.selection import choose_problems, count_passes
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.manifest import check_run_directory
from microcoder.train.run.probe import read_probe
from microcoder.train.run.tasks import order_problems
from microcoder.train.run.training import load_tasks, run_training
from microcoder.train.runs import RunDirectory, steps_in
from microcoder.train.trl import engine
from microcoder.view import write_report
from tests.train import keyed_sampling
from tests.train.small_runs import SMALL, comparable_rollouts, start_training, without_times

NUM_STEPS = 4
MICRO = {"model.kind": "micro", "problems.kind": "micro"}
RECIPE = {
    **SMALL,
    "num_steps": str(NUM_STEPS),
    "seed": "2",  # the first with a mixed group of which something is masked
    "problems.num_train": "12",
    "rollout.temperature.kind": "staged",
    "rollout.temperature.stages": "[{from_step = 1, value = 0.8}, {from_step = 3, value = 1.2}]",
    "algorithm.masking.rho": "1",
    "algorithm.masking.repeat_window_tokens": "4",
    "algorithm.problem_choice": "active",
    "evaluation.every_steps": "2",
    "checkpoint.every_steps": "2",
}


def recipe(checkpoint: Path, **changes: str) -> TrainConfig:
    kinds = []
    for key in changes:
        if key.endswith(".kind"):
            kinds.append(key.removesuffix("kind"))
    kept = {}
    for key, value in RECIPE.items():
        if not any(map(key.startswith, kinds)):
            kept[key] = value
    return load_config(TrainConfig, overrides={**kept, "model.path": str(checkpoint), **changes})


def run_with(config: TrainConfig, run: Path, *callbacks: TrainerCallback) -> dict[str, Any]:
    torch.set_num_threads(1)
    return run_training(
        config,
        run_directory=run,
        observer=Observer(),
        command=["test"],
        callbacks=callbacks,
    )


def train(checkpoint: Path, run: Path, **changes: str) -> dict[str, Any]:
    return run_with(recipe(checkpoint, **changes), run)


@pytest.fixture(scope="module")
def finished(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that nobody interrupted."""
    root = tmp_path_factory.mktemp("runs") / "whole"
    train(tiny_checkpoint, root)
    return RunDirectory(root)


def interrupt(run: RunDirectory, folder: Path) -> RunDirectory:
    """Copy a finished run as a kill after its last step leaves it:
    its last checkpoint was not written.
    """
    cut = RunDirectory(folder / "cut")
    shutil.copytree(run.root, cut.root)
    cut.summary.unlink()
    shutil.rmtree(cut.model)
    shutil.rmtree(cut.checkpoint(max(steps_in(cut.checkpoints))))
    return cut


def rollout_rows(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for file in sorted(folder.glob("*.parquet")):
        rows.extend(comparable_rollouts(file))
    return rows


def assert_same_run(run: RunDirectory, expected: RunDirectory) -> None:
    ours = load_file(run.model / "model.safetensors")
    theirs = load_file(expected.model / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert torch.equal(ours[name], theirs[name])
    assert list(map(without_times, run.read_metrics())) == list(
        map(without_times, expected.read_metrics())
    )
    assert list(map(without_times, run.read_evaluations())) == list(
        map(without_times, expected.read_evaluations())
    )
    assert rollout_rows(run.rollouts) == rollout_rows(expected.rollouts)
    assert rollout_rows(run.evaluation_samples) == rollout_rows(expected.evaluation_samples)


def check_doses(recorded: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Hold the doses of a step against its rollouts, whose groups have four members."""
    wholes = []
    for group in cut_pieces(rows, 4):
        wholes.extend(normalise_group([row["reward"] for row in group]))
    taken = []
    for row, whole in zip(rows, wholes, strict=True):
        if row["masked_why"] and whole:
            taken.append(whole)
    assert recorded["masked_effective_share"] == len(taken) / len(rows)
    # A step whose groups are all flat has no advantage to take.
    total = sum(map(abs, wholes)) or 1
    for sign, direction in (("positive", 1), ("negative", -1)):
        dose = sum(max(0.0, direction * whole) for whole in taken) / total
        assert recorded["doses"].get(f"mask_{sign}", 0.0) == pytest.approx(dose)


def test_a_run_directory_holds_the_whole_story(
    finished: RunDirectory, tiny_checkpoint: Path
) -> None:
    manifest = finished.read_manifest()
    metrics = finished.read_metrics()
    evaluations = finished.read_evaluations()
    assert manifest["config"]["algorithm"]["masking"]["rho"] == 1
    assert manifest["packages"]["trl"].startswith("1.16")
    assert manifest["isolation"]["level"]
    assert manifest["environment"]["packages"]["profile"] == "standard"
    assert [row["step"] for row in metrics] == [1, 2, 3, 4]
    assert [row["temperature"] for row in metrics] == [0.8, 0.8, 1.2, 1.2]
    assert [row["step"] for row in evaluations] == [0, 2, 4]
    summary = finished.read_summary()
    assert summary is not None
    assert summary["num_problems"] == 6
    assert summary["samples_per_problem"] == 2
    assert summary["accuracy_after"] == evaluations[-1]["accuracy"]
    assert summary["wall_seconds"] > 0
    rows = rollout_rows(finished.rollouts)
    assert len(rows) == NUM_STEPS * 8 * 4
    masked = []
    for row in rows:
        if row["masked_why"]:
            masked.append(row)
    assert masked, "nothing was masked, so the test shows nothing about masking"
    for row in masked:
        assert row["is_truncated"]
        assert row["advantage"] == 0
    for recorded in metrics:
        check_doses(recorded, [row for row in rows if row["step"] == recorded["step"]])
    assert any(recorded["doses"] for recorded in metrics), (
        "the mask took nothing, so the test shows nothing of doses"
    )
    before, after = (
        load_file(folder / "model.safetensors")
        for folder in (tiny_checkpoint, finished.checkpoint(NUM_STEPS))
    )
    assert steps_in(finished.checkpoints) == [2, 4]
    assert any(row["advantage"] for row in rows), (
        "nothing was learnt, so the test shows nothing about updates"
    )
    assert before.keys() == after.keys()
    assert not all(torch.equal(before[name], after[name]) for name in before)
    assert write_report(finished.root) == finished.report
    (overview,) = (finished.root / "report" / "data").glob("*/overview.js")
    assert f"before training and after {NUM_STEPS} steps" in overview.read_text()


def test_problems_are_chosen_by_what_is_recorded(
    finished: RunDirectory, tiny_checkpoint: Path
) -> None:
    rows = rollout_rows(finished.rollouts)
    counts = []
    asked = []
    names = sorted(task.problem.id for task in load_tasks(recipe(tiny_checkpoint)).train)
    for step in range(1, NUM_STEPS + 1):
        of_step = []
        for row in rows:
            if row["step"] == step:
                of_step.append(row)
        asked.append([group[0]["problem_id"] for group in cut_pieces(of_step, 4)])
        assert asked[-1] == choose_problems(names, counts, number=8, seed=2, step=step)
        counts += count_passes(of_step, step=step)
    uniform = list(
        cut_pieces(order_problems(12, num_steps=NUM_STEPS, train_batch_size=8, seed=2), 8)
    )
    shared, uniformly_shared = (
        [len({*s[n]} & {*s[n + 1]}) for n in range(3)] for s in (asked, uniform)
    )
    assert shared != uniformly_shared, "asked as if nothing had been chosen"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill_signal", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_stopped_run_resumes_to_the_same_weights(
    finished: RunDirectory,
    tiny_checkpoint: Path,
    tmp_path: Path,
    kill_signal: signal.Signals,
) -> None:
    run = RunDirectory(tmp_path / "run")
    process = start_training({**RECIPE, "model.path": str(tiny_checkpoint)}, run.root)
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    rows = chance.randint(1, NUM_STEPS - 1)
    while len(run.read_metrics()) < rows and process.poll() is None:
        time.sleep(0.02)
    time.sleep(chance.random() * 0.3)
    process.send_signal(kill_signal)
    exit_code = process.wait(timeout=120)
    # Slow to be killed, it may have finished; then there is nothing left to resume,
    # and the rest still holds.
    if not run.is_finished:
        assert exit_code == (-signal.SIGKILL if kill_signal is signal.SIGKILL else 130), (
            f"seed {seed}"
        )
    train(tiny_checkpoint, run.root)
    assert_same_run(run, finished)


ADAPTIVE = {
    "rollout.temperature.kind": "diversity",
    "rollout.temperature.grid": "[0.6, 0.9]",
    "rollout.temperature.num_problems": "3",
    "rollout.temperature.converged_diversity": "0.3",
    "rollout.max_response_tokens": "20",
    "rollout.length_stages": "[{from_step = 3, max_response_tokens = 28}]",
    "algorithm.masking.kind": "soft_penalty",
    "algorithm.masking.window_tokens": "8",
    # Always under its target: the coefficient grows with each update.
    "trl": "{use_adaptive_entropy = true, entropy_target = 50.0, entropy_coef_delta = 0.001}",
    "algorithm.problem_choice": "uniform",
    "algorithm.group_filtering": "dynamic",
    "evaluation.every_steps": "4",
    "problems.num_train": "24",
}


def test_a_run_that_chooses_and_adapts_resumes_to_the_same(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """Probe, length stages, filtering and penalty are functions of what is recorded.

    The coefficient of the entropy term is in the checkpoint.
    """
    config = recipe(tiny_checkpoint, **ADAPTIVE)
    whole = RunDirectory(tmp_path / "whole")
    run_with(config, whole.root)
    probe = read_probe(whole)
    assert [point.temperature for point in probe.points] == [0.6, 0.9]
    assert probe.choice.temperature in (0.6, 0.9)
    rows = whole.read_metrics()
    assert [row["max_response_tokens"] for row in rows] == [20, 20, 28, 28]
    assert {row["temperature"] for row in rows} == {probe.choice.temperature}
    assert max(row["filtered_groups"] for row in rows) > 0
    # What gave way to another in its step is recorded in neither's place: each problem once,
    # four times.
    for step in range(1, NUM_STEPS + 1):
        problem_ids = []
        for row in rollout_rows(whole.rollouts):
            if row["step"] == step:
                problem_ids.append(row["problem_id"])
        asked = Counter(problem_ids)
        assert len(asked) == 8
        assert set(asked.values()) == {4}
    assert any(row["length_penalty"] < 0 for row in rollout_rows(whole.rollouts))
    coefficients = [row["optimizer"]["entropy_coefficient"] for row in rows]
    assert coefficients == sorted(set(coefficients))
    cut = interrupt(whole, tmp_path)
    run_with(config, cut.root)
    assert_same_run(cut, whole)


def test_a_finished_run_is_left_alone(finished: RunDirectory, tiny_checkpoint: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.root.rglob("*")}
    assert train(tiny_checkpoint, finished.root) == finished.read_summary()
    assert {path: path.stat().st_mtime_ns for path in finished.root.rglob("*")} == before


def test_another_config_or_other_problems_than_a_run_began_with_are_refused(
    finished: RunDirectory,
    tiny_checkpoint: Path,
    tmp_path: Path,
) -> None:
    """Another problem set would be asked in another order:
    the resumed run would be neither the old nor a new one.
    """
    with pytest.raises(
        TrainingError, match=r"algorithm\.loss\.clip_high: 0\.28 -> 0\.3.*another folder"
    ):
        train(tiny_checkpoint, finished.root, **{"algorithm.loss.clip_high": "0.3"})
    run = interrupt(finished, tmp_path)
    manifest = run.read_manifest()
    others = load_tasks(recipe(tiny_checkpoint, **{"problems.seed": "5"})).as_record()
    assert others != manifest["problems"] == load_tasks(recipe(tiny_checkpoint)).as_record()
    manifest["problems"] = others
    run.manifest.write_text(json.dumps(manifest))
    with pytest.raises(TrainingError, match="began with problems"):
        train(tiny_checkpoint, run.root)


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_train_as_one(
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given the same responses: the same rewards, advantages and masks,
    and to 1e-5 the same weights, in float64.
    """
    changes = {
        "num_steps": "2",
        "seed": "0",  # with a mixed group under these samples
        "problems.num_train": "24",
        "algorithm.problem_choice": "uniform",
        "algorithm.loss.clip_high": "0.2",
        # one update a step: which rollouts share an update is TRL's shuffle
        "batch.ppo_mini_batch_size": "8",
        "rollout.temperature.stages": (
            "[{from_step = 1, value = 0.7}, {from_step = 2, value = 0.8}]"
        ),
        "problems.num_heldout": "7",  # does not divide by two
        "evaluation.samples_per_problem": "1",
    }
    keys = {**RECIPE, "model.path": str(tiny_checkpoint), **changes}
    one = RunDirectory(tmp_path / "one")
    two = RunDirectory(tmp_path / "two")
    launch = [
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        str(free_port()),
    ]
    words = [
        keyed_sampling.__file__,
        str(two.root),
        *(f"{key}={value}" for key, value in keys.items()),
    ]
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent / "verl")}
    process = subprocess.Popen([sys.executable, *launch, *words], env={**os.environ, **environment})
    monkeypatch.setattr(engine, "MicroCoderTrainer", keyed_sampling.InFloat64)
    train(tiny_checkpoint, one.root, **changes)
    assert process.wait(timeout=250) == 0
    assert two.read_manifest()["machine"]["num_processes"] == 2

    def decisions(run: RunDirectory) -> list[tuple[Any, ...]]:
        keys = (
            "step",
            "problem_id",
            "sample_index",
            "completion",
            "reward",
            "advantage",
            "masked_why",
            "temperature",
        )
        values = []
        for row in rollout_rows(run.rollouts):
            values.append(tuple(row[key] for key in keys))
        return sorted(values)

    assert decisions(two) == decisions(one)
    assert len(decisions(two)) == 2 * 32
    assert any(row["masked_why"] for row in rollout_rows(two.rollouts)), "nothing was masked"
    assert [len(row["solved"]) for row in two.read_evaluations()] == [7, 7]
    start = load_file(tiny_checkpoint / "model.safetensors")
    ours = load_file(two.model / "model.safetensors")
    theirs = load_file(one.model / "model.safetensors")
    assert any(not torch.equal(start[name], ours[name]) for name in start), "nothing was learnt"
    for name, weight in theirs.items():
        assert weight.dtype == torch.float64
        torch.testing.assert_close(ours[name], weight, atol=1e-5, rtol=0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_folder_that_is_no_run_or_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    config = load_config(TrainConfig, overrides=MICRO)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(TrainingError, match="not empty and holds no run"):
        check_run_directory(RunDirectory(tmp_path), config)
    run = RunDirectory(tmp_path / "run")
    with run.lock(), pytest.raises(TrainingError, match="another process is writing"), run.lock():
        pass
    (run.root / ".manifest.json.partial").write_text('{"name": "ru')  # killed while it was written
    check_run_directory(run, config)


def test_mistakes_are_found_before_anything_is_written(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "no_weights"
    partial = tmp_path / "partial"
    cut = tmp_path / "cut"
    empty.mkdir()
    (empty / "config.json").write_text("{}")
    for copy in (partial, cut):
        shutil.copytree(tiny_checkpoint, copy)
    weights = load_file(partial / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    (cut / "model.safetensors").write_bytes(
        (tiny_checkpoint / "model.safetensors").read_bytes()[:-100]
    )
    broken, calls, shown = (tmp_path / f"{name}.jsonl" for name in ("broken", "calls", "shown"))
    broken.write_text(
        '{"id": "a", "statement": "s", "tests": [{"input": "1", "output": "2"}]}\n{"id": "b", \n'
    )
    calls.write_text(
        '{"id": "a", "statement": "s", "fn_name": "f", "tests": [{"input": "n = 1", '
        '"output": "2"}]}\n'
    )
    write_problems(
        shown, generate_problems(split="train", num_problems=12, seed=0, tiers=("easy",))
    )
    files = {"problems.kind": "files", "problems.train": str(shown), "problems.heldout": str(shown)}
    own = tmp_path / "own.py"
    own.write_text(
        "def mine(problem, rollout, program, verdict):\n"
        "    return 0\n\n\n"
        "mine.needs_all_tests = True\n\n\n"
        "def ask(problem, *, ending: str):\n"
        "    return problem.statement + ending\n"
    )
    asks = {"prompt.style": f"{own}:ask", "prompt.options.ending": "[1]"}
    mistakes: list[tuple[dict[str, str], type[Exception], str]] = [
        ({"model.path": str(empty)}, DataError, "has no weights.*--model.path"),
        ({"model.path": str(broken)}, DataError, "is no folder here"),
        ({"model.path": str(partial)}, DataError, r"lacks 1 weights.*model\.norm\.weight"),
        ({"model.path": str(cut)}, DataError, r"model\.safetensors has .* it is cut short"),
        (
            {"model.attn_implementation": "flash_attention_2"},
            DataError,
            "cannot load model.*[Aa]ttention",
        ),
        ({"rollout.backend": "vllm"}, ConfigError, "vLLM is not installed"),
        ({**files, "problems.train": str(calls)}, DataError, r"calls\.jsonl: .*a"),
        ({**files, "problems.train": str(broken)}, DataError, r"broken\.jsonl line 2 is not JSON"),
        (files, DataError, "12 held-out problems are training problems too"),
        ({"batch.train_batch_size": "16"}, ConfigError, "more than problems.num_train"),
        ({"rewards": f"{own}:nothing"}, ConfigError, "it has mine, ask"),
        (
            {"rewards": f"{own}:mine", "evaluator.stop": "first_failure"},
            ConfigError,
            "add --evaluator.stop never",
        ),
        (
            {"rewards": "fraction", "evaluator.stop": "first_failure"},
            ConfigError,
            "add --evaluator.stop never",
        ),
        (asks, ConfigError, r"line 8\) option ending = \[1\]"),
        (
            {"prompt.chat_template_options.enable_thinking": "false"},
            ConfigError,
            "would change nothing",
        ),
        (
            {"trl.disable_droput": "true"},
            ConfigError,
            "disable_droput is no option of the installed TRL; did you mean disable_dropout",
        ),
    ]
    for changes, error, message in mistakes:
        with pytest.raises(error, match=message):
            train(tiny_checkpoint, tmp_path / "run", **changes)
        assert not (tmp_path / "run" / "metrics.jsonl").exists()


@contextmanager
def small_disk(folder: Path, *, kib: int) -> Iterator[Callable[[int], None]]:
    """Mount a file system of a few KiB; yields what gives it another size."""
    folder.mkdir()

    def mount(options: str) -> int:
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
        return subprocess.run(command, capture_output=True).returncode

    if os.getuid() != 0 or mount(f"size={kib}k") != 0:
        pytest.skip("a file system can be mounted by root alone")

    def resize(size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}k", str(folder)], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class AfterUpdate(TrainerCallback):
    """Calls a function after an update, by number."""

    def __init__(self, number: int, act: Callable[[], object]) -> None:
        self._number = number
        self._act = act

    def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        if state.global_step == self._number:
            self._act()


def test_a_run_on_a_full_disk_is_one_line_and_resumes_to_the_same_weights(
    finished: RunDirectory,
    tiny_checkpoint: Path,
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", kib=64 * 1024) as resize:
        run = interrupt(finished, tmp_path / "disk")

        def fill() -> None:
            sizes = []
            for path in run.root.rglob("*"):
                if path.is_file():
                    sizes.append(path.stat().st_size)
            resize(sum(sizes) // 1024 + 400)

        with pytest.raises(
            TrainingError, match=r"disk is full: .*cut has 0 MiB free; a checkpoint takes"
        ) as told:
            run_with(recipe(tiny_checkpoint), run.root, AfterUpdate(7, fill))
        assert "\n" not in str(told.value)
        assert "resumes the run after step 2" in str(told.value)
        resize(64 * 1024)
        train(tiny_checkpoint, run.root)
        assert_same_run(run, finished)


def test_a_run_out_of_memory_names_the_keys_and_resumes_in_smaller_passes_whatever_a_kill_left(
    finished: RunDirectory,
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows and files beyond the last checkpoint, a half-written one, a cut-off line:
    all gone after the resume.

    And our figures are among TRL's in its loggers.
    """
    run = interrupt(finished, tmp_path)
    with pytest.raises(
        TrainingError, match=r"out of memory \(.*lower batch.micro_batch_rollouts \(now 8;"
    ) as told:
        run_with(recipe(tiny_checkpoint), run.root, AfterUpdate(6, lambda: torch.empty(1 << 50)))
    assert "\n" not in str(told.value)
    assert "resumes the run after step 2" in str(told.value)
    (run.trl / "checkpoint-8").mkdir(parents=True)
    with run.metrics.open("a") as file:
        file.write('{"step": 5, "rew')
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    train(
        tiny_checkpoint,
        run.root,
        **{"batch.micro_batch_rollouts": "4", "trl.report_to": "tensorboard"},
    )
    ours = load_file(run.model / "model.safetensors")
    theirs = load_file(finished.model / "model.safetensors")
    furthest = max(float((ours[name] - theirs[name]).abs().max()) for name in theirs)
    assert furthest < 1e-4
    asked = []
    for r in (run, finished):
        asked.append([row["problem_id"] for row in rollout_rows(r.rollouts)])
    assert asked[0] == asked[1]
    rows = run.read_metrics()
    evaluations = run.read_evaluations()
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert [row["step"] for row in evaluations] == [0, 2, 4]
    events = event_accumulator.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    (diversity,) = events.Scalars("train/diversity")[-1:]
    (accuracy,) = events.Scalars("eval/heldout/accuracy")[-1:]
    assert diversity.value == pytest.approx(rows[-1]["diversity"])
    assert accuracy.value == pytest.approx(evaluations[-1]["accuracy"])
