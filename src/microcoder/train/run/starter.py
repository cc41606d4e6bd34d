"""`microcoder init`: writes a recipe for the user's model and problems, the defaults as far as the GPU allows."""

import json
import re
import tomllib
from collections.abc import Mapping
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
    find_response_room,
    read_statements,
    read_template,
)
from microcoder.train.run.tasks import shrink_batch

GPUS: Mapping[str, float | None] = MappingProxyType(
    {"h200": 141, "h100": 80, "a100-80": 80, "a100-40": 40, "l40s": 48, "a6000": 48}
    | {"rtx-5090": 32, "rtx-4090": 24, "l4": 24, "cpu": None}
)
"""GPU -> memory in GB, as sold; None for `cpu`: a trial with a tiny model."""
_HYBRID = re.compile(r"Qwen3-\d+(\.\d+)?B(-A\d+B)?", re.IGNORECASE)
"""Matches Qwen3 of 2025-04, which thinks unless switched off; later ones are either -Instruct or -Thinking."""
_USUAL = "microcoder-grpo"
_RECIPES = {path.stem: path for path in sorted((SHIPPED / "recipes" / "algorithms").glob("*.toml"))}
ALGORITHMS = (_USUAL, *(name for name in _RECIPES if name != _USUAL))
"""The package's recipes that change only the algorithm; the first is the default."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_EVALUATION_TOKENS = 8192
_VERL_GPUS = 8
"""GPUs of the one node that a recipe for verl asks for."""
_PASSES = (2, 1)
"""Rollouts per pass to try, in this order; two of full length keep a GPU busy, so memory is left to the sampler."""
_SHARES = tuple(share / 100 for share in range(90, 25, -5))
"""Shares of a GPU for vLLM to try, largest first: sampling is 3/4 of a run, and its speed follows the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The arguments of `microcoder init`."""

    model: str
    """A checkpoint folder, or a Hugging Face Hub id."""
    problems: str
    """Training problems: a problem file, a folder of `microcoder data build`, or a Hub dataset (owner/name)."""
    heldout: str
    """Held-out problems: a problem file, a LiveCodeBench file, or a split of the dataset."""
    gpu: str
    """h100, h200, a100-80, a100-40, l40s, a6000, rtx-5090, rtx-4090, l4 or cpu."""
    algorithm: str = _USUAL
    """microcoder-grpo, grpo, dr-grpo, dapo, mask-all, or another name in recipes/algorithms."""
    engine: str = "trl"
    """`trl`, or `verl` for a Ray cluster; then the verl command for the recipe is printed, too."""
    format: str | None = None
    """Row format of a Hub dataset: trl, verl, taco, deepcoder, ...; by default inferred from its name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of the keys that `init` may change so that a recipe fits the GPU."""

    is_whole: bool
    """All weights are trained, in float32; otherwise LoRA adapters on bfloat16 weights."""
    max_response_tokens: int
    takes_turns: bool
    """vLLM sleeps while weights are updated."""
    optimizer: str
    micro_batch_rollouts: int
    vllm_share: float = VllmConfig().gpu_memory_utilization


@dataclass(frozen=True, slots=True)
class Found:
    """What the files of a model and its problems say about a recipe; None: not known, as of a data set on the Hub."""

    room: int | None = None
    """Tokens that the model's context leaves for a response to the longest prompt."""
    num_train: int | None = None
    """Number of training problems."""


def write_recipe(wishes: Wishes, *, command: str = "microcoder init") -> str:
    """Return the text of a recipe (TOML): the setting nearest to the defaults that fits on the GPU.

    Preferred, in this order: all weights at 4K tokens or more to adapters, a longer limit, vLLM awake, 32-bit moments,
    passes of two rollouts, a large cache. Raises ConfigError if none fits. `command` is for the first line.
    """
    for name, value, known in (
        ("algorithm", wishes.algorithm, ALGORITHMS),
        ("engine", wishes.engine, ("trl", "verl")),
        ("gpu", wishes.gpu, tuple(GPUS)),
    ):
        if value not in known:
            raise ConfigError(f"{name} {value!r} is unknown; use one of {', '.join(known)}")
    memory_gb, problems = GPUS[wishes.gpu], _problems(wishes)
    if wishes.engine == "verl" and memory_gb is None:
        raise ConfigError(
            "engine verl trains on GPUs; pass --gpu h100, say, or leave out --engine verl"
        )
    usual, is_trl = OptimizerConfig().name, wishes.engine == "trl"
    plan = _load(_render(wishes, problems, Setting(True, 1024, False, usual, 8), Found(), command))
    if missing := find_missing(plan):
        raise ConfigError("; ".join(missing))
    room = find_response_room(plan)
    if room is not None and room < 1:
        raise ConfigError(
            f"the longest prompt fills the context of {wishes.model}; leave out such long problems, or use a model "
            "with a longer context"
        )

    train, _ = read_statements(plan)
    found = Found(room, len(train) or None)

    def count(setting: Setting) -> tuple[str, MemoryTable | None]:
        text = _render(wishes, problems, setting, found, command)
        config = _load(text)
        num_shards = 1 if is_trl else count_verl_devices(config)
        gib = None if memory_gb is None else memory_gb * 1e9 / 2**30
        return text, count_memory(config, device_memory_gib=gib, num_shards=num_shards)

    if memory_gb is None:
        text, _ = count(Setting(True, min(512, room or 512), False, usual, 8))
        return _checked(text)
    limits = [tokens for tokens in (8192, 4096, 2048, 1024) if room is None or tokens <= room]
    if not limits:
        raise ConfigError(
            f"the context of {wishes.model} leaves {room} tokens for a response to the longest prompt, and a GPU's "
            "recipe wants 1024 or more; use a model with a longer context, or try it with --gpu cpu"
        )
    long = [tokens for tokens in limits if tokens >= 4096]
    turns = (
        [(False, usual), (True, usual), (True, "adamw_8bit")]
        if is_trl
        else [(False, usual), (False, "adamw_8bit")]
    )
    shares = _SHARES if is_trl else _SHARES[-1:]
    for is_whole, tokens, (takes_turns, optimizer), rows, share in (
        *product([True], long, turns, _PASSES, shares),
        *product([False], limits, turns[: 1 + is_trl], _PASSES, shares),
    ):
        text, table = count(Setting(is_whole, tokens, takes_turns, optimizer, rows, share))
        if table is None:
            raise ConfigError(
                f"the size of {wishes.model} is unknown: no folder here, and not in the Hub's cache; "
                f"type: hf download {wishes.model}, and try again"
            )
        if table.fits:
            return _checked(text)
    raise ConfigError(
        f"{wishes.model} does not fit on one {wishes.gpu} even with adapters and responses of 1024 tokens; choose a "
        "larger GPU, several (--engine verl, docs/cluster.md), or another model"
    )


def _load(text: str) -> TrainConfig:
    return load_config(TrainConfig, layers=[tomllib.loads(text)])


def _checked(text: str) -> str:
    """Return a recipe's text; ConfigError if its run could not start."""
    if faults := find_faults(_load(text)):
        raise ConfigError(f"its run could not start: {'; '.join(faults)}")
    return text


def _problems(wishes: Wishes) -> dict[str, str]:
    place = Path(wishes.problems).expanduser()
    is_id = (
        not place.exists()
        and not place.suffix.startswith(".json")
        and _HUB_ID.fullmatch(wishes.problems)
    )
    for path in (wishes.problems, wishes.heldout):
        if wishes.format is None and (said := explain_rows(Path(path).expanduser())):
            raise ConfigError(said)
    if wishes.format is None and not is_id:
        return {"kind": "files", "train": wishes.problems, "heldout": wishes.heldout}
    row_format = wishes.format or find_format(wishes.problems)
    check_format(row_format, is_trained_on=True)
    is_file = (
        Path(wishes.heldout).expanduser().exists() or "." in wishes.heldout or "/" in wishes.heldout
    )
    heldout = "heldout" if is_file else "heldout_split"
    return {"kind": "hub", "id": wishes.problems, "format": row_format, heldout: wishes.heldout}


def _read_template(model: str) -> tuple[bool, bool]:
    """Return whether a model thinks unless switched off, and whether its tokenizer lacks a chat template."""
    template = read_template(model)
    if template is not None:
        return "enable_thinking" in template, not template
    return _HYBRID.fullmatch(model.rpartition("/")[2]) is not None, False


def _render_batch(wishes: Wishes, setting: Setting, found: Found) -> list[str]:
    """Return the keys of [batch]: the published sizes, or those of a trial; smaller ones where problems are few."""
    published = BatchConfig()
    usual = published
    if GPUS[wishes.gpu] is None:
        usual = BatchConfig(train_batch_size=8, ppo_mini_batch_size=4)
    usual = usual.model_copy(update={"micro_batch_rollouts": setting.micro_batch_rollouts})
    batch = usual
    why = ""
    if found.num_train is not None and found.num_train < usual.train_batch_size:
        smaller = shrink_batch(
            usual,
            num_problems=found.num_train,
            num_samples=RolloutConfig().num_samples,
            num_processes=_VERL_GPUS if wishes.engine == "verl" else 1,
        )
        # Where none fits, the check of the recipe says so.
        batch = smaller or usual
        why = f", but there are {found.num_train} training problems"
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
        f"micro_batch_rollouts = {batch.micro_batch_rollouts} # a pass: bounds memory, changes no result"
    )
    return lines


def _render(
    wishes: Wishes, problems: Mapping[str, str], setting: Setting, found: Found, command: str
) -> str:
    """Return the recipe's text: the keys that depart from the defaults (docs/paper.md says whose those are)."""
    is_on_gpu, tokens, published = (
        wishes.gpu != "cpu",
        setting.max_response_tokens,
        RolloutConfig().max_response_tokens,
    )
    is_hybrid, is_bare = _read_template(wishes.model)
    is_longer = is_on_gpu and tokens < _EVALUATION_TOKENS <= (found.room or _EVALUATION_TOKENS)
    rate, is_colocated = OptimizerConfig().learning_rate, is_on_gpu and wishes.engine == "trl"
    table = {key: json.dumps(value, ensure_ascii=False) for key, value in problems.items()}
    why = "longer ones do not fit" if is_on_gpu else "longer ones take hours on a CPU"
    own = {
        "model": [
            'kind = "hugging_face"',
            f"path = {json.dumps(wishes.model, ensure_ascii=False)}",
            *(['compute_dtype = "float32" # on the CPU: for a trial run'] if not is_on_gpu else []),
            *(
                []
                if setting.is_whole
                else ['dtype = "bfloat16" # all weights in float32 do not fit: adapters do']
            ),
            *(
                ["# The tokenizer has no chat template: problems are asked in plain text."]
                if is_bare
                else []
            ),
        ],
        "model.lora": [] if setting.is_whole else ["rank = 32", "alpha = 32"],
        "prompt": ["chat_template_options = { enable_thinking = false } # our reading of the paper"]
        if is_hybrid
        else [],
        "problems": [f"{key} = {value}" for key, value in table.items()],
        "rollout": [
            *(
                [f"max_response_tokens = {tokens} # {published} published; {why}"]
                if tokens != published
                else []
            ),
            *(
                ['backend = "vllm" # needs the extra vllm, see docs/install.md']
                if is_on_gpu
                else []
            ),
        ],
        "rollout.vllm": [
            f"gpu_memory_utilization = {setting.vllm_share:g} # what is left beside the rest",
            *(
                ["enable_sleep_mode = true # gives its memory back during updates"]
                if setting.takes_turns
                else []
            ),
        ]
        if is_colocated
        else [],
        "batch": _render_batch(wishes, setting, found),
        "optimizer": [
            *(
                [f'name = "{setting.optimizer}" # needs bitsandbytes']
                if "8bit" in setting.optimizer
                else []
            ),
            *(
                []
                if setting.is_whole
                else [f"learning_rate = {10 * rate:.0e} # {rate:.0e} published for all weights"]
            ),
        ],
        "evaluation": [f"max_response_tokens = {_EVALUATION_TOKENS} # longer than in training"]
        if is_longer
        else [],
        "verl": [f'"trainer.n_gpus_per_node" = {_VERL_GPUS}', '"trainer.nnodes" = 1']
        if wishes.engine == "verl"
        else [],
    }
    lines = [
        f"# {wishes.algorithm} on {wishes.model}, written by `{command}`.",
        "# What is not here is published (arXiv 2603.07777, section 5), or a default of docs/reference.md.",
        *(['engine = "verl" # docs/cluster.md'] if wishes.engine == "verl" else []),
    ]
    for name, keys in own.items():
        lines += ["", f"[{name}]", *keys] if keys else []
    if wishes.algorithm != _USUAL:
        lines += ["", *_RECIPES[wishes.algorithm].read_text(encoding="utf-8").splitlines()]
    return "\n".join(lines) + "\n"
