"""`microcoder init`: a commented recipe for the user's model and problems, with the published settings.

A model for `microcoder init`: its size and chat template from local files, and the largest settings that fit a GPU.

Rules of thumb (`count_gib`) find the candidates, for any model whose size is known; where its shape is known too, the
count of the dry run (`estimate`) decides.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from microcoder.data.benchmarks.published import check_format, find_format
from microcoder.judge.core.config import SHIPPED
from microcoder.judge.core.errors import ConfigError, explain_fault
from microcoder.train.algorithm.config import ConditionalMasking
from microcoder.train.algorithm.sampling import ConstantTemperature, RolloutConfig
from microcoder.train.recipe.recipe import BatchConfig, CheckpointConfig, EvaluationConfig, OptimizerConfig, TrainConfig
from microcoder.train.run.checkpoints import check_model_folder, model_folder
from microcoder.train.run.estimate import fits
from microcoder.train.run.manifest import find_missing
from microcoder.train.run.shapes import KNOWN, count_parameters

_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)B(?![a-z])", re.IGNORECASE)
_HYBRID = re.compile(r"Qwen3-\d+(\.\d+)?B(-A\d+B)?", re.IGNORECASE)
"""Qwen3 of 2025-04 thinks unless told not to; the models of 2025-07 are either -Instruct or -Thinking."""
# Qwen3-1.7B, which models whose config.json is not here are scaled from.
_REFERENCE_PARAMETERS, _REFERENCE_LAYERS, _REFERENCE_HIDDEN, _REFERENCE_KV = 1.72e9, 28, 2048, 1024


@dataclass(frozen=True, slots=True)
class StarterModel:
    """The known properties of a model."""

    name: str
    """A folder or an id of the Hub, as it was given."""
    parameters: float
    num_layers: int
    hidden_size: int
    kv_size: int
    """Keys of one token in one layer: heads times their size."""
    max_context_tokens: int | None
    """None without a config.json."""
    is_hybrid: bool
    """It thinks before it answers unless `enable_thinking = false` is given."""
    has_chat_template: bool | None
    """None if unknown."""


def inspect_model(name: str) -> StarterModel:
    """Return a model's properties from its folder, the Hub's cache or its name."""
    folder = model_folder(name)
    if folder is not None:
        check_model_folder(folder)
    dims = _read_json(_find_file(name, folder, "config.json"))
    parameters = _count(name, dims)
    if parameters is None:
        raise ConfigError(
            f"the size of {name} is unknown: no folder here, not in the Hub's cache, no size such as 1.7B in its "
            f"name; type: hf download {name}, and try again"
        )
    scale = (parameters / _REFERENCE_PARAMETERS) ** (1 / 3)
    hidden = dims.get("hidden_size") or round(_REFERENCE_HIDDEN * scale)
    head_size = dims.get("head_dim") or hidden // (dims.get("num_attention_heads") or 16)
    return StarterModel(
        name,
        parameters,
        dims.get("num_hidden_layers") or round(_REFERENCE_LAYERS * scale),
        hidden,
        (dims["num_key_value_heads"] * head_size) if dims.get("num_key_value_heads") else _REFERENCE_KV,
        dims.get("max_position_embeddings"),
        *_read_template(name, folder),
    )


def _count(name: str, dims: Mapping[str, Any]) -> float | None:
    counted = count_parameters(KNOWN.get(name) or dims)
    if counted is None and (said := _BILLIONS.search(name.replace("_", "-").rpartition("/")[2])):
        return float(said[1]) * 1e9
    return counted


def _read_template(name: str, folder: Path | None) -> tuple[bool, bool | None]:
    file = _find_file(name, folder, "chat_template.jinja")
    settings = _find_file(name, folder, "tokenizer_config.json")
    if file is not None:
        return "enable_thinking" in file.read_text(encoding="utf-8"), True
    if settings is not None:
        template = _read_json(settings).get("chat_template")
        return "enable_thinking" in json.dumps(template), template is not None
    return _HYBRID.fullmatch(name.rpartition("/")[2]) is not None, None


def _find_file(name: str, folder: Path | None, file: str) -> Path | None:
    if folder is not None:
        return folder / file if (folder / file).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(name, file)
    except HFValidationError as error:
        raise ConfigError(f"model {name!r} is neither a folder here nor an id of the Hub ({error})") from None
    return Path(found) if isinstance(found, str) else None


def _read_json(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); download the model again") from None
    return value if isinstance(value, dict) else {}


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
RESPONSE_TOKENS = (8192, 4096, 2048, 1024)
"""The published limit, and what is tried where it does not fit."""
PROMPT_TOKENS = 1024
"""Room for the statement; longer ones are cut by no one and take more."""
PASSES = (8, 4, 2, 1)
"""Rollouts in one forward and backward pass."""
_SEQUENCES = 8
"""The sampler's cache must hold at least so many whole sequences, or sampling crawls."""
_RESERVE_GIB = 4.0
"""CUDA's context, fragmentation, and the logits of one chunk."""
_LAYER_VALUES = 34
"""Values per token and unit of width that one layer holds for its backward pass, the layers being recomputed."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Settings that fit."""

    is_whole: bool
    """All weights are trained, in float32; otherwise LoRA adapters on bfloat16 weights."""
    max_response_tokens: int
    micro_batch_rollouts: int
    gib: float
    """What it takes."""


def fit_model(
    model: StarterModel, gpu: str, *, holds: Callable[[Fit, float], bool | None] = lambda fit, gib: None
) -> Fit | None:
    """Return the setting nearest to the published one that fits on one GPU; None on the CPU, if nothing is fitted.

    All weights at 4K tokens or more come before adapters, a longer limit before larger passes.

    Args:
        model: what it is fitted for.
        gpu: one of `GPUS`.
        holds: whether a GPU of so many GiB holds a setting, by an exact count; None if that cannot be counted.
    """
    if gpu not in GPUS:
        raise ConfigError(f"gpu {gpu!r} is unknown; use one of {', '.join(GPUS)}, the one with as much memory")
    memory_gb = GPUS[gpu]
    if memory_gb is None:
        return None
    has_gib = memory_gb * 1e9 / 2**30
    limits = [n for n in RESPONSE_TOKENS if n + PROMPT_TOKENS <= (model.max_context_tokens or n + PROMPT_TOKENS)]
    settings = [
        *product((True,), [n for n in limits if n >= 4096], PASSES),
        *product((False,), limits, PASSES),
    ]
    for is_whole, tokens, rollouts in settings:
        gib = count_gib(model, is_whole=is_whole, response_tokens=tokens, rollouts_per_pass=rollouts)
        fit = Fit(is_whole, tokens, rollouts, round(gib, 1))
        if gib <= has_gib and holds(fit, has_gib) is not False:
            return fit
    raise ConfigError(
        f"{model.name} ({model.parameters / 1e9:.1f} B parameters) does not fit on one {gpu} even with adapters; "
        "choose a larger GPU, or several: --engine verl (docs/cluster.md)"
    )


def count_gib(model: StarterModel, *, is_whole: bool, response_tokens: int, rollouts_per_pass: int) -> float:
    """Return about how much memory training and sampling take on one GPU that holds both.

    Weights, gradients and two AdamW moments in float32 (16 bytes a parameter), or bfloat16 weights (2) with adapters
    (0.2); the sampler's own bfloat16 weights and its cache; what gradient checkpointing keeps, and one layer whole.
    """
    tokens = response_tokens + PROMPT_TOKENS
    weights = model.parameters * (16 if is_whole else 2.2)
    sampler = model.parameters * 2 + _SEQUENCES * tokens * model.num_layers * model.kv_size * 2 * 2
    kept = rollouts_per_pass * tokens * model.hidden_size * 2 * (model.num_layers + _LAYER_VALUES)
    return (weights + sampler + kept) / 2**30 + _RESERVE_GIB


def detect_gpu() -> str:
    """Return the name in `GPUS` of this machine's first GPU, by NVIDIA's driver; `cpu` if there is none."""
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = file.read_text(encoding="utf-8", errors="replace").lower().splitlines()
        words = next((line for line in lines if line.startswith("model")), "").replace("rtx ", "rtx-")
        for name in GPUS:
            family, _, size = name.partition("-") if name.startswith("a100") else (name, "", "")
            if family in words and size in words:
                return name
    return "cpu"


def _count_gpus() -> int:
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*/information")))


_USUAL = "microcoder-grpo"
_RECIPES = {path.stem: path for path in sorted((SHIPPED / "recipes" / "algorithms").glob("*.toml"))}
ALGORITHMS = (_USUAL, *(name for name in _RECIPES if name != _USUAL))
"""The recipes that come with the package and change the algorithm alone; the first is the default."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_CPU_TOKENS, _CPU_PROBLEMS = 512, 8
_EVALUATION_TOKENS = 8192
_PUBLISHED = "published"


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


def write_recipe(wishes: Wishes) -> str:
    """Return the text of a recipe (TOML)."""
    if wishes.algorithm not in ALGORITHMS:
        raise ConfigError(f"algorithm {wishes.algorithm!r} is unknown; use one of {', '.join(ALGORITHMS)}")
    if wishes.engine not in ("trl", "verl"):
        raise ConfigError(f"engine {wishes.engine!r} is unknown; use trl or verl")
    if wishes.engine == "verl" and wishes.gpu == "cpu":
        raise ConfigError("engine verl trains on GPUs; pass --gpu h100, say, or leave out --engine verl")
    problems = _problems(wishes)
    model = inspect_model(wishes.model)

    def write(fit: Fit | None) -> str:
        return "\n".join(_lines(wishes, model, fit, problems)) + "\n"

    def resolve(fit: Fit | None) -> TrainConfig:
        return TrainConfig.model_validate(tomllib.loads(write(fit)))

    try:
        # Before the count, which reads the problems.
        if missing := find_missing(resolve(None)):
            raise ConfigError("; ".join(missing))
        text = write(fit_model(model, wishes.gpu, holds=lambda fit, gib: fits(resolve(fit), gib)))
    except ValidationError as error:
        fault = error.errors()[0]
        raise ConfigError(explain_fault(fault, ".".join(map(str, fault["loc"])))) from None
    return text


def _problems(wishes: Wishes) -> dict[str, str]:
    place = Path(wishes.problems).expanduser()
    is_id = not place.exists() and not place.suffix.startswith(".json") and _HUB_ID.fullmatch(wishes.problems)
    if wishes.format is None and not is_id:
        return {"kind": "files", "train": wishes.problems, "heldout": wishes.heldout}
    row_format = wishes.format or find_format(wishes.problems)
    check_format(row_format, is_trained_on=True)
    is_file = Path(wishes.heldout).expanduser().exists() or "." in wishes.heldout or "/" in wishes.heldout
    return {
        "kind": "hub",
        "id": wishes.problems,
        "format": row_format,
        "heldout" if is_file else "heldout_split": wishes.heldout,
    }


def _lines(wishes: Wishes, model: StarterModel, fit: Fit | None, problems: Mapping[str, str]) -> Iterator[str]:
    rollout, checkpoint = RolloutConfig(), CheckpointConfig()
    tokens = fit.max_response_tokens if fit else min(_CPU_TOKENS, (model.max_context_tokens or 2 * _CPU_TOKENS) // 2)
    yield f"# {wishes.algorithm} on {model.name}, written by `{wishes.command}`."
    yield "# Values marked as published are those of the paper (arXiv 2603.07777, section 5.1). Change what you like:"
    yield "# docs/reference.md lists every key. See what the run takes, then start it; the same command resumes it."
    yield "#     microcoder train -c THIS_FILE --dry-run"
    yield "#     microcoder train -c THIS_FILE"
    if wishes.engine == "verl":
        yield _line("engine", "verl", "docs/cluster.md")
    yield _line("num_steps", TrainConfig.model_fields["num_steps"].default, "sampling rounds of the published run")
    yield from _model_lines(model, fit)
    yield from _prompt_lines(model)
    yield ""
    yield "[problems]"
    for key, value in problems.items():
        yield _line(key, value)
    if problems["kind"] == "hub":
        yield '# revision = "main" # name a commit to train on the same problems another day'
    yield ""
    yield "[rollout]"
    yield _line("num_samples", rollout.num_samples, f"responses to each problem; {_PUBLISHED}")
    yield _line("max_response_tokens", tokens, _length_note(tokens, rollout, fit))
    backend_note = "needs the extra vllm, see docs/install.md; transformers works without, and is slower"
    yield _line("backend", "vllm" if fit else "transformers", backend_note if fit else "vllm needs a GPU")
    yield ""
    yield "[rollout.temperature]"
    yield _line("kind", "constant", "or diversity: chosen by `microcoder probe` before the first step")
    yield _line("value", ConstantTemperature().value, _PUBLISHED)
    yield from _batch_lines(fit)
    yield from _algorithm_lines(wishes.algorithm)
    yield ""
    yield "[optimizer]"
    rate = OptimizerConfig().learning_rate
    if fit is None or fit.is_whole:
        yield _line("learning_rate", rate, _PUBLISHED)
    else:
        yield _line("learning_rate", 10 * rate, f"{rate} published for all weights; adapters take ten times as much")
    yield ""
    yield "[evaluation]"
    yield _line("every_steps", EvaluationConfig().every_steps)
    yield _line("samples_per_problem", EvaluationConfig().samples_per_problem, _PUBLISHED)
    if fit and fit.max_response_tokens < _EVALUATION_TOKENS <= (model.max_context_tokens or _EVALUATION_TOKENS):
        yield _line("max_response_tokens", _EVALUATION_TOKENS, "longer than in training, as in the paper")
    yield ""
    yield "[checkpoint]"
    yield _line("every_steps", checkpoint.every_steps)
    yield _line("keep", checkpoint.keep, "the latest, and under TRL the best by held-out accuracy")
    if wishes.engine == "verl":
        yield ""
        yield "[verl]"
        yield _line('"trainer.n_gpus_per_node"', _count_gpus() or 8, "by verl's names; docs/cluster.md")
        yield _line('"trainer.nnodes"', 1)


def _model_lines(model: StarterModel, fit: Fit | None) -> Iterator[str]:
    yield ""
    yield "[model]"
    yield _line("kind", "hugging_face")
    yield _line("path", model.name)
    billions = model.parameters / 1e9
    size = f"{billions:.1f} B parameters" if billions >= 0.1 else f"{1000 * billions:.1f} M parameters"
    if fit is None:
        yield _line("compute_dtype", "float32", f"{size}, on the CPU: for a trial run")
        return
    yield f"# {size}: about {fit.gib:.0f} GiB with the sampler beside it; the dry run counts"
    if fit.is_whole:
        yield _line("dtype", "float32", "an update at rate 1e-6 is lost in bfloat16 weights")
        return
    yield _line("dtype", "bfloat16", "all weights in float32 do not fit: adapters are trained, in float32")
    yield ""
    yield "[model.lora]"
    yield _line("rank", 32)
    yield _line("alpha", 64)


def _prompt_lines(model: StarterModel) -> Iterator[str]:
    if model.has_chat_template is False:
        yield "# The tokenizer has no chat template: problems are asked in plain text, as base models are."
    if model.is_hybrid:
        yield ""
        yield "[prompt]"
        yield "# This model thinks before it answers unless told not to; the paper trains it without."
        yield "chat_template_options = { enable_thinking = false }"


def _batch_lines(fit: Fit | None) -> Iterator[str]:
    batch = BatchConfig()
    yield ""
    yield "[batch]"
    problems = batch.train_batch_size if fit else _CPU_PROBLEMS
    note = _PUBLISHED if fit else f"{batch.train_batch_size} published"
    yield _line("train_batch_size", problems, f"problems a step; {note}")
    yield _line("ppo_mini_batch_size", problems, "problems an update: one update a step")
    passes = fit.micro_batch_rollouts if fit else batch.micro_batch_rollouts
    yield _line("micro_batch_rollouts", passes, "rollouts a pass: bounds memory, changes no result")


def _algorithm_lines(name: str) -> Iterator[str]:
    yield ""
    yield from _RECIPES[name].read_text(encoding="utf-8").splitlines()
    if name == _USUAL:
        ours = ConditionalMasking()
        yield _line("rho", ours.rho, _PUBLISHED)
        yield _line("repeat_window_tokens", ours.repeat_window_tokens, _PUBLISHED)


def _length_note(tokens: int, rollout: RolloutConfig, fit: Fit | None) -> str:
    if tokens == rollout.max_response_tokens:
        return _PUBLISHED
    why = "longer ones do not fit" if fit else "longer ones take hours on a CPU"
    return f"{rollout.max_response_tokens} published; {why}"


def _line(key: str, value: str | float, note: str = "") -> str:
    # JSON's strings, numbers and booleans are TOML's, 1e-06 included.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}" + (f" # {note}" if note else "")
