"""`microcoder init`: a commented recipe for the user's model and problems, with the published settings."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from microcoder.config import SHIPPED
from microcoder.dataset.published import check_format, find_format
from microcoder.errors import ConfigError
from microcoder.faults import explain_fault
from microcoder.training.algorithm_config import ConditionalMasking
from microcoder.training.config import BatchConfig, CheckpointConfig, EvaluationConfig, TrainConfig
from microcoder.training.inputs import find_missing
from microcoder.training.memory import can_count, fits
from microcoder.training.optimizer_config import OptimizerConfig
from microcoder.training.sampling_config import ConstantTemperature, RolloutConfig
from microcoder.training.starter_model import Fit, StarterModel, fit_model, inspect_model

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
    format: str | None = None
    """Of a data set's rows; None: known by its name."""
    command: str = "microcoder init"


def write_recipe(wishes: Wishes) -> str:
    """Return the text of a recipe (TOML).

    Raises:
        ConfigError: algorithm or GPU are unknown, nothing fits, or problems and held-out contradict each other.
        DataError: the model folder holds no model, or the format is unknown.
    """
    if wishes.algorithm not in ALGORITHMS:
        raise ConfigError(f"algorithm {wishes.algorithm!r} is unknown; use one of {', '.join(ALGORITHMS)}")
    problems = _problems(wishes)
    model = inspect_model(wishes.model)

    def write(fit: Fit | None) -> str:
        return "\n".join(_lines(wishes, model, fit, problems)) + "\n"

    def resolve(fit: Fit | None) -> TrainConfig:
        return TrainConfig.model_validate(tomllib.loads(write(fit)))

    def holds(fit: Fit, gib: float) -> bool | None:
        return fits(resolve(fit), gib) if can_count() else None

    try:
        # Before the count, which reads the problems.
        if missing := find_missing(resolve(None)):
            raise ConfigError("; ".join(missing))
        text = write(fit_model(model, wishes.gpu, holds=holds))
    except ValidationError as error:
        fault = error.errors()[0]
        raise ConfigError(explain_fault(fault, ".".join(map(str, fault["loc"])))) from None
    return text


def _problems(wishes: Wishes) -> dict[str, str]:
    """Return the `[problems]` table: files, or a data set of the Hub."""
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
    yield _line("keep", checkpoint.keep, "the latest, and the best by held-out accuracy")


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
    """The `[prompt]` table, if the model needs one."""
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
