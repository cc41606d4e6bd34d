"""MicroCoder-GRPO on verl's own trainers, by `trainer.v1.trainer_mode=microcoder`.

verl samples, scores responses as they end, balances, takes log-probs, corrects, updates, saves and
logs. Some of its methods are overridden, to add three things: how each step is sampled; which
rewards, masks and advantages its responses get, by the functions that every engine calls; and the
files of a run directory. verl's `global_steps` is our step.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from omegaconf import DictConfig, open_dict
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Subset
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils
from verl.utils.dataset.rl_dataset import collate_fn

from microcoder.judge.core.errors import TrainingError
from microcoder.train.algorithm.sampling import (
    ConstantTemperature,
    DiversityTemperature,
    find_limit,
)
from microcoder.train.algorithm.scoring import build_rules, note_mismatch
from microcoder.train.metrics import Groups, list_numbers, summarise_step
from microcoder.train.recipe.recipe import build_extractor, build_rewards
from microcoder.train.rollouts import SamplerMismatch, ScoredRollout
from microcoder.train.run.mismatch import correct_mismatch
from microcoder.train.run.probe import choose_asked, measure_grid, write_probe
from microcoder.train.run.recorder import Recorder
from microcoder.train.runs import RunDirectory
from microcoder.train.verl.names import MANAGER, TRAINER_MODES, Sampling, problem_name
from microcoder.train.verl.rows import (
    SampledResponse,
    build_reader,
    decide_groups,
    read_rows,
    read_sessions,
    score_sessions,
    session_of,
    sort_rows,
    write_columns,
)
from microcoder.train.verl.settings import PluginSettings, read_settings, refuse_idle

if TYPE_CHECKING:
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
else:
    # `register` mixes the trainer in.
    PPOTrainer = object


class MicroCoder(PPOTrainer):
    """Mixin that adds MicroCoder's sampling, rewards, masks, advantages and run files."""

    stock_mode: ClassVar[str]
    """verl's mode that is extended."""

    def __init__(self, config: DictConfig) -> None:
        self.settings: PluginSettings = read_settings(config)
        self.algorithm = self.settings.build_algorithm(str(config.algorithm.adv_estimator))
        self.rewards = build_rewards(self.settings.rewards)
        self.extract = build_extractor(self.settings.extractor)
        # Before verl starts its workers.
        refuse_idle(config, self.settings)
        with open_dict(config):
            # verl's trainers and buffers ask which of them they are.
            config.trainer.v1.trainer_mode = self.stock_mode
            config.actor_rollout_ref.rollout.agent.agent_loop_manager_class = MANAGER
        folder = self.settings.run_dir or Path(config.trainer.default_local_dir) / "microcoder"
        self.run = RunDirectory(folder)
        self._scored_P_G: list[list[ScoredRollout]] = []
        self._saves = False
        # Without a schedule of ours verl's own temperature holds.
        usual = ConstantTemperature(value=float(config.actor_rollout_ref.rollout.temperature))
        self.recorder = Recorder(
            run=self.run,
            schedule=self.settings.temperature or usual,
            learning_rate=config.actor_rollout_ref.actor.optim.lr,
            num_steps=config.trainer.total_training_steps,
            mechanisms=self.algorithm.mechanisms,
        )
        self._num_asked = 0
        super().__init__(config)

    # --- sampling

    def _init_tokenizer(self) -> None:
        super()._init_tokenizer()
        self.reader = build_reader(self.config, self.tokenizer)

    def _load_checkpoint(self) -> None:
        super()._load_checkpoint()
        self.run.root.mkdir(parents=True, exist_ok=True)
        # verl has chosen the checkpoint: what was written after it is written again.
        self.run.rewind(self.global_steps)
        if self.run.read_evaluations():
            with open_dict(self.config):
                # What a resumed run begins with was evaluated then.
                self.config.trainer.val_before_train = False

    def on_train_begin(self) -> None:
        """Probe for the temperature before the first samples, if the schedule is of kind
        `diversity`.
        """
        if isinstance(self.settings.temperature, DiversityTemperature):
            self._probe(self.settings.temperature)
        self._use_step_sampling()
        super().on_train_begin()

    def on_step_begin(self) -> None:
        """Set the step's temperature and length limit, by their schedules."""
        self._scored_P_G = []
        self._use_step_sampling()
        super().on_step_begin()

    def _reissue_inflight_prompts(self, partition_id: str = "train") -> int:
        """Resend prompts that a killed run had begun.

        They get the step's sampling settings, which verl does not keep.
        """
        if self.global_steps > 1:
            self._use_step_sampling()
        return super()._reissue_inflight_prompts(partition_id)

    def _use_step_sampling(self) -> None:
        """Have the prompts from now on sampled at the step's temperature and length limit."""
        settings = self.settings
        # As a run begins, the step is still 0.
        step = max(1, self.global_steps)
        self.temperature = self.recorder.step_temperature(step)
        first = settings.max_response_tokens or self.config.data.max_response_length
        self.limit = find_limit(first, settings.length_stages, step=step)
        with open_dict(self.config):
            # Log-probs are taken at it.
            self.config.actor_rollout_ref.rollout.temperature = self.temperature
        seed = settings.seed if settings.seeded_sampling else None
        self.agent_loop_manager.sampling = Sampling(
            temperature=self.temperature,
            max_response_tokens=self.limit,
            step=step,
            num_samples=None,
            seed=seed,
        )

    def _fetch_one_gen_batch(self) -> Any:
        """Fetch prompts, and give them ids made of step and index.

        verl's own ids are random; with ours the order can be reproduced. With `problem_choice =
        "active"` the chosen problems replace those of verl's data loader.
        """
        if self.settings.problem_choice == "active":
            self._load_chosen_problems()
        batch = super()._fetch_one_gen_batch()
        prompt_ids = []
        for number in range(self._num_asked, self._num_asked + len(batch)):
            prompt_ids.append(f"{self.global_steps:08d}-{number:06d}")
        self._num_asked += len(batch)
        tensordict_utils.assign_non_tensor_stack(batch, "uid", prompt_ids)
        return batch

    def _load_chosen_problems(self) -> None:
        """Have verl fetch the step's chosen problems, from the first that was not asked yet."""
        step_size = self.config.data.train_batch_size
        fetched = self.config.data.get("gen_batch_size") or step_size
        chosen = self.recorder.choose_problems(
            list(self._place_of),
            number=step_size,
            seed=self.settings.seed,
            step=self.global_steps,
        )
        rows = []
        for name in chosen[self._num_asked :][:fetched]:
            rows.append(self.train_dataset[self._place_of[name]])
        self.train_dataloader_it = iter([collate_fn(rows)])

    @cached_property
    def _place_of(self) -> dict[str, int]:
        """Name of each training problem -> index of a row of the dataset that has it."""
        places = {}
        for index, row in enumerate(self.train_dataset.dataframe):
            places[problem_name(row["extra_info"], row.get("data_source", ""))] = index
        return places

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], **kwargs: Any) -> Any:
        # verl balances them between processes; that must not hang on who was first.
        sort_rows(batch)
        return super()._balance_batch(batch, metrics, **kwargs)

    # --- decisions

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Write the step's rewards, let verl estimate and correct, then write our advantages and
        masks.
        """
        groups = self._read_sessions(batch, limit=self.config.data.max_response_length)
        rules = build_rules(
            self.algorithm,
            max_response_tokens=self.limit,
            rewards=self.rewards,
            extract=self.extract,
        )
        scored_P_G = decide_groups(groups, rules=rules, step=self.global_steps)
        # In the order of the decided rollouts.
        names = [session.name for session in chain.from_iterable(groups)]
        self._write_rewards(batch, _by_name(names, scored_P_G))
        batch = super()._compute_advantage(batch, metrics=metrics)
        if self.settings.mismatch is not None:
            mismatches = self._correct_mismatch(batch)
            scored_P_G = note_mismatch(scored_P_G, [mismatches[name] for name in names])
        leaves = self.algorithm.masking.excluded_from != "gradient"
        self._write_decisions(batch, _by_name(names, scored_P_G), leaves=leaves)
        self._scored_P_G += scored_P_G
        # For verl's own loggers.
        row = summarise_step(
            scored_P_G,
            step=0,
            temperature=self.temperature,
            max_response_tokens=self.limit,
            optimizer={},
            seconds={},
        )
        metrics.update(list_numbers(row, prefix="microcoder/"))
        return batch

    def _read_sessions(self, batch: Any, *, limit: int) -> list[list[SampledResponse]]:
        """Return the judged responses of a batch, by problem."""
        return read_sessions(
            batch,
            reader=self.reader,
            extract=self.extract,
            max_response_tokens=limit,
            seed=self.settings.seed,
            step=self.global_steps,
        )

    def _write_rewards(self, batch: Any, scored: Mapping[str, ScoredRollout]) -> None:
        """Write each response's reward into `rm_scores`; an unscored response gets the mean of the
        scored.

        So verl reports the means of scored responses. There is no gradient from it: our advantages
        leave unscored responses out of their group.
        """
        scored_rewards = [sample.reward for sample in scored.values() if sample.reward is not None]
        if not scored_rewards:
            raise TrainingError(
                "the sandbox failed on every response of this batch; type: microcoder doctor"
            )
        mean = sum(scored_rewards) / len(scored_rewards)
        rows = read_rows(batch, ["rm_scores"])["rm_scores"]
        for position, key in enumerate(batch.keys):
            sample = scored.get(session_of(key))
            if sample is None or not len(rows[position]):
                continue
            rows[position] = torch.zeros_like(rows[position])
            rows[position][-1] = mean if sample.reward is None else sample.reward
        write_columns(batch, {"rm_scores": rows})

    def _write_decisions(
        self, batch: Any, scored: Mapping[str, ScoredRollout], *, leaves: bool
    ) -> None:
        """Write the decided advantages.

        With `leaves`, also loss masks without the responses that do not count.
        """
        data = read_rows(batch, ["advantages", "response_mask"])
        advantages = data["advantages"]
        masks = data["response_mask"]
        # A step of which nothing counts has a loss of zero whatever it is divided by; verl would
        # divide it by zero.
        leaves = leaves and any(sample.counts for sample in scored.values())
        for position, key in enumerate(batch.keys):
            sample = scored.get(session_of(key))
            if sample is None:
                continue
            advantages[position] = masks[position].to(torch.float32) * sample.advantage
            if leaves and not sample.counts:
                masks[position] = torch.zeros_like(masks[position])
        columns = {"advantages": advantages, "returns": [row.clone() for row in advantages]}
        if leaves:
            # verl sums the loss over the first, and divides it by the number of the second.
            columns |= {"response_mask": masks, "loss_mask": [row.clone() for row in masks]}
        write_columns(batch, columns)

    def _correct_mismatch(self, batch: Any) -> dict[str, SamplerMismatch]:
        """Write the importance weights by which verl multiplies each token's loss.

        Returns the mismatch by session.
        """
        data = read_rows(batch, ["old_log_probs", "rollout_log_probs"])
        lengths = torch.tensor([len(row) for row in data["old_log_probs"]])
        trainer_logps = pad_sequence(data["old_log_probs"], batch_first=True)
        sampler_logps = pad_sequence(data["rollout_log_probs"], batch_first=True)
        mask = torch.arange(trainer_logps.size(1)) < lengths[:, None]
        assert self.settings.mismatch is not None
        corrected = correct_mismatch(
            trainer_logps, sampler_logps, mask, settings=self.settings.mismatch
        )
        weights = []
        for row, length in zip(
            corrected.weights.expand_as(trainer_logps), lengths.tolist(), strict=True
        ):
            weights.append(row[:length])
        write_columns(batch, {"rollout_is_weights": weights})
        sessions = map(session_of, batch.keys)
        return dict(zip(sessions, corrected.rows, strict=True))

    # --- held-out problems, and the probe

    def _validate(self) -> dict[str, Any]:
        """Validate as verl does and record the evaluation; return verl's metrics."""
        options = self.config.actor_rollout_ref.rollout.val_kwargs
        start = time.perf_counter()
        metrics, scored_P_G = self._sample_apart(
            temperature=options.temperature, num_samples=options.n
        )
        seconds = time.perf_counter() - start
        self.recorder.record_evaluation(
            scored_P_G, step=self.global_steps, temperature=options.temperature, seconds=seconds
        )
        return metrics

    def _sample_apart(
        self, *, temperature: float, num_samples: int, offset: int = 0, limit: int | None = None
    ) -> tuple[dict[str, Any], list[list[ScoredRollout]]]:
        """Run verl's validation with these sampling settings.

        Returns its metrics and the scored samples.
        """
        settings = self.settings
        usual = settings.validation_response_tokens or self.config.data.max_response_length
        longest = limit or usual
        seed = None
        if settings.seeded_sampling:
            seed = settings.evaluation_seed + offset
        self.agent_loop_manager.sampling = Sampling(
            temperature=temperature,
            max_response_tokens=longest,
            step=0,
            num_samples=num_samples,
            seed=seed,
        )
        groups: list[list[SampledResponse]] = []
        take = self.replay_buffer.sample

        def observe(*args: Any, **kwargs: Any) -> Any:
            batch, metrics = take(*args, **kwargs)
            groups.extend(self._read_sessions(batch, limit=longest))
            return batch, metrics

        # verl returns metrics of its samples only: they are read as they are taken.
        self.replay_buffer.sample = observe
        try:
            metrics = super()._validate()
        finally:
            self.replay_buffer.sample = take
        return metrics, score_sessions(groups)

    def _probe(self, settings: DiversityTemperature) -> None:
        """Sample the untrained model over the grid of temperatures.

        The choice is recorded with its reasons.
        """
        if self.run.probe.exists():
            return
        num_samples = self.config.actor_rollout_ref.rollout.n
        limit = self.settings.max_response_tokens or self.config.data.max_response_length

        def sample(temperature: float, number: int) -> list[list[ScoredRollout]]:
            _, scored_P_G = self._sample_apart(
                temperature=temperature,
                num_samples=num_samples,
                offset=1 + number,
                limit=limit,
            )
            return scored_P_G

        # A run's data may ask a problem many times: the first row of each will do.
        first: dict[Any, int] = {}
        for position in range(len(self.train_dataset)):
            row = self.train_dataset.dataframe[position]
            first.setdefault(row["extra_info"].get("index", position), position)
        chosen = choose_asked(list(first.values()), settings, seed=self.settings.seed)
        # Validation asks these training problems meanwhile, and writes none of its samples.
        usual_dataloader = self.val_dataloader
        usual_folder = self.config.trainer.get("validation_data_dir")
        probed = Subset(self.train_dataset, chosen)
        self.val_dataloader = DataLoader(probed, batch_size=len(chosen), collate_fn=collate_fn)
        with open_dict(self.config):
            self.config.trainer.validation_data_dir = None
        try:
            points = measure_grid(settings, sample)
        finally:
            self.val_dataloader = usual_dataloader
            with open_dict(self.config):
                self.config.trainer.validation_data_dir = usual_folder
        write_probe(self.run, settings, points)

    # --- what is written

    def _compute_metrics(
        self, batch: Any, metrics: dict[str, Any], timing_raw: Any, **kwargs: Any
    ) -> None:
        """Record the step when verl's metrics are known; then save the checkpoint if it is time."""
        super()._compute_metrics(batch, metrics, timing_raw, **kwargs)
        optimizer = {}
        for theirs, ours in OPTIMIZER_METRICS.items():
            if theirs in metrics:
                optimizer[ours] = float(metrics[theirs])
        self.recorder.refuse_divergence(optimizer, step=self.global_steps)
        seconds = {}
        for name, parts in PHASES.items():
            spent = sum(timing_raw.get(part, 0.0) for part in parts)
            seconds[name] = round(spent, 4)
        step_metrics = summarise_step(
            self._scored_P_G,
            step=self.global_steps,
            temperature=self.temperature,
            max_response_tokens=self.limit,
            optimizer=optimizer,
            seconds=seconds,
            num_filtered=int(metrics.get(FILTERED, 0)),
        )
        self.recorder.record_step(self._scored_P_G, step_metrics)
        # Not as a step begins: modes that sample ahead have asked for its first prompts before.
        self._num_asked = 0
        if self._saves:
            super()._save_checkpoint()
            self._saves = False

    def _save_checkpoint(self) -> None:
        """Postpone saving until the step is recorded.

        A run that is killed before then has neither record nor checkpoint.
        """
        self._saves = True


def _by_name(names: Sequence[str], scored_P_G: Groups) -> dict[str, ScoredRollout]:
    """Return rollouts by their sessions' names, which are in the same order."""
    return dict(zip(names, chain.from_iterable(scored_P_G), strict=True))


def register() -> None:
    """Register our trainers with verl, one for each of its trainer modes."""
    # In the order of `TRAINER_MODES`.
    stocks = (PPOTrainerSync, PPOTrainerColocateAsync, PPOTrainerSeparateAsync)
    for (name, mode), stock in zip(TRAINER_MODES.items(), stocks, strict=True):
        trainer = type(f"MicroCoder{stock.__name__}", (MicroCoder, stock), {"stock_mode": mode})
        register_trainer(name)(trainer)


OPTIMIZER_METRICS = {
    "actor/loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "learning_rate",
    "actor/entropy": "entropy",
    "actor/kl_loss": "kl",
    "actor/pg_clipfrac": "clip_share",
}
"""verl's names of an update's figures -> ours."""
FILTERED = "training/filter_groups/evicted_samples"
"""verl's name of the number of groups that it filtered out."""
PHASES = {
    "generate": ("gen",),
    "update": (
        "reward",
        "old_log_prob",
        "ref",
        "values",
        "adv",
        "update_critic",
        "update_actor",
        "update_weights",
    ),
    "evaluate": ("testing",),
    "total": ("step", "testing"),
}
"""Our name of a phase -> verl's names of its parts, whose times are added up."""
