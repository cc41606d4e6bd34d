"""`microcoder init`: a commented recipe for the user's model and problems, published but for what does not fit."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from microcoder.data.benchmarks.published import check_format, find_format
from microcoder.judge.core.config import SHIPPED
from microcoder.judge.core.errors import ConfigError, explain_fault
from microcoder.train.algorithm.config import ConditionalMasking
from microcoder.train.algorithm.sampling import ConstantTemperature, RolloutConfig
from microcoder.train.recipe.batching import count_verl_devices
from microcoder.train.recipe.recipe import BatchConfig, CheckpointConfig, EvaluationConfig, OptimizerConfig, TrainConfig
from microcoder.train.run.checkpoints import check_model_folder, model_folder
from microcoder.train.run.estimate import count_memory
from microcoder.train.run.manifest import find_missing
from microcoder.train.run.shapes import find_file, read_json

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
"""Memory in GB, as sold. No GPU: to try a recipe out with a tiny model."""
_HYBRID = re.compile(r"Qwen3-\d+(\.\d+)?B(-A\d+B)?", re.IGNORECASE)
"""Qwen3 of 2025-04 thinks unless told not to; the models of 2025-07 are either -Instruct or -Thinking."""
_USUAL = "microcoder-grpo"
_RECIPES = {path.stem: path for path in sorted((SHIPPED / "recipes" / "algorithms").glob("*.toml"))}
ALGORITHMS = (_USUAL, *(name for name in _RECIPES if name != _USUAL))
"""The recipes that come with the package and change the algorithm alone; the first is the default."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_EVALUATION_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Wishes:
    """The user's choices for a recipe."""

    model: str
    """A folder, or an id of the Hub."""
    problems: str
    """A problem file, a folder of a finished corpus, or a data set of the Hub."""
    heldout: str
    """A problem file, LiveCodeBench, or a split of the data set."""
    gpu: str
    algorithm: str = _USUAL
    engine: str = "trl"
    """`trl`, or `verl`: a Ray cluster, or this machine's GPUs together."""
    format: str | None = None
    """Of a data set's rows; None: known by its name."""
    command: str = "microcoder init"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a recipe may change for it to fit."""

    is_whole: bool
    """All weights are trained, in float32; otherwise LoRA adapters on bfloat16 weights."""
    max_response_tokens: int
    micro_batch_rollouts: int


def write_recipe(wishes: Wishes) -> str:
    """Return the text of a recipe (TOML): the setting nearest to the published one that fits on the GPU.

    All weights at 4K tokens or more come before adapters, a longer limit before larger passes. On a CPU nothing is
    counted.
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
        raise ConfigError("engine verl trains on GPUs; pass --gpu h100, say, or leave out --engine verl")
    if (folder := model_folder(wishes.model)) is not None:
        check_model_folder(folder)
    context = read_json(find_file(wishes.model, "config.json")).get("max_position_embeddings")
    if memory_gb is None:
        text = _render(wishes, problems, Setting(True, min(512, (context or 1024) // 2), 8), context)
        _resolve(text)
        return text
    limits = [tokens for tokens in (8192, 4096, 2048, 1024) if tokens + 1024 <= (context or tokens + 1024)]
    whole = product([True], [tokens for tokens in limits if tokens >= 4096], (8, 4, 2, 1))
    for setting in (*whole, *product([False], limits, (8, 4, 2, 1))):
        text = _render(wishes, problems, Setting(*setting), context)
        config = _resolve(text)
        num_shards = count_verl_devices(config) if config.engine == "verl" else 1
        table = count_memory(config, device_memory_gib=memory_gb * 1e9 / 2**30, num_shards=num_shards)
        if table is None:
            raise ConfigError(
                f"the size of {wishes.model} is unknown: no folder here, not in the Hub's cache, no size such as 1.7B "
                f"in its name; type: hf download {wishes.model}, and try again"
            )
        if table.fits:
            return text
    raise ConfigError(
        f"{wishes.model} does not fit on one {wishes.gpu} even with adapters; choose a larger GPU, or several: "
        "--engine verl (docs/cluster.md)"
    )


def _resolve(text: str) -> TrainConfig:
    try:
        config = TrainConfig.model_validate(tomllib.loads(text))
    except ValidationError as error:
        fault = error.errors()[0]
        raise ConfigError(explain_fault(fault, ".".join(map(str, fault["loc"])))) from None
    if missing := find_missing(config):
        raise ConfigError("; ".join(missing))
    return config


def detect_gpu() -> str:
    """Return the name in `GPUS` of this machine's first GPU, by NVIDIA's driver; `cpu` if there is none."""
    for file in _find_gpus():
        lines = file.read_text(encoding="utf-8", errors="replace").lower().splitlines()
        words = next((line for line in lines if line.startswith("model")), "").replace("rtx ", "rtx-")
        for name in GPUS:
            family, _, size = name.partition("-") if name.startswith("a100") else (name, "", "")
            if family in words and size in words:
                return name
    return "cpu"


def _find_gpus() -> list[Path]:
    return sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))


def _problems(wishes: Wishes) -> dict[str, str]:
    place = Path(wishes.problems).expanduser()
    is_id = not place.exists() and not place.suffix.startswith(".json") and _HUB_ID.fullmatch(wishes.problems)
    if wishes.format is None and not is_id:
        return {"kind": "files", "train": wishes.problems, "heldout": wishes.heldout}
    row_format = wishes.format or find_format(wishes.problems)
    check_format(row_format, is_trained_on=True)
    is_file = Path(wishes.heldout).expanduser().exists() or "." in wishes.heldout or "/" in wishes.heldout
    heldout = "heldout" if is_file else "heldout_split"
    return {"kind": "hub", "id": wishes.problems, "format": row_format, heldout: wishes.heldout}


def _read_template(model: str) -> tuple[bool, bool]:
    """Return whether a model thinks unless told not to, and whether its tokenizer lacks a chat template."""
    if (file := find_file(model, "chat_template.jinja")) is not None:
        return "enable_thinking" in file.read_text(encoding="utf-8"), False
    if (settings := find_file(model, "tokenizer_config.json")) is not None:
        template = read_json(settings).get("chat_template")
        return "enable_thinking" in json.dumps(template), template is None
    return _HYBRID.fullmatch(model.rpartition("/")[2]) is not None, False


def _render(wishes: Wishes, problems: Mapping[str, str], setting: Setting, context: int | None) -> str:
    is_on_gpu, rollout, batch, evaluation = wishes.gpu != "cpu", RolloutConfig(), BatchConfig(), EvaluationConfig()
    tokens, rate, masking = setting.max_response_tokens, OptimizerConfig().learning_rate, ConditionalMasking()
    is_hybrid, is_bare = _read_template(wishes.model)
    is_longer = is_on_gpu and tokens < _EVALUATION_TOKENS <= (context or _EVALUATION_TOKENS)
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in {"path": wishes.model, **problems}.items()}
    lines = [
        f"# {wishes.algorithm} on {wishes.model}, written by `{wishes.command}`.",
        "# Values marked as published are those of the paper (arXiv 2603.07777, section 5.1). Change what you like:",
        "# docs/reference.md lists every key. See what the run takes, then start it; the same command resumes it.",
        "#     microcoder train -c THIS_FILE --dry-run",
        "#     microcoder train -c THIS_FILE",
        *(['engine = "verl" # docs/cluster.md'] if wishes.engine == "verl" else []),
        f"num_steps = {TrainConfig.model_fields['num_steps'].default} # sampling rounds of the published run",
        "",
        "[model]",
        'kind = "hugging_face"',
        f"path = {quoted.pop('path')}",
    ]
    if not is_on_gpu:
        lines.append('compute_dtype = "float32" # on the CPU: for a trial run')
    elif setting.is_whole:
        lines.append('dtype = "float32" # an update at rate 1e-6 is lost in bfloat16 weights')
    else:
        lines += ['dtype = "bfloat16" # all weights in float32 do not fit: adapters are trained, in float32', ""]
        lines += ["[model.lora]", "rank = 32", "alpha = 64"]
    if is_bare:
        lines.append("# The tokenizer has no chat template: problems are asked in plain text, as base models are.")
    if is_hybrid:
        lines += ["", "[prompt]", "# This model thinks before it answers unless told not to, as in the paper."]
        lines.append("chat_template_options = { enable_thinking = false }")
    lines += ["", "[problems]", *(f"{key} = {value}" for key, value in quoted.items())]
    if problems["kind"] == "hub":
        lines.append('# revision = "main" # name a commit to train on the same problems another day')
    why = "longer ones do not fit" if is_on_gpu else "longer ones take hours on a CPU"
    shorter = f"{rollout.max_response_tokens} published; {why}"
    asked = batch.train_batch_size if is_on_gpu else 8
    lines += [
        "",
        "[rollout]",
        f"num_samples = {rollout.num_samples} # responses to each problem; published",
        f"max_response_tokens = {tokens} # {'published' if tokens == rollout.max_response_tokens else shorter}",
        'backend = "vllm" # needs the extra vllm, see docs/install.md; transformers works without, and is slower'
        if is_on_gpu
        else 'backend = "transformers" # vllm needs a GPU',
        "",
        "[rollout.temperature]",
        'kind = "constant" # or diversity: chosen by `microcoder probe` before the first step',
        f"value = {ConstantTemperature().value} # published",
        "",
        "[batch]",
        f"train_batch_size = {asked} # problems a step; {'' if is_on_gpu else f'{batch.train_batch_size} '}published",
        f"ppo_mini_batch_size = {max(1, asked // 2)} # problems an update; with one update a step no clip could act",
        f"micro_batch_rollouts = {setting.micro_batch_rollouts} # rollouts a pass: bounds memory, changes no result",
        "",
        *_RECIPES[wishes.algorithm].read_text(encoding="utf-8").splitlines(),
    ]
    if wishes.algorithm == _USUAL:
        lines.append(f"rho = {masking.rho} # published")
        lines.append(f"repeat_window_tokens = {masking.repeat_window_tokens} # published")
    lines += ["", "[optimizer]"]
    if setting.is_whole:
        lines.append(f"learning_rate = {rate} # published")
    else:
        lines.append(f"learning_rate = {10 * rate} # {rate} published for all weights; adapters take ten times as much")
    lines += ["", "[evaluation]", f"every_steps = {evaluation.every_steps}"]
    lines.append(f"samples_per_problem = {evaluation.samples_per_problem} # published")
    if is_longer:
        lines.append(f"max_response_tokens = {_EVALUATION_TOKENS} # longer than in training, as in the paper")
    lines += ["", "[checkpoint]", f"every_steps = {CheckpointConfig().every_steps}"]
    lines.append(f"keep = {CheckpointConfig().keep} # the latest, and under TRL the best by held-out accuracy")
    if wishes.engine == "verl":
        gpus = len(_find_gpus()) or 8
        lines += ["", "[verl]", f'"trainer.n_gpus_per_node" = {gpus} # by verl\'s names; docs/cluster.md']
        lines.append('"trainer.nnodes" = 1')
    return "\n".join(lines) + "\n"
