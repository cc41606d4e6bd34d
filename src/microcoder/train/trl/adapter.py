"""TRL's trainer as this package uses it: the only file that names what is private in TRL.

TRL 1.16 has no public place for another sampler, loss or checkpoint, so seven of its private
methods are overridden or called. Each has a public name here, which our trainers override:
`_compute_loss` is `compute_policy_loss`. As this module is imported, their parameters are compared
with the installed TRL. A change is an error that names it, so that no run goes wrong silently.

TRL keeps the temperature in three places: the generation config, the vLLM client, and a closure
that `add_fused_lm_head` makes for the log-probs. If only some of them are changed, the loss stays
at the old temperature, silently. Ratios must be taken at the sampling temperature (paper, equation
1): `set_sampling`.
"""

import inspect
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from types import CellType, FunctionType
from typing import Any

import torch
from torch import nn
from trl import GRPOTrainer

from microcoder.judge.core.errors import TrainingError

TESTED = "trl>=1.16,<1.17"
"""Versions of TRL that the tests train with, as pip takes them."""

PRIVATE_METHODS: Mapping[str, tuple[str, ...]] = {
    "_generate_and_score_completions": ("inputs",),
    "_generate": ("prompts",),
    "_generate_single_turn": ("prompt_ids", "images", "multimodal_fields", "num_generations"),
    "_tokenize_prompts": ("prompts",),
    "_get_per_token_logps_and_entropies": (
        "model",
        "input_ids",
        "attention_mask",
        "logits_to_keep",
        "batch_size",
        "compute_entropy",
    ),
    "_compute_loss": ("model", "inputs"),
    "_save_checkpoint": ("model", "trial"),
}
"""Private methods of `GRPOTrainer` that we override or call, and their first parameters."""

PRIVATE_ATTRIBUTES = ("_metrics", "_entropy_bonus_enabled", "aux_loss_enabled")
"""Attributes that a built trainer must have, public or not, and that no document promises."""

OF_VLLM = "vllm_generation"
"""Attribute of a trainer whose responses vLLM samples."""

OF_TRANSFORMERS = "generation_kwargs"
"""Attribute of a trainer whose responses transformers samples."""


def find_changes(trainer: type) -> list[str]:
    """Return how a trainer class differs from TRL 1.16, a sentence for each difference."""
    changes: list[str] = []
    for name, expected in PRIVATE_METHODS.items():
        method = getattr(trainer, name, None)
        if method is None:
            changes.append(f"{name} is gone")
            continue
        # What follows the first ones may be added to without harm to us.
        parameters = [word for word in inspect.signature(method).parameters if word != "self"]
        if tuple(parameters[: len(expected)]) != expected:
            changes.append(
                f"{name} takes ({', '.join(parameters)}), not ({', '.join(expected)}, ...)"
            )
    return changes


def require_known(changes: list[str]) -> None:
    """Raise TrainingError if there are changes: what they are, and which TRL to install."""
    if changes:
        raise TrainingError(
            f"TRL {version('trl')} is not the TRL that this engine knows: {'; '.join(changes)}; "
            f"install one that was tested: pip install '{TESTED}'"
        )


require_known(find_changes(GRPOTrainer))


Completions = tuple[list[list[int]], list[list[float]] | None]
"""Token ids of each response, and the log-probs of its tokens where the sampler reports them."""

Tokenized = tuple[list[list[int]], list[Any] | None, dict[str, Any]]
"""Token ids of each prompt, images, and further fields of models that see."""

Generated = tuple[
    list[list[int]],
    list[list[int]],
    list[Any] | None,
    list[Any],
    list[list[float]] | None,
    dict[str, Any],
    list[Any] | None,
    list[Any],
]
"""TRL's eight values of a round: prompt ids, completion ids, mask of tools, completions, log-probs,
further fields, images, images of tools."""


class AdaptedTrainer(GRPOTrainer):
    """TRL's trainer with a public name for each private method.

    Each does what TRL does until it is overridden.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        sampler = OF_VLLM if self.use_vllm else OF_TRANSFORMERS
        missing = [name for name in (*PRIVATE_ATTRIBUTES, sampler) if not hasattr(self, name)]
        require_known([f"GRPOTrainer has no {name}" for name in missing])

    @property
    def reported(self) -> dict[str, list[float]]:
        """TRL's figures of the current update, by TRL's names; each list has a value per pass."""
        return self._metrics["train"]

    @property
    def has_entropy_bonus(self) -> bool:
        """Whether the loss has an entropy term."""
        return self._entropy_bonus_enabled

    def sample_step(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the tensors of a sampling round, given its rows."""
        return super()._generate_and_score_completions(inputs)

    def generate(self, prompts: list[Any]) -> Generated:
        """Sample a round's responses."""
        return super()._generate(prompts)

    def generate_responses(
        self, prompt_ids: list[list[int]], *rest: object, **named: object
    ) -> Completions:
        """Sample responses to tokenized prompts.

        `rest` are TRL's images, fields and samples.
        """
        return super()._generate_single_turn(prompt_ids, *rest, **named)

    def tokenize(self, prompts: list[Any]) -> Tokenized:
        """Return the token ids of prompts."""
        return super()._tokenize_prompts(prompts)

    def read_logps(
        self,
        model: nn.Module,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **extras: object,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return log-probs, entropies and an auxiliary loss.

        Shapes: `input_ids` and `attention_mask` (rows, prompt + completion); results (rows,
        logits_to_keep).
        """
        return super()._get_per_token_logps_and_entropies(
            model,
            input_ids,
            attention_mask,
            logits_to_keep,
            batch_size,
            compute_entropy,
            **extras,
        )

    def compute_policy_loss(self, model: nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        """Return the loss of a pass."""
        return super()._compute_loss(model, inputs)

    def write_checkpoint(self, model: nn.Module, trial: object) -> None:
        """Write a checkpoint into TRL's folder."""
        super()._save_checkpoint(model, trial)

    # What TRL calls.

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        return self.sample_step(inputs)

    def _generate(self, prompts: list[Any]) -> Generated:
        return self.generate(prompts)

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], *rest: object, **named: object
    ) -> Completions:
        return self.generate_responses(prompt_ids, *rest, **named)

    def _tokenize_prompts(self, prompts: list[Any]) -> Tokenized:
        return self.tokenize(prompts)

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **named: Any) -> Any:
        return self.read_logps(*arguments, **named)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        return self.compute_policy_loss(model, inputs)

    def _save_checkpoint(self, model: Any, trial: object) -> None:
        self.write_checkpoint(model, trial)


def set_sampling(trainer: GRPOTrainer, *, temperature: float, max_response_tokens: int) -> None:
    """From now on, sample at this temperature and length limit.

    Log-probs are taken at this temperature, too.
    """
    trainer.temperature = temperature
    trainer.max_completion_length = max_response_tokens
    if trainer.use_vllm:
        trainer.vllm_generation.temperature = temperature
        trainer.vllm_generation.max_completion_length = max_response_tokens
    else:
        trainer.generation_config.temperature = temperature
        trainer.generation_config.max_new_tokens = max_response_tokens
        trainer.generation_kwargs.update(
            temperature=temperature, max_new_tokens=max_response_tokens
        )
    # The closure: of each model that takes log-probs.
    for model in (trainer.model, trainer.ref_model):
        if isinstance(model, nn.Module):
            _temperature_cell(model).cell_contents = temperature


def _temperature_cell(model: nn.Module) -> CellType:
    """Return the closure cell of the fused LM head's temperature.

    `forward` may have been wrapped since the head was put in.
    """
    for function in _wrapped_functions(model):
        if function.__code__.co_name == "_fused_forward" and function.__closure__:
            cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
            # A later TRL may keep it elsewhere.
            if "temperature" in cells:
                return cells["temperature"]
    raise TrainingError(
        "cannot find the temperature of TRL's fused LM head, so the log-probs would be taken at "
        f"the wrong temperature; install a TRL that was tested: pip install '{TESTED}'"
    )


def _wrapped_functions(model: nn.Module) -> Iterator[FunctionType]:
    """Yield the functions that replace `forward` in a model's modules, and those that they wrap."""
    todo: list[object] = []
    for module in model.modules():
        for name in ("forward", "_original_forward"):
            if name in module.__dict__:
                # Put into the instance, in front of the class's own.
                todo.append(module.__dict__[name])
    seen: set[int] = set()
    while todo:
        candidate = todo.pop()
        function = getattr(candidate, "__func__", candidate)
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        # A wrapper holds what it wraps in its closure.
        for cell in function.__closure__ or ():
            if callable(cell.cell_contents):
                todo.append(cell.cell_contents)
