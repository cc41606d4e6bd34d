"""`microcoder init`: writes a recipe for the user's model and problems.

It has the defaults, as far as the GPU allows.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType

from microcoder.data.release.problems import check_format, explain_rows, find_format
from microcoder.judge.core.config import SHIPPED, load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.sampling import RolloutConfig, VllmConfig
from microcoder.train.recipe.recipe import (
    BatchConfig,
    OptimizerConfig,
    TrainConfig,
    count_verl_devices,
)
from microcoder.train.run.estimate import MemoryTable, count_memory
from microcoder.train.run.manifest import find_missing
from microcoder.train.run.preflight import (
    find_faults,
    find_longest_response,
    read_statements,
    read_template,
)
from microcoder.train.run.tasks import shrink_batch

GPUS: Mapping[str, float | None] = MappingProxyType(
    {
        "h200": 141,
        "h100": 80,
        "a100-80": 80,
        "a100-40": 40,
        "l40s": 48,
        "a6000": 48,
        "rtx-5090": 32,
        "rtx-4090": 24,
        "l4": 24,
        "cpu": None,
    }
)
"""GPU -> memory in GB, as sold; None for `cpu`: a trial with a tiny model."""
_HYBRID = re.compile(r"Qwen3-\d+(\.\d+)?B(-A\d+B)?", re.IGNORECASE)
"""Matches Qwen3 of 2025-04, which thinks unless switched off.

Later ones are either -Instruct or -Thinking.
"""
_USUAL = "microcoder-grpo"
_RECIPES = {path.stem: path for path in sorted((SHIPPED / "recipes" / "algorithms").glob("*.toml"))}
ALGORITHMS = (_USUAL, *(name for name in _RECIPES if name != _USUAL))
"""The package's recipes that change only the algorithm; the first is the default."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_EVALUATION_TOKENS = 8192
"""Length limit of the evaluations on a GPU, where that of training is shorter."""
_VERL_GPUS = 8
"""GPUs of the one node that a recipe for verl asks for."""
_PASSES = (2, 1)
"""Rollouts per pass to try, in this order.

Two of full length keep a GPU busy, so the rest of the memory is left to the sampler.
"""
_SHARES = tuple(share / 100 for share in range(90, 25, -5))
"""Shares of a GPU for vLLM to try, largest first.

Sampling is 3/4 of a run, and its speed follows the cache.
"""
_LIMITS = (8192, 4096, 2048, 1024)
"""Length limits of responses to try on a GPU, in tokens."""
_LONG_TOKENS = 4096
"""Length limit from which on all weights are trained rather than adapters."""
_TRIAL_TOKENS = 512
"""Length limit of a trial on a CPU."""
_USUAL_OPTIMIZER = OptimizerConfig().name
_SMALL_OPTIMIZER = "adamw_8bit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The arguments of `microcoder init`."""

    model: str
    """A checkpoint folder, a GGUF file, or a Hugging Face Hub id."""
    problems: str
    """Training problems: file, folder of `microcoder data build`, or Hub dataset (owner/name)."""
    heldout: str
    """Held-out problems: a problem file, a LiveCodeBench file, or a split of the dataset."""
    gpu: str
    """h100, h200, a100-80, a100-40, l40s, a6000, rtx-5090, rtx-4090, l4 or cpu."""
    algorithm: str = _USUAL
    """microcoder-grpo, grpo, dr-grpo, dapo, mask-all, or another name in recipes/algorithms."""
    engine: str = "trl"
    """`trl`, or `verl` for a Ray cluster; then the verl command for the recipe is printed, too."""
    format: str | None = None
    """Row format of a Hub dataset: trl, verl, taco, deepcoder, ...; by default by its name."""

    @property
    def is_on_gpu(self) -> bool:
        """Whether the recipe is for a GPU."""
        return GPUS[self.gpu] is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One combination of the keys that `init` may change so that a recipe fits the GPU."""

    is_whole: bool
    """All weights are trained, in float32; otherwise LoRA adapters on bfloat16 weights."""
    max_response_tokens: int
    takes_turns: bool = False
    """vLLM sleeps while weights are updated."""
    optimizer: str = _USUAL_OPTIMIZER
    micro_batch_rollouts: int
    vllm_share: float = VllmConfig().gpu_memory_utilization


@dataclass(frozen=True, slots=True)
class KnownSizes:
    """Sizes that the files of a model and its problems tell.

    None: not known, as of a data set on the Hub.
    """

    longest_response_tokens: int | None = None
    """Tokens that the model's context leaves for a response to the longest prompt."""
    num_train: int | None = None
    """Number of training problems."""


def write_recipe(wishes: Wishes, *, command: str = "microcoder init") -> str:
    """Return the text of a recipe (TOML): the setting nearest to the defaults that fits on the GPU.

    Preferred, in this order: all weights at 4K tokens or more to adapters, a longer limit, vLLM
    awake, 32-bit moments, passes of two rollouts, a large cache. Raises ConfigError if none fits.
    `command` is for the first line.
    """
    _check_choices(wishes)
    problems = _find_problems(wishes)
    if wishes.engine == "verl" and not wishes.is_on_gpu:
        raise ConfigError(
            "engine verl trains on GPUs; pass --gpu h100, say, or leave out --engine verl"
        )
    sizes = _read_sizes(wishes, problems, command)
    writer = _Writer(wishes, problems, sizes, command)
    most_tokens = sizes.longest_response_tokens
    if not wishes.is_on_gpu:
        tokens = min(_TRIAL_TOKENS, most_tokens or _TRIAL_TOKENS)
        trial = Setting(is_whole=True, max_response_tokens=tokens, micro_batch_rollouts=8)
        return _checked(writer.write(trial))

    limits = [tokens for tokens in _LIMITS if most_tokens is None or tokens <= most_tokens]
    if not limits:
        raise ConfigError(
            f"the context of {wishes.model} leaves {most_tokens} tokens for a response to the "
            "longest prompt, and a GPU's recipe wants 1024 or more; use a model with a longer "
            "context, or try it with --gpu cpu"
        )
    for setting in _list_settings(limits, is_trl=wishes.engine == "trl"):
        text = writer.write(setting)
        table = _count_memory(text, wishes)
        if table is None:
            raise ConfigError(
                f"the size of {wishes.model} is unknown: no folder here, and not in the Hub's "
                f"cache; type: hf download {wishes.model}, and try again"
            )
        if table.fits:
            return _checked(text)
    raise ConfigError(
        f"{wishes.model} does not fit on one {wishes.gpu} even with adapters and responses of 1024 "
        "tokens; choose a larger GPU, several (--engine verl, docs/cluster.md), or another model"
    )


def _check_choices(wishes: Wishes) -> None:
    """Raise ConfigError for an unknown algorithm, engine or GPU."""
    for name, value, known in (
        ("algorithm", wishes.algorithm, ALGORITHMS),
        ("engine", wishes.engine, ("trl", "verl")),
        ("gpu", wishes.gpu, tuple(GPUS)),
    ):
        if value not in known:
            raise ConfigError(f"{name} {value!r} is unknown; use one of {', '.join(known)}")


def _read_sizes(wishes: Wishes, problems: Mapping[str, str], command: str) -> KnownSizes:
    """Return the sizes that the model's and the problems' files tell.

    ConfigError if a file is missing, or no response would fit into the model's context.
    """
    # Any recipe will do here: only its model and problems are looked at.
    any_setting = Setting(is_whole=True, max_response_tokens=1024, micro_batch_rollouts=8)
    # Loaded, so that its keys are checked as those of any recipe.
    plan = _load(_Writer(wishes, problems, KnownSizes(), command).write(any_setting))
    missing = find_missing(plan)
    if missing:
        raise ConfigError("; ".join(missing))
    response_tokens = find_longest_response(plan)
    if response_tokens is not None and response_tokens < 1:
        raise ConfigError(
            f"the longest prompt fills the context of {wishes.model}; leave out such long "
            "problems, or use a model with a longer context"
        )
    train, _ = read_statements(plan)
    return KnownSizes(response_tokens, len(train) or None)


def _list_settings(limits: list[int], *, is_trl: bool) -> Iterator[Setting]:
    """Yield the settings to try on a GPU, the best first."""
    long_limits = [tokens for tokens in limits if tokens >= _LONG_TOKENS]
    turns = [(False, _USUAL_OPTIMIZER)]
    # verl writes no share of vLLM's, so that one stands for all.
    shares = _SHARES[-1:]
    if is_trl:
        turns.append((True, _USUAL_OPTIMIZER))
        shares = _SHARES
    # The moments of adapters are small: 8 bits would save nothing.
    turns_of_adapters = list(turns)
    turns.append((is_trl, _SMALL_OPTIMIZER))
    combinations = (
        *product([True], long_limits, turns, _PASSES, shares),
        *product([False], limits, turns_of_adapters, _PASSES, shares),
    )
    for is_whole, tokens, (takes_turns, optimizer), rows, share in combinations:
        yield Setting(
            is_whole=is_whole,
            max_response_tokens=tokens,
            takes_turns=takes_turns,
            optimizer=optimizer,
            micro_batch_rollouts=rows,
            vllm_share=share,
        )


def _count_memory(text: str, wishes: Wishes) -> MemoryTable | None:
    """Return the memory that a recipe needs on the GPU; None for a model of unknown size."""
    config = _load(text)
    num_shards = count_verl_devices(config) if wishes.engine == "verl" else 1
    memory_gb = GPUS[wishes.gpu]
    gib = None if memory_gb is None else memory_gb * 1e9 / 2**30
    return count_memory(config, device_memory_gib=gib, num_shards=num_shards)


def _load(text: str) -> TrainConfig:
    return load_config(TrainConfig, layers=[tomllib.loads(text)])


def _checked(text: str) -> str:
    """Return a recipe's text; ConfigError if its run could not start."""
    faults = find_faults(_load(text))
    if faults:
        raise ConfigError(f"its run could not start: {'; '.join(faults)}")
    return text


def _find_problems(wishes: Wishes) -> dict[str, str]:
    """Return the keys of [problems] for the files or names that the two arguments give."""
    if wishes.format is None:
        for path in (wishes.problems, wishes.heldout):
            fault = explain_rows(Path(path).expanduser())
            if fault:
                raise ConfigError(fault)
        if not _is_hub_id(wishes.problems):
            return {"kind": "files", "train": wishes.problems, "heldout": wishes.heldout}
    row_format = wishes.format or find_format(wishes.problems)
    check_format(row_format, is_trained_on=True)
    heldout = "heldout" if _is_file(wishes.heldout) else "heldout_split"
    return {"kind": "hub", "id": wishes.problems, "format": row_format, heldout: wishes.heldout}


def _is_hub_id(problems: str) -> bool:
    """Return whether training problems are a data set of the Hub, not a file or a folder."""
    path = Path(problems).expanduser()
    if path.exists() or path.suffix.startswith(".json"):
        return False
    return _HUB_ID.fullmatch(problems) is not None


def _is_file(heldout: str) -> bool:
    """Return whether held-out problems are a file, which may be missing, and not a split."""
    if Path(heldout).expanduser().exists():
        return True
    return "." in heldout or "/" in heldout


def _read_template(model: str) -> tuple[bool, bool]:
    """Return whether a model thinks unless switched off, and whether it has no chat template."""
    template = read_template(model)
    if template is not None:
        return "enable_thinking" in template, not template
    return _HYBRID.fullmatch(model.rpartition("/")[2]) is not None, False


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes recipes for one model and its problems, which differ only in their setting."""

    wishes: Wishes
    problems: Mapping[str, str]
    """The keys of [problems]."""
    sizes: KnownSizes
    command: str
    """The command that the first line names."""

    def write(self, setting: Setting) -> str:
        """Return the text of a recipe: the keys that depart from the defaults.

        docs/paper.md says whose the defaults are.
        """
        wishes = self.wishes
        lines = [
            f"# {wishes.algorithm} on {wishes.model}, written by `{self.command}`.",
            "# What is not here is published (arXiv 2603.07777, section 5), or a default of "
            "docs/reference.md.",
        ]
        if wishes.engine == "verl":
            lines.append('engine = "verl" # docs/cluster.md')
        tables = {
            "model": self._write_model(setting),
            "model.lora": self._write_lora(setting),
            "prompt": self._write_prompt(),
            "problems": self._write_problems(),
            "rollout": self._write_rollout(setting),
            "rollout.vllm": self._write_vllm(setting),
            "batch": self._write_batch(setting),
            "optimizer": self._write_optimizer(setting),
            "evaluation": self._write_evaluation(setting),
            "verl": self._write_verl(),
        }
        for name, keys in tables.items():
            if keys:
                lines += ["", f"[{name}]", *keys]
        if wishes.algorithm != _USUAL:
            lines += ["", *_RECIPES[wishes.algorithm].read_text(encoding="utf-8").splitlines()]
        return "\n".join(lines) + "\n"

    def _write_model(self, setting: Setting) -> list[str]:
        lines = ['kind = "hugging_face"', f"path = {_quote(self.wishes.model)}"]
        if not self.wishes.is_on_gpu:
            lines.append('compute_dtype = "float32" # on the CPU: for a trial run')
        if not setting.is_whole:
            lines.append('dtype = "bfloat16" # all weights in float32 do not fit: adapters do')
        _, is_bare = _read_template(self.wishes.model)
        if is_bare:
            lines.append("# The tokenizer has no chat template: problems are asked in plain text.")
        return lines

    def _write_lora(self, setting: Setting) -> list[str]:
        return [] if setting.is_whole else ["rank = 32", "alpha = 32"]

    def _write_prompt(self) -> list[str]:
        is_hybrid, _ = _read_template(self.wishes.model)
        if not is_hybrid:
            return []
        return ["chat_template_options = { enable_thinking = false } # our reading of the paper"]

    def _write_problems(self) -> list[str]:
        return [f"{key} = {_quote(value)}" for key, value in self.problems.items()]

    def _write_rollout(self, setting: Setting) -> list[str]:
        tokens = setting.max_response_tokens
        published = RolloutConfig().max_response_tokens
        lines = []
        if tokens != published:
            why = "longer ones take hours on a CPU"
            if self.wishes.is_on_gpu:
                why = "longer ones do not fit"
            lines.append(f"max_response_tokens = {tokens} # {published} published; {why}")
        if self.wishes.is_on_gpu:
            lines.append('backend = "vllm" # needs the extra vllm, see docs/install.md')
        return lines

    def _write_vllm(self, setting: Setting) -> list[str]:
        if self.wishes.engine != "trl" or not self.wishes.is_on_gpu:
            return []
        lines = [f"gpu_memory_utilization = {setting.vllm_share:g} # what is left beside the rest"]
        if setting.takes_turns:
            lines.append("enable_sleep_mode = true # gives its memory back during updates")
        return lines

    def _write_batch(self, setting: Setting) -> list[str]:
        """Return the published batch sizes or a trial's; smaller ones where problems are few."""
        published = BatchConfig()
        usual = published
        if not self.wishes.is_on_gpu:
            usual = BatchConfig(train_batch_size=8, ppo_mini_batch_size=4)
        # Chosen by memory, and not by the number of problems.
        usual = usual.model_copy(update={"micro_batch_rollouts": setting.micro_batch_rollouts})
        batch = usual
        why = ""
        num_train = self.sizes.num_train
        if num_train is not None and num_train < usual.train_batch_size:
            # Where none fits, the check of the recipe says so.
            batch = self._shrink(usual, num_train) or usual
            why = f", but there are {num_train} training problems"
        step = batch.train_batch_size
        update = batch.ppo_mini_batch_size
        lines = []
        if step != published.train_batch_size:
            lines.append(f"train_batch_size = {step} # {published.train_batch_size} published{why}")
        if update != published.ppo_mini_batch_size:
            lines.append(
                f"ppo_mini_batch_size = {update} # {published.ppo_mini_batch_size} published; "
                f"{step // update} updates a step"
            )
        lines.append(
            f"micro_batch_rollouts = {batch.micro_batch_rollouts} # a pass: bounds memory, "
            "changes no result"
        )
        return lines

    def _shrink(self, batch: BatchConfig, num_problems: int) -> BatchConfig | None:
        """Return batch sizes for so few problems; None if there are too few for any."""
        num_processes = _VERL_GPUS if self.wishes.engine == "verl" else 1
        return shrink_batch(
            batch,
            num_problems=num_problems,
            num_samples=RolloutConfig().num_samples,
            num_processes=num_processes,
        )

    def _write_optimizer(self, setting: Setting) -> list[str]:
        lines = []
        if "8bit" in setting.optimizer:
            lines.append(f'name = "{setting.optimizer}" # needs bitsandbytes')
        if not setting.is_whole:
            rate = OptimizerConfig().learning_rate
            lines.append(f"learning_rate = {10 * rate:.0e} # {rate:.0e} published for all weights")
        return lines

    def _write_evaluation(self, setting: Setting) -> list[str]:
        if not self.wishes.is_on_gpu or setting.max_response_tokens >= _EVALUATION_TOKENS:
            return []
        most_tokens = self.sizes.longest_response_tokens
        if most_tokens and most_tokens < _EVALUATION_TOKENS:
            return []
        return [f"max_response_tokens = {_EVALUATION_TOKENS} # longer than in training"]

    def _write_verl(self) -> list[str]:
        if self.wishes.engine != "verl":
            return []
        return [f'"trainer.n_gpus_per_node" = {_VERL_GPUS}', '"trainer.nnodes" = 1']


def _quote(value: str) -> str:
    """Return a string as TOML has it."""
    return json.dumps(value, ensure_ascii=False)
