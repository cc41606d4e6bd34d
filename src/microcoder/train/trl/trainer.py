"""GRPOTrainer with MicroCoder's rewards, masks and advantages.

It translates between TRL's tensors and our functions.

A *step* is ours: one sampling round and its updates. TRL's `global_step` counts updates. What is
overridden has its name in `adapter`.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import Any

import torch
from accelerate.utils import broadcast_object_list, gather_object
from datasets import Dataset
from peft import LoraConfig
from torch import nn
from transformers import (
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl import GRPOConfig

from microcoder.judge.core.files import cut_pieces
from microcoder.judge.core.types import Prompt, Rollout
from microcoder.train.algorithm.sampling import DiversityTemperature, find_limit
from microcoder.train.algorithm.scoring import (
    build_rules,
    note_mismatch,
    score_heldout,
    score_rollouts,
)
from microcoder.train.algorithm.selection import FILTERS, Processes, sample_mixed_groups
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, list_numbers, summarise_step
from microcoder.train.recipe.recipe import (
    EVALUATION_ROLLOUTS,
    Batches,
    build_extractor,
    build_rewards,
)
from microcoder.train.rollouts import RolloutReader, ScoredRollout, opens_thinking, render_chat
from microcoder.train.run.checkpoints import PhaseClock, RunClock, publish_checkpoint
from microcoder.train.run.mismatch import correct_mismatch
from microcoder.train.run.probe import choose_asked, measure_grid, write_probe
from microcoder.train.run.progress import PassCounter
from microcoder.train.run.recorder import Recorder
from microcoder.train.run.tasks import EngineInputs, Task, order_problems
from microcoder.train.run.weights import Checkpoint, as_published
from microcoder.train.trl.adapter import Completions, Generated, set_sampling
from microcoder.train.trl.frugal import FrugalGRPOTrainer
from microcoder.train.trl.groups import SampledGroup, join_generated, share_out
from microcoder.train.trl.sampler import (
    answering_generate,
    apart,
    fits_slots,
    samples_here,
    start_sampler,
)

OPTIMIZER_METRICS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "entropy": "entropy",
    "kl": "kl",
    "clip_ratio/low_mean": "clip_low_share",
    "clip_ratio/high_mean": "clip_high_share",
    "cispo_clip_ratio": "clip_high_share",
    "entropy_coef": "entropy_coefficient",
}
"""TRL's names of an update's figures -> ours; the rest of TRL's log repeats the metrics row."""


class MicroCoderTrainer(FrugalGRPOTrainer):
    """TRL's GRPO loop, in which MicroCoder's modules sample, score, measure and save."""

    def __init__(
        self,
        inputs: EngineInputs,
        *,
        batches: Batches,
        arguments: GRPOConfig,
        peft_config: LoraConfig | None,
        run_clock: RunClock,
    ) -> None:
        config = inputs.config
        tasks = inputs.tasks
        tokenizer = inputs.policy.tokenizer
        self.config = config
        self.batches = batches
        self.judge = inputs.judge
        self.run = inputs.run
        self.run_clock = run_clock
        self.observer = inputs.observer
        self.train_tasks = {task.problem.id: task for task in tasks.train}
        self.heldout_tasks = tasks.heldout
        self.rules = build_rules(
            config.algorithm,
            max_response_tokens=config.rollout.max_response_tokens,
            rewards=build_rewards(config.rewards),
            extract=build_extractor(config.extractor),
        )
        self.recorder = Recorder.of_recipe(inputs.run, config, inputs.observer)
        self.clock = PhaseClock(inputs.observer)
        self._passes = PassCounter(
            batches.updates_per_step * batches.gradient_accumulation_steps,
            inputs.observer.updating,
        )
        self.tokenizer = tokenizer
        self.checkpoint: Checkpoint = inputs.policy.checkpoint
        self.opens_thinking = opens_thinking(tokenizer, config.prompt.chat_template_options)
        self.stop_requested = False
        self._is_ours = samples_here(arguments)
        self._in_slots = self._is_ours and fits_slots(inputs.policy.model, inputs.observer.note)
        self._scored_P_G: list[list[ScoredRollout]] = []
        self._filtered_P_G: list[list[ScoredRollout]] = []
        self._ready: list[SampledGroup] | None = None
        self._updates: list[dict[str, float]] = []
        super().__init__(
            model=inputs.policy.model,
            args=arguments,
            reward_funcs=self._reward,
            train_dataset=self._order(tasks.train),
            processing_class=tokenizer,
            peft_config=peft_config,
            callbacks=[_StepBoundary(self)],
        )
        # It prints TRL's own log lines.
        self.remove_callback(PrinterCallback)
        start_sampler(self)

    @property
    def steps_done(self) -> int:
        """Number of completed steps."""
        return self.state.global_step // self.batches.updates_per_step

    def request_stop(self) -> bool:
        """Ask to stop after the step; return False if that was asked before."""
        was_requested = self.stop_requested
        self.stop_requested = True
        return not was_requested

    # --- sampling and scoring: one call a step

    def sample_step(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Sample and judge a step's problems.

        Our advantages and weights are put into TRL's tensors.
        """
        rollout = self.config.rollout
        step = self.steps_done + 1
        # The step's settings first: TRL, our rules and the reader all go by them.
        limit = find_limit(rollout.max_response_tokens, rollout.length_stages, step=step)
        self.rules = replace(self.rules, max_response_tokens=limit)
        temperature = self.recorder.step_temperature(step)
        set_sampling(self, temperature=temperature, max_response_tokens=limit)
        if self.config.algorithm.problem_choice == "active":
            # TRL's data loader has given others, which are thrown away.
            inputs = self._rows_of(self._choose_problems(len(inputs) // rollout.num_samples))
        if self.config.algorithm.group_filtering != "none":
            inputs = self._filter_groups(inputs)
        output = super().sample_step(inputs)
        self._ready = None
        self._correct_mismatch(output)
        self._write_decisions(output)
        return output

    def _write_decisions(self, output: dict[str, Any]) -> None:
        """Put our advantages and masks into TRL's tensors."""
        samples = list(chain.from_iterable(self._scored_P_G))
        theirs = output["advantages"]
        output["advantages"] = theirs.new_tensor([sample.advantage for sample in samples])
        if self.config.algorithm.masking.excluded_from == "gradient":
            return
        counts = theirs.new_tensor([sample.counts for sample in samples])
        # TRL multiplies the loss by it, token by token; what the model attends to stays.
        mask = (counts[:, None] * output["completion_mask"]).long()
        output["tool_mask"] = mask
        output["num_items_in_batch"] = self.accelerator.gather(mask.sum()).sum()

    def _filter_groups(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Sample problems until their groups are mixed; return TRL's rows of those groups."""
        pieces = cut_pieces(inputs, self.config.rollout.num_samples)
        groups, left_out = sample_mixed_groups(
            self._sample_groups,
            [rows[0]["problem_id"] for rows in pieces],
            all_ids=list(self.train_tasks),
            keeps=FILTERS[self.config.algorithm.group_filtering],
            seed=self.config.seed,
            step=self.steps_done + 1,
            processes=Processes(
                self.accelerator.process_index, self.accelerator.num_processes, gather_object
            ),
        )
        # TRL asks for the samples next, and gets these.
        self._ready = groups
        self._filtered_P_G = [group.scored for group in left_out]
        return list(chain.from_iterable(group.inputs for group in groups))

    def _correct_mismatch(self, output: dict[str, Any]) -> None:
        """Weight the responses by importance ratios, as `rollout.mismatch` says.

        Nothing is done if the sampler reports no log-probs.
        """
        if not self.config.rollout.corrects_mismatch:
            return
        corrected = correct_mismatch(
            output["old_per_token_logps"],
            output["sampling_per_token_logps"],
            output["completion_mask"],
            settings=self.config.rollout.mismatch,
        )
        output["importance_sampling_ratio"] = corrected.weights
        self._scored_P_G = note_mismatch(self._scored_P_G, corrected.rows)

    def _choose_problems(self, number: int) -> Sequence[str]:
        """Return the `number` problems that this process samples in the step.

        They are its part of the problems of all processes.
        """
        chosen: list[Any] = [None]
        # The main process has written the steps before.
        if self.accelerator.is_main_process:
            problem_ids = self.recorder.choose_problems(
                list(self.train_tasks),
                number=number * self.accelerator.num_processes,
                seed=self.config.seed,
                step=self.steps_done + 1,
            )
            chosen = [problem_ids]
        # All processes must choose the same, so that one chooses.
        start = number * self.accelerator.process_index
        return broadcast_object_list(chosen)[0][start : start + number]

    def _rows_of(self, problem_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return TRL's rows of some problems, one for each sample."""
        rows = []
        for problem_id in problem_ids:
            for _ in range(self.config.rollout.num_samples):
                prompt = self._as_trl(self.train_tasks[problem_id].prompt)
                rows.append({"prompt": prompt, "problem_id": problem_id})
        return rows

    def _sample_groups(self, problem_ids: Sequence[str]) -> list[SampledGroup]:
        """Sample and judge the groups of some problems."""
        num_samples = self.config.rollout.num_samples
        inputs = self._rows_of(problem_ids)
        prompt_ids, completion_ids, _, completions, logprobs, *_ = self.generate(
            [row["prompt"] for row in inputs]
        )
        # transformers reports none.
        logprobs = logprobs or [None] * len(completion_ids)
        generated = zip(prompt_ids, completion_ids, completions, logprobs, strict=True)
        scored_P_G = self._score(completion_ids, [row["problem_id"] for row in inputs])
        columns = (cut_pieces(inputs, num_samples), cut_pieces(generated, num_samples), scored_P_G)
        return [SampledGroup(*group) for group in zip(*columns, strict=True)]

    def generate(self, prompts: list[Any]) -> Generated:
        """Return the responses that filtering has sampled already, or sample as TRL does."""
        if self._ready is not None:
            return join_generated(self._ready)
        with self.clock.phase("generate"):
            return super().generate(prompts)

    def generate_responses(
        self, prompt_ids: list[list[int]], *rest: object, **named: object
    ) -> Completions:
        """Sample as TRL does, without dropout, and show the progress.

        The tokens are those of transformers' `generate`, sampled faster.
        """
        if not self._is_ours:
            return super().generate_responses(prompt_ids, *rest, **named)
        with answering_generate(
            self,
            pad_id=self.checkpoint.pad_id,
            in_slots=self._in_slots,
            report=self.observer.sampling,
        ):
            return super().generate_responses(prompt_ids, *rest, **named)

    def _reward(
        self,
        prompts: list[Any],
        completions: list[Any],
        completion_ids: list[list[int]],
        problem_id: list[str],
        **_: object,
    ) -> list[float | None]:
        """Return rewards as TRL asks for them; they are None where unscored."""
        if self._ready is None:
            self._scored_P_G = self._score(completion_ids, problem_id)
        else:
            self._scored_P_G = [group.scored for group in self._ready]
        return [sample.reward for sample in chain.from_iterable(self._scored_P_G)]

    def _score(
        self, completion_ids: list[list[int]], problem_ids: Sequence[str]
    ) -> list[list[ScoredRollout]]:
        """Judge the responses to some problems, whose ids are repeated for each sample."""
        pieces = cut_pieces(problem_ids, self.config.rollout.num_samples)
        tasks_P = [self.train_tasks[piece[0]] for piece in pieces]
        rollouts_P_G = self._rollouts(completion_ids, tasks_P, self.rules.max_response_tokens)
        with self.clock.phase("judge"):
            return score_rollouts(
                rollouts_P_G,
                [task.problem for task in tasks_P],
                judge=self.judge,
                rules=self.rules,
                seed=self.config.seed,
                step=self.steps_done + 1,
            )

    def _rollouts(
        self, completion_ids: list[list[int]], tasks_P: Sequence[Task], max_response_tokens: int
    ) -> list[list[Rollout]]:
        """Return rollouts by problem, read from token ids."""
        # Not TRL's decoded completions: those lose the reasoning where the tokenizer parses it
        # away.
        reader = RolloutReader(
            self.tokenizer,
            self.eos_token_ids,
            self.opens_thinking,
            self.config.prompt.chat_template_options,
        )
        groups = cut_pieces(completion_ids, len(completion_ids) // len(tasks_P))
        rollouts_P_G = []
        for task, group in zip(tasks_P, groups, strict=True):
            prompt = reader.render(task.prompt.as_chat())
            rollouts_P_G.append(
                reader.read(task.problem.id, prompt, group, max_response_tokens=max_response_tokens)
            )
        return rollouts_P_G

    # --- updates

    def compute_policy_loss(self, model: nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        """Return the loss of a pass, and show which of the step's passes it is."""
        self._passes.begin_pass()
        return super().compute_policy_loss(model, inputs)

    # --- sampling outside of training: held-out problems, and the probe

    def evaluate_policy(self) -> None:
        """Sample, judge and record the held-out problems with separate random state."""
        settings = self.config.evaluation
        start = time.perf_counter()
        with self.clock.phase("evaluate"):
            scored_P_G = self._sample_apart(
                self.heldout_tasks,
                num_samples=settings.samples_per_problem,
                temperature=settings.temperature,
                limit=settings.max_response_tokens or self.config.rollout.longest_response_tokens,
                seed=settings.seed,
            )
        if self.accelerator.is_main_process:
            seconds = time.perf_counter() - start
            metrics = self.recorder.record_evaluation(
                scored_P_G, step=self.steps_done, temperature=settings.temperature, seconds=seconds
            )
            if metrics is not None:
                self._report(metrics, prefix="eval_heldout/")

    def probe_temperatures(self) -> None:
        """Sample the untrained model over the grid of temperatures, and record the choice.

        The reasons are recorded with it.
        """
        rollout = self.config.rollout
        settings = rollout.temperature
        # Called for that schedule only.
        assert isinstance(settings, DiversityTemperature)
        chosen_tasks = choose_asked(
            list(self.train_tasks.values()), settings, seed=self.config.seed
        )

        def sample(temperature: float, number: int) -> list[list[ScoredRollout]]:
            return self._sample_apart(
                chosen_tasks,
                num_samples=rollout.num_samples,
                temperature=temperature,
                limit=rollout.max_response_tokens,
                # Others than those of evaluations, and a seed for each temperature.
                seed=self.config.evaluation.seed + 1 + number,
            )

        with self.clock.phase("probe"):
            points = measure_grid(settings, sample)
        if self.accelerator.is_main_process:
            self.observer.probe(write_probe(self.run, settings, points))
        self.accelerator.wait_for_everyone()

    def look_at(self, tasks: Sequence[Task]) -> list[list[ScoredRollout]]:
        """Sample and judge training problems by the weights as they are, like the first step."""
        rollout = self.config.rollout
        if isinstance(rollout.temperature, DiversityTemperature):
            # The probe has not chosen yet: the middle of what it would try.
            temperature = rollout.temperature.grid[len(rollout.temperature.grid) // 2]
        else:
            temperature = rollout.temperature.at(1)
        return self._sample_apart(
            tasks,
            num_samples=rollout.num_samples,
            temperature=temperature,
            limit=rollout.max_response_tokens,
            seed=self.config.seed,
        )

    def _sample_apart(
        self, tasks: Sequence[Task], *, num_samples: int, temperature: float, limit: int, seed: int
    ) -> list[list[ScoredRollout]]:
        """Sample and judge with separate random state.

        Returns the groups of all processes, in the order of `tasks`.
        """
        own_indices = share_out(
            len(tasks),
            process=self.accelerator.process_index,
            num_processes=self.accelerator.num_processes,
        )
        # As many as a step samples at a time, since those fit into memory.
        of_step = self.batches.rollouts_per_step // self.accelerator.num_processes
        most_rollouts = min(EVALUATION_ROLLOUTS, of_step)
        scored: list[tuple[int, list[ScoredRollout]]] = []
        with apart(self, seed=seed):
            set_sampling(self, temperature=temperature, max_response_tokens=limit)
            for indices in cut_pieces(own_indices, max(1, most_rollouts // num_samples)):
                tasks_P = [tasks[index] for index in indices]
                groups = self._sample_heldout(tasks_P, num_samples=num_samples, limit=limit)
                scored.extend(zip(indices, groups, strict=True))
        # A problem that two processes have sampled has one of their groups.
        by_index = dict(gather_object(scored))
        return [by_index[index] for index in sorted(by_index)]

    def _sample_heldout(
        self, tasks_P: Sequence[Task], *, num_samples: int, limit: int
    ) -> list[list[ScoredRollout]]:
        """Sample and judge some problems at once, without advantages."""
        prompts = []
        for task in tasks_P:
            for _ in range(num_samples):
                prompts.append(self._as_trl(task.prompt))
        prompt_ids, images, fields = self.tokenize(prompts)
        completion_ids, _ = self.generate_responses(prompt_ids, images, fields, num_samples)
        return score_heldout(
            self._rollouts(completion_ids, tasks_P, limit),
            [task.problem for task in tasks_P],
            judge=self.judge,
            extract=self.rules.extract,
        )

    # --- metrics and checkpoints

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Collect an update's figures; after a step's last update, record the step."""
        super().log(logs, start_time)
        # Also called with TRL's own summary at the end.
        if "loss" not in logs:
            return
        update = {}
        for theirs, ours in OPTIMIZER_METRICS.items():
            if theirs in logs:
                update[ours] = float(logs[theirs])
        # The step that the update is in; until its last one, `steps_done` does not count it.
        step = math.ceil(self.state.global_step / self.batches.updates_per_step)
        self.recorder.refuse_divergence(update, step=step)
        self._updates.append(update)
        if self.state.global_step % self.batches.updates_per_step == 0:
            self._record_step()

    def _report(self, metrics: StepMetrics | EvaluationMetrics, *, prefix: str) -> None:
        """Log the numbers of a row by TRL's loggers ([trl] report_to), `prefix` in each name."""
        numbers = list_numbers(metrics, prefix=prefix)
        self.callback_handler.on_log(self.args, self.state, self.control, numbers)

    def _record_step(self) -> None:
        """Record the step that is done, and evaluate if it is time."""
        step = self.steps_done
        scored_P_G = gather_object(self._scored_P_G)
        filtered_P_G = gather_object(self._filtered_P_G)
        if self.accelerator.is_main_process:
            optimizer = {}
            for name in self._updates[0]:
                optimizer[name] = fmean(update[name] for update in self._updates)
            metrics = summarise_step(
                scored_P_G,
                step=step,
                temperature=self.temperature,
                max_response_tokens=self.rules.max_response_tokens,
                optimizer=optimizer,
                seconds=self.clock.read(),
                filtered_P_G=filtered_P_G,
            )
            self._report(self.recorder.record_step(scored_P_G, metrics), prefix="")
        # From here on the next step's updates are collected.
        self._updates.clear()
        if step % self.config.evaluation.every_steps == 0 or step == self.config.num_steps:
            self.evaluate_policy()

    def write_checkpoint(self, model: nn.Module, trial: object) -> None:
        """Write TRL's checkpoint and publish it as the step's.

        It has the model's own generation config.
        """
        staged = self.run.trl / f"checkpoint-{self.state.global_step}"
        with self.clock.phase("checkpoint"):
            # TRL writes into its folder; ours is named by the step.
            with as_published(self.checkpoint, staged):
                super().write_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if self.accelerator.is_main_process:
                publish_checkpoint(
                    staged,
                    self.run,
                    step=self.steps_done,
                    clock=self.run_clock.read(),
                    keep=self.config.checkpoint.keep,
                )

    # --- inputs

    def _order(self, tasks: Sequence[Task]) -> Dataset:
        """Return the whole run as a dataset of one epoch, a row per sampled problem.

        A resume skips what was done.
        """
        order = order_problems(
            len(tasks),
            num_steps=self.config.num_steps,
            train_batch_size=self.config.batch.train_batch_size,
            seed=self.config.seed,
        )
        rows = []
        for task in tasks:
            rows.append({"prompt": self._as_trl(task.prompt), "problem_id": task.problem.id})
        return Dataset.from_list([rows[index] for index in order])

    def _as_trl(self, prompt: Prompt) -> str | list[dict[str, str]]:
        """Return a prompt as TRL takes it: a chat, or a text for a model without a template."""
        chat = prompt.as_chat()
        if self.tokenizer.chat_template is None:
            return render_chat(self.tokenizer, chat, {})
        return chat


class _StepBoundary(TrainerCallback):
    """Probes and evaluates before the first step.

    Checkpoints are requested between steps only, for bit-exact resumes.
    """

    def __init__(self, trainer: MicroCoderTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        trainer = self.trainer
        config = trainer.config
        if config.rollout.temperature.kind == "diversity" and not trainer.run.probe.exists():
            trainer.probe_temperatures()
        # A resumed run was evaluated there before.
        if state.global_step == 0:
            trainer.evaluate_policy()
            # The time of the first evaluation is none of the first step's.
            trainer.clock.read()

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        if state.global_step % self.trainer.batches.updates_per_step:
            return
        step = self.trainer.steps_done
        config = self.trainer.config
        # Processes hear of a Ctrl-C at different times; they must stop after the same step.
        self.trainer.stop_requested = any(gather_object([self.trainer.stop_requested]))
        is_due = step % config.checkpoint.every_steps == 0 or step == config.num_steps
        if is_due or self.trainer.stop_requested:
            control.should_save = True
        if self.trainer.stop_requested:
            control.should_training_stop = True
