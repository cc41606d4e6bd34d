"""Models and tokenizers: loading checkpoints, encoding prompts, local generation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from microcoder.data.completions import Completion
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.machine import is_disk_full
from microcoder.train.rollouts import Chat, render_chat
from microcoder.train.run.checkpoints import check_model_folder, model_folder


def silence_transformers() -> None:
    """Keep transformers' notes and progress bars out of our own display."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def model_source(name: str) -> str:
    """Return a model's folder, checked (`check_model_folder`), or its hub id unchanged."""
    folder = model_folder(name)
    if folder is None:
        return name
    check_model_folder(folder)
    return str(folder)


def load_checkpoint(
    source: str, *, revision: str | None, dtype: str, attn_implementation: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load weights and tokenizer from a folder or the hub; DataError if a part is missing or cannot be loaded."""
    silence_transformers()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, padding_side="left")
        weights, report = AutoModelForCausalLM.from_pretrained(
            source,
            revision=revision,
            dtype=getattr(torch, dtype),
            attn_implementation=attn_implementation,
            output_loading_info=True,
        )
    except (
        Exception
    ) as error:  # foreign files fail in many ways: safetensors, tokenizers, pydantic, the hub
        if is_disk_full(error):
            raise
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"cannot load model {source!r}: {type(error).__name__}: {reason}; check the name and the files, or "
            "download it and pass --model.path FOLDER (of `microcoder eval`: --generation.model FOLDER)"
        ) from None
    if missing := sorted(report["missing_keys"]):
        raise DataError(
            f"checkpoint {source!r} lacks {len(missing)} weights of its own architecture (first: {missing[0]}); they "
            "would be random: save the whole model with save_pretrained()"
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise DataError(
            f"model {source!r} has no tokenizer; save one into its folder with save_pretrained()"
        )
    return weights, tokenizer


def encode_chats(
    tokenizer: PreTrainedTokenizerBase, chats: Sequence[Chat], options: Mapping[str, Any]
) -> list[list[int]]:
    """Return the token ids of each chat, by the tokenizer's template where it has one."""
    if tokenizer.chat_template is None:
        texts = [render_chat(tokenizer, chat, options) for chat in chats]
        return [list(ids) for ids in tokenizer(text=texts)["input_ids"]]
    encoded: Any = tokenizer.apply_chat_template(
        [[dict(turn) for turn in chat] for chat in chats],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **options,
    )
    return [list(ids) for ids in encoded["input_ids"]]


def check_options(tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for chat-template options that the model's template ignores."""
    asked = [{"role": "user", "content": "?"}]
    for name, value in options.items():
        if tokenizer.chat_template is None:
            raise ConfigError(
                f"prompt.chat_template_options.{name}: this model has no chat template; leave it out"
            )
        # A template may write the same with its default: it is asked with the opposite, and with none, too.
        tried = () if name == "add_generation_prompt" else ({}, {name: value}, {name: not value})
        if len({render_chat(tokenizer, asked, given) for given in tried}) < 2:
            raise ConfigError(
                f"prompt.chat_template_options.{name} would change nothing: the model's chat template does not look at "
                "it; check its name, or leave it out"
            )


def end_token_ids(
    tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None
) -> list[int]:
    """Return the tokens that end a response: the tokenizer's, and those of the model's generation config."""
    given = None if generation is None else generation.eos_token_id
    ids = [given] if isinstance(given, int) else list(given or ())
    own = tokenizer.eos_token_id
    return ids if own in ids or not isinstance(own, int) else [own, *ids]


def respond(
    name: str,
    chats: Sequence[Chat],
    *,
    seeds: Sequence[int],
    batch_size: int,
    temperature: float,
    top_p: float,
    max_tokens: int,
    revision: str | None = None,
    dtype: str = "float32",
    template_options: Mapping[str, Any] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[Completion]:
    """Load a model and yield a response to each chat, on a GPU if there is one; a batch uses its first chat's seed."""
    loaded, tokenizer = load_checkpoint(model_source(name), revision=revision, dtype=dtype)
    options = template_options or {}
    check_options(tokenizer, options)
    if tokenizer.chat_template is None:
        note(
            f"{name} has no chat template: prompts are plain text, as in the training of a base model; "
            "prompt.style = instruct asks in training's words"
        )
    ends = end_token_ids(tokenizer, loaded.generation_config)
    if not ends:
        raise ConfigError(
            "the checkpoint names no end-of-sequence token; save one into its generation_config.json"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model: Any = loaded.to(device).eval()  # pyrefly: ignore[bad-argument-type]
    padding = ends[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    chosen = {"temperature": temperature, "top_p": top_p, "top_k": 0} if temperature > 0 else {}
    # All given, so that the checkpoint's own generation_config.json decides nothing.
    settings = GenerationConfig(
        do_sample=temperature > 0,
        max_new_tokens=max_tokens,
        eos_token_id=ends,
        pad_token_id=padding,
        **chosen,
    )
    for start in range(0, len(chats), batch_size):
        prompts = encode_chats(tokenizer, chats[start : start + batch_size], options)
        longest = max(map(len, prompts))
        ids = torch.tensor(
            [[padding] * (longest - len(one)) + one for one in prompts], device=device
        )
        seen = torch.tensor(
            [[0] * (longest - len(one)) + [1] * len(one) for one in prompts], device=device
        )
        torch.manual_seed(seeds[start])
        try:
            with torch.inference_mode():
                out = model.generate(input_ids=ids, attention_mask=seen, generation_config=settings)
        except torch.OutOfMemoryError as error:
            reason = str(error).splitlines()[0][:200]
            raise ConfigError(
                f"out of memory ({reason}); lower generation.batch_size (now {batch_size}) or "
                f"sampling.max_tokens (now {max_tokens}); type the same command again to resume"
            ) from None
        for row in out[:, longest:].tolist():
            end = next((place for place, token in enumerate(row) if token in ends), None)
            response = row if end is None else row[: end + 1]
            (text,) = tokenizer.batch_decode([response], skip_special_tokens=True)
            yield Completion(text, end is None, len(response))
