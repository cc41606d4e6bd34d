"""A training run from start to finish: `run_training`, to be read top to bottom."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.files import read_json, write_json
from microcoder.train.recipe.recipe import TrainConfig, describe_batches
from microcoder.train.run.checkpoints import Observer, RunClock, read_clock
from microcoder.train.run.estimate import explain_failures
from microcoder.train.run.judging import open_judge
from microcoder.train.run.look import describe_look, summarise_look
from microcoder.train.run.manifest import (
    check_run_directory,
    describe_start,
    digest_config,
    find_extensions,
    open_run,
)
from microcoder.train.run.preflight import check_context, check_settings
from microcoder.train.run.tasks import EngineInputs, load_tasks
from microcoder.train.runs import RunDirectory


def run_training(
    config: TrainConfig,
    *,
    run_directory: Path,
    observer: Observer,
    command: Sequence[str] = (),
    callbacks: Sequence[Any] = (),
) -> dict[str, Any]:
    """Start or resume a training run; return its summary.

    Nothing is written before the config, the problems and the model have been checked.

    Args:
        config: the recipe.
        run_directory: where the run is, or will be.
        observer: receives the run's events.
        command: recorded in the manifest.
        callbacks: of the engine's own kind (TRL: `transformers.TrainerCallback`); they see its
            model and state.

    Raises:
        ConfigError: the config contradicts the machine or the problems.
        DataError: the problem files or the model folder are wrong.
        TrainingError: the folder holds a run under another config or in progress, or training
            diverged.
        KeyboardInterrupt: stopped by the user; the run can be resumed.
    """
    run = RunDirectory(run_directory)
    check_run_directory(run, config)
    # Before anything is loaded: that takes minutes.
    if run.is_finished:
        # The same command again is not an error.
        return _report_finished(run, observer)
    extensions = find_extensions(config)
    check_settings(config)
    # From here on things are open that must be closed whatever happens.
    with ExitStack() as opened:
        opened.enter_context(explain_failures(config, run))
        tasks = load_tasks(config)
        for reason, number in tasks.left_out.items():
            observer.note(f"{number} rows of {config.problems.kind} were skipped: {reason}")
        # It imports torch.
        engine = import_module(f"microcoder.train.{config.engine}.engine")
        policy = engine.load_policy(config, observer=observer)
        # With the real tokenizer; the dry run may know bounds only.
        check_context(config, tasks, partial(engine.encode_prompts, config, policy))
        judge, judged_by = opened.enter_context(open_judge(config.evaluator))
        machine = engine.describe_machine(config)
        leads = engine.is_main_process()
        if leads:
            opened.enter_context(run.lock())
            # Another process may have come first while this one loaded.
            check_run_directory(run, config)
        if leads and not run.is_finished:
            start = describe_start(config, name=run.root.name, command=command)
            manifest = {
                **start,
                "digest": digest_config(config, extensions),
                "extensions": extensions,
                "seed": config.seed,
                "problems": tasks.as_record(),
                "machine": {**start["machine"], **machine},
                **judged_by,
            }
            open_run(run, manifest, config, observer=observer)
        # From here on the main process's files are there for all.
        engine.wait_for_everyone()
        if run.is_finished:
            return _report_finished(run, observer)
        resume_step = run.latest_checkpoint_step()
        run_clock = RunClock(**read_clock(run, resume_step)) if resume_step else RunClock()
        # Known only now: an engine may have several processes.
        for line in describe_batches(config, num_processes=machine["num_processes"]):
            observer.note(line)
        if resume_step != config.num_steps:
            inputs = EngineInputs(config, policy, tasks, judge, run, observer)
            engine.train(inputs, run_clock=run_clock, resume_step=resume_step, callbacks=callbacks)
        if leads:
            engine.export_model(
                config, policy=policy, checkpoint=run.checkpoint(config.num_steps), target=run.model
            )
            write_json(run.summary, summarise(run, run_clock))
        engine.wait_for_everyone()
    return read_json(run.summary, what="run summary")


def look_before_training(config: TrainConfig, *, observer: Observer) -> list[str]:
    """Return what a run could learn from some training problems, in lines.

    The untrained model samples them, as a step would.

    Raises:
        ConfigError: the engine is verl, or the config contradicts the machine or the problems.
        DataError: the problem files or the model folder are wrong.
    """
    if config.engine != "trl":
        raise ConfigError(
            f'a look samples in this process, by engine trl, and the recipe has "{config.engine}"; '
            "add --engine trl"
        )
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory()))
        run = RunDirectory(folder / "look")
        opened.enter_context(explain_failures(config, run))
        tasks = load_tasks(config)
        # It imports torch.
        engine = import_module(f"microcoder.train.{config.engine}.engine")
        policy = engine.load_policy(config, observer=observer)
        check_context(config, tasks, partial(engine.encode_prompts, config, policy))
        judge, _ = opened.enter_context(open_judge(config.evaluator))
        scored_P_G = engine.look(EngineInputs(config, policy, tasks, judge, run, observer))
    # The judge is closed, and the folder is gone.
    look = summarise_look(scored_P_G)
    return describe_look(look, max_response_tokens=config.rollout.max_response_tokens)


def summarise(run: RunDirectory, clock: RunClock) -> dict[str, Any]:
    """Return the `summary.json` of a run whose steps are done.

    It tells accuracy before and after, and the time that the run took.
    """
    evaluations = run.read_evaluations()
    # The first is that of the untrained model.
    before = evaluations[0]
    after = evaluations[-1]
    return {
        "accuracy_before": before["accuracy"],
        "accuracy_after": after["accuracy"],
        "accuracy_before_by_tier": before["accuracy_by_tier"],
        "accuracy_after_by_tier": after["accuracy_by_tier"],
        "num_problems": after["num_problems"],
        "samples_per_problem": after["samples_per_problem"],
        "num_unscored": before["num_unscored"] + after["num_unscored"],
        "num_steps": after["step"],
        **clock.read(),
    }


def _report_finished(run: RunDirectory, observer: Observer) -> dict[str, Any]:
    observer.note(f"{run.root} is already finished; showing its summary and report")
    return read_json(run.summary, what="run summary")
