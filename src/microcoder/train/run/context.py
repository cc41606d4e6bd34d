"""The context of a model: how many tokens prompt and response may have together.

It is read from the model's files. Positions beyond the context were never trained: answers become
noise there, and vLLM refuses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.estimate import read_file

_POSITION_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
    "n_ctx",
)
"""Names of the context in config.json, by family; the first that is there counts."""
_ALREADY_EXTENDED = ("su", "longrope", "llama3", "default", "mrope", "proportional")
"""Kinds of rope scaling whose context is in config.json as it is, by vLLM's rule."""
_MOST_TOKENS = 10**8
"""Tokenizers without a limit name a number beyond this."""


@dataclass(frozen=True, slots=True)
class Context:
    """The most tokens that prompt and response of a model may have together."""

    tokens: int
    source: str
    """The file and key that says so."""


def find_context(model: str, revision: str | None = None) -> Context | None:
    """Return the context of a checkpoint folder or a model in the Hub's cache.

    None if its files do not say.
    """
    config = read_file(model, "config.json", revision=revision)
    context = read_context(config)
    if context is not None:
        return context
    # A tokenizer's limit is often wrong (16,384 of models of 131,072), so it counts where nothing
    # else is known.
    limit = read_file(model, "tokenizer_config.json", revision=revision).get("model_max_length")
    is_limit = isinstance(limit, int) and 0 < limit < _MOST_TOKENS
    if is_limit and config:
        return Context(limit, "model_max_length of tokenizer_config.json")
    return None


def read_context(config: Mapping[str, Any]) -> Context | None:
    """Return the context by a model's config.json, as vLLM reads it: rope scaling extends it."""
    texts = [config]
    # Models of text and images describe each part apart.
    nested = config.get("text_config")
    if isinstance(nested, Mapping):
        texts.append(nested)
    for values in texts:
        for key in _POSITION_KEYS:
            tokens = values.get(key)
            if isinstance(tokens, int) and tokens > 0:
                return _extend(tokens, key, values)
    return None


def _extend(tokens: int, key: str, values: Mapping[str, Any]) -> Context:
    """Return a context with the positions that rope scaling adds."""
    scaling = values.get("rope_scaling") or values.get("rope_parameters")
    if not isinstance(scaling, Mapping):
        return Context(tokens, f"{key} of config.json")
    # Older configs have the key `type`.
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    factor = scaling.get("factor")
    if kind in _ALREADY_EXTENDED or not isinstance(factor, int | float):
        return Context(tokens, f"{key} of config.json")
    # Its factor is of the context that the model was trained at first.
    if kind == "yarn":
        tokens = scaling.get("original_max_position_embeddings") or tokens
    return Context(int(tokens * factor), f"{key} and rope scaling ({kind}) of config.json")


def check_fit(
    context: Context | None, prompt_tokens: int, limits: Mapping[str, int], *, split: str = ""
) -> None:
    """Raise ConfigError if a prompt and a response do not fit into a model's context.

    Args:
        context: of the model; None: not known, nothing is checked.
        prompt_tokens: of the longest prompt; 0: not known.
        limits: key of a config -> length limit that it sets for responses.
        split: the problems that are meant, such as "held-out ", where there are several kinds.
    """
    fault = find_misfit(context, prompt_tokens, limits, split=split)
    if fault is not None:
        raise ConfigError(fault)


def find_misfit(
    context: Context | None, prompt_tokens: int, limits: Mapping[str, int], *, split: str = ""
) -> str | None:
    """Return what is wrong with prompt and response in a model's context, and what to type.

    None if they fit.
    """
    if context is None:
        return None
    left_tokens = context.tokens - prompt_tokens
    for key, limit in limits.items():
        if limit <= left_tokens:
            continue
        limits_it = f"the model's context of {context.tokens:,} ({context.source})"
        need = f"{key} = {limit:,} is more than {limits_it}"
        if prompt_tokens:
            need = (
                f"the longest {split}prompt ({prompt_tokens:,} tokens) and {key} = {limit:,} make "
                f"{prompt_tokens + limit:,} tokens, more than {limits_it}"
            )
        if left_tokens < 1:
            return f"{need}; leave out such long problems, or use a model with a longer context"
        # An entry of a list cannot be passed by itself.
        is_entry = any(part.isdigit() for part in key.split("."))
        if is_entry:
            advice = f"write {left_tokens} or less there"
        else:
            advice = f"pass --{key} {left_tokens} or less"
        return f"{need}; {advice}, or use a model with a longer context"
    return None


def training_limits(config: TrainConfig) -> dict[str, int]:
    """Return the length limits of training by the key that sets them."""
    rollout = config.rollout
    limits = {"rollout.max_response_tokens": rollout.max_response_tokens}
    for number, stage in enumerate(rollout.length_stages):
        limits[f"rollout.length_stages.{number}.max_response_tokens"] = stage.max_response_tokens
    return limits


def evaluation_limits(config: TrainConfig) -> dict[str, int]:
    """Return the length limit of the evaluations of a training run by the key that sets it."""
    own = config.evaluation.max_response_tokens
    if own is not None:
        return {"evaluation.max_response_tokens": own}
    return training_limits(config)
