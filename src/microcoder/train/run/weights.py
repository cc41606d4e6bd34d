"""Models and tokenizers: loading checkpoints, encoding prompts, local generation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
from microcoder.train.recipe.recipe import choose_dtype
from microcoder.train.rollouts import (
    Chat,
    explain_template,
    find_closing_token,
    render_chat,
)
from microcoder.train.run.checkpoints import check_model_folder, model_folder
from microcoder.train.run.context import check_fit, find_context
from microcoder.train.run.gguf_conversion import convert_gguf
from microcoder.train.run.gguf_header import find_gguf
from microcoder.train.run.progress import SamplingProgress
from microcoder.train.run.responses import OwnDraws, Sampling, sample_responses
from microcoder.train.run.slots import find_obstacle


def silence_transformers() -> None:
    """Keep transformers' notes and progress bars out of our own display."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def describe_device(dtype: Literal["auto", "float32", "bfloat16"]) -> dict[str, str]:
    """Return the device on which this process generates, and the number format of the weights
    there.
    """
    on_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if on_gpu else "cpu"
    return {"device": device, "dtype": choose_dtype(dtype, on_gpu=on_gpu)}


def model_source(name: str, *, note: Callable[[str], None] = lambda text: None) -> str:
    """Return a model's folder, checked (`check_model_folder`), or its hub id unchanged.

    A GGUF file is made into a folder first; `note` gets messages for the user.
    """
    folder = model_folder(name)
    if folder is None:
        return name
    check_model_folder(folder)
    gguf = find_gguf(folder)
    if gguf is None:
        return str(folder)
    silence_transformers()
    return str(convert_gguf(gguf, note=note))


@dataclass(frozen=True, slots=True)
class PublishedEntries:
    """Entries of a checkpoint's files that its loaded model lacks.

    They are written back as the model is saved.
    """

    generation: GenerationConfig
    """The checkpoint's own generation config: how servers sample by default."""
    pad_token: str | None
    eos_token: str | None
    """The tokenizer's own padding and end token; None where it names none."""
    model_pad_id: int | None
    """The padding token of config.json."""
    use_cache: bool | None
    """Whether config.json says to keep keys and values: TRL switches it off for its own passes."""


class Checkpoint(NamedTuple):
    """A loaded model with its tokenizer, and what ends and pads its responses."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    end_ids: list[int]
    pad_id: int
    published: PublishedEntries
    remarks: tuple[str, ...]
    """Sentences on what is unusual about its tokens, for the user."""


def load_checkpoint(
    source: str, *, revision: str | None, dtype: str, attn_implementation: str | None = None
) -> Checkpoint:
    """Load weights and tokenizer from a folder or the hub.

    The model's generation config is left with end and padding tokens only. Transformers fills in
    every open setting from it, and so would sample from another distribution.

    Raises:
        DataError: a part is missing or cannot be loaded, no end token is named, or weights are not
            finite.
    """
    # Its progress bars would break into ours.
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
    except Exception as error:
        # Foreign files fail in many ways: safetensors, tokenizers, pydantic, the Hub.
        if is_disk_full(error):
            raise
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"cannot load model {source!r}: {type(error).__name__}: {reason}; check the name and "
            "the files, or download it and pass --model.path FOLDER (of `microcoder eval`: "
            "--generation.model FOLDER)"
        ) from None
    # transformers only warns of them, and draws them at random.
    missing = sorted(report["missing_keys"])
    if missing:
        raise DataError(
            f"checkpoint {source!r} lacks {len(missing)} weights of its own architecture (first: "
            f"{missing[0]}); they would be random: save the whole model with save_pretrained()"
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise DataError(
            f"model {source!r} has no tokenizer; save one into its folder with save_pretrained()"
        )
    check_finite(weights, source)
    return _settle_tokens(weights, tokenizer, source)


def check_finite(model: torch.nn.Module, source: str) -> None:
    """Raise DataError if a weight is NaN or infinite."""
    broken = []
    for name, weight in model.named_parameters():
        if weight.is_floating_point() and not bool(torch.isfinite(weight).all()):
            broken.append(name)
    if broken:
        raise DataError(
            f"checkpoint {source!r} holds weights that are no numbers (NaN or infinite), in "
            f"{len(broken)} of its tensors (first: {broken[0]}); it was saved by a training that "
            "diverged: use an earlier checkpoint, or download it again"
        )


def _settle_tokens(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str
) -> Checkpoint:
    """Set the end and padding tokens of a model and its tokenizer.

    Nothing else is set that sampling could read.
    """
    own = model.generation_config or GenerationConfig()
    text_config: Any = model.config.get_text_config()
    published = PublishedEntries(
        generation=own,
        pad_token=_own_token(tokenizer, "pad"),
        eos_token=_own_token(tokenizer, "eos"),
        model_pad_id=text_config.pad_token_id,
        use_cache=getattr(text_config, "use_cache", None),
    )
    # Some models name their end token in config.json alone.
    ends = end_token_ids(tokenizer, own) or _as_ids(getattr(text_config, "eos_token_id", None))
    possible = [token for token in ends if 0 <= token < text_config.vocab_size]
    if not possible:
        named = f"end tokens {ends}, which its vocabulary lacks" if ends else "no end token"
        raise DataError(
            f"checkpoint {source!r} names {named}: no response would ever end; name one as "
            "eos_token_id in its generation_config.json"
        )
    remarks = _describe_tokens(tokenizer, own, possible)
    if tokenizer.eos_token_id is None:
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(possible[0])
    if tokenizer.pad_token_id is None:
        # Padding is masked, so any token will do.
        padding = own.pad_token_id if isinstance(own.pad_token_id, int) else possible[0]
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(padding)
    set_generation(model, tokenizer, possible)
    pad_id = tokenizer.pad_token_id
    assert isinstance(pad_id, int)
    return Checkpoint(model, tokenizer, possible, pad_id, published, tuple(remarks))


def _own_token(tokenizer: PreTrainedTokenizerBase, kind: str) -> str | None:
    """Return a special token that a tokenizer names itself, such as its "pad" token."""
    token = getattr(tokenizer, f"{kind}_token")
    return None if token is None else str(token)


def _as_ids(value: object) -> list[int]:
    """Return the tokens of an entry that may be a number, several in a list, or nothing."""
    if isinstance(value, int):
        return [value]
    return list(value) if isinstance(value, list | tuple) else []


def set_generation(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, end_ids: Sequence[int]
) -> None:
    """Replace a model's generation config by one with end, padding and start tokens only.

    Old checkpoints have settings of sampling in config.json. They are removed too: transformers
    refuses to save them.
    """
    config: Any = model.config
    # They would be read as defaults of sampling.
    for name in config._get_generation_parameters():
        delattr(config, name)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=list(end_ids),
        pad_token_id=tokenizer.pad_token_id,
    )


def _describe_tokens(
    tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig, end_ids: Sequence[int]
) -> list[str]:
    """Return a sentence for each surprise in a checkpoint's end and padding tokens."""
    remarks = []
    ends = ", ".join(repr(tokenizer.convert_ids_to_tokens(token)) for token in end_ids)
    named = _as_ids(generation.eos_token_id)
    own = tokenizer.eos_token_id
    if own is None:
        remarks.append(f"the tokenizer names no end token; the model's own ends a response: {ends}")
    elif named and own not in named:
        remarks.append(
            "the tokenizer's end token is not one of the model's generation config: each of "
            f"{ends} ends a response"
        )
    if tokenizer.pad_token_id is None:
        remarks.append(
            "the tokenizer names no padding token; an end token pads here, and what is saved names "
            "none either"
        )
    closing = find_closing_token(tokenizer, tokenizer.all_special_ids)
    if closing is not None and closing not in end_ids:
        token = tokenizer.convert_ids_to_tokens(closing)
        remarks.append(
            f"the chat template closes an answer with {token!r}, which ends no response here (that "
            f"do {ends}): answers may run on; name it in eos_token_id of generation_config.json"
        )
    return remarks


@contextmanager
def as_published(checkpoint: Checkpoint, folder: Path) -> Iterator[None]:
    """Within the body, the tokenizer is saved with its own tokens.

    Afterwards `folder` has the checkpoint's own generation config. So a trained model differs from
    the model before training by its weights alone.
    """
    tokenizer = checkpoint.tokenizer
    published = checkpoint.published
    text_config: Any = checkpoint.model.config.get_text_config()
    own_tokens = {"pad_token": published.pad_token, "eos_token": published.eos_token}
    own_keys = {"pad_token_id": published.model_pad_id, "use_cache": published.use_cache}
    used_tokens = {name: getattr(tokenizer, name) for name in own_tokens}
    used_keys = {name: getattr(text_config, name, None) for name in own_keys}
    _set_all(tokenizer, own_tokens)
    _set_all(text_config, own_keys)
    try:
        yield
    finally:
        _set_all(tokenizer, used_tokens)
        _set_all(text_config, used_keys)
    file = folder / "generation_config.json"
    if file.exists():
        # Not by save_pretrained, which refuses settings that contradict each other, as published
        # ones may.
        published.generation.to_json_file(file)


def _set_all(owner: object, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(owner, name, value)


_PROBE_TOKENS = 24
"""Tokens of the prompt that is read with padding and without."""
_PADDING_TOKENS = 9
"""Padding tokens put before it."""
_MOST_DIFFERENCE = {torch.float32: 0.01, torch.bfloat16: 0.25}
"""Largest difference that padding may make, in standard deviations of the logits.

Rounding makes a tenth of it.
"""


@torch.no_grad()
def check_positions(checkpoint: Checkpoint, source: str) -> None:
    """Raise DataError if padding on the left changes a model's log-probs.

    TRL passes no position ids. A model that counts positions from the first column, such as GPT-2,
    would be sampled with some log-probs and trained on others.
    """
    model: Any = checkpoint.model
    was_training = model.training
    attention = model.config._attn_implementation
    model.eval()
    if attention not in ("eager", "sdpa"):
        # Kernels for a GPU; the weights are not there yet.
        model.set_attn_implementation("eager")
    vocab_size = model.config.get_text_config().vocab_size
    # Any tokens will do, as long as they differ.
    tokens = [(7 * position + 3) % vocab_size for position in range(_PROBE_TOKENS)]
    plain = torch.tensor([tokens], device=model.device)
    padded = torch.tensor([[checkpoint.pad_id] * _PADDING_TOKENS + tokens], device=model.device)
    mask = torch.ones_like(padded)
    # What is masked has no part in attention, so only positions can differ.
    mask[:, :_PADDING_TOKENS] = 0
    expected = model(input_ids=plain, attention_mask=torch.ones_like(plain)).logits.float()
    logits = model(input_ids=padded, attention_mask=mask).logits
    behind_padding = logits[:, _PADDING_TOKENS:].float()
    if model.config._attn_implementation != attention:
        model.set_attn_implementation(attention)
    model.train(was_training)
    difference = (behind_padding.log_softmax(-1) - expected.log_softmax(-1)).abs().max()
    # Relative, since models differ in the size of their logits.
    share = float(difference / expected.std())
    if share > _MOST_DIFFERENCE.get(model.dtype, 0.25):
        raise DataError(
            f"model {source!r} ({model.config.model_type}) gives other log-probs behind padding "
            f"(by up to {float(difference):.2g} nats): it counts positions from the first column, "
            "and training would score responses wrongly; use a model with rotary positions, such "
            "as Qwen, Llama or SmolLM"
        )


def encode_chats(
    tokenizer: PreTrainedTokenizerBase, chats: Sequence[Chat], options: Mapping[str, Any]
) -> list[list[int]]:
    """Return the token ids of each chat, by the tokenizer's template where it has one."""
    if tokenizer.chat_template is None:
        texts = [render_chat(tokenizer, chat, options) for chat in chats]
        return [list(ids) for ids in tokenizer(text=texts)["input_ids"]]
    # Plain lists and dicts, which it asks for.
    conversations = []
    for chat in chats:
        conversations.append([dict(turn) for turn in chat])
    with explain_template():
        encoded: Any = tokenizer.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **options,
        )
    return [list(ids) for ids in encoded["input_ids"]]


def check_options(tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for chat-template options that the model's template ignores."""
    for name, value in options.items():
        if tokenizer.chat_template is None:
            raise ConfigError(
                f"prompt.chat_template_options.{name}: this model has no chat template; leave it "
                "out"
            )
        if not _changes_prompts(tokenizer, name, value):
            raise ConfigError(
                f"prompt.chat_template_options.{name} would change nothing: the model's chat "
                "template does not look at it; check its name, or leave it out"
            )


def _changes_prompts(tokenizer: PreTrainedTokenizerBase, name: str, value: object) -> bool:
    """Return whether an option changes what a chat template writes."""
    if name == "add_generation_prompt":
        # Prompts of ours always have it.
        return False
    chat = [{"role": "user", "content": "?"}]
    # A template may write the same with its default: it is tried with the opposite, and with
    # none, too.
    prompts = set()
    for options in ({}, {name: value}, {name: not value}):
        prompts.add(render_chat(tokenizer, chat, options))
    return len(prompts) > 1


def end_token_ids(
    tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None
) -> list[int]:
    """Return the tokens that end a response, of the tokenizer and of the generation config."""
    ids: list[int] = []
    if generation is not None:
        named = generation.eos_token_id
        ids = [named] if isinstance(named, int) else list(named or ())
    own = tokenizer.eos_token_id
    # The tokenizer's comes first: it is named where one is asked for.
    if isinstance(own, int) and own not in ids:
        return [own, *ids]
    return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How a model of this process answers: its weights, its prompts, and how it samples."""

    batch_size: int
    temperature: float
    top_p: float
    max_tokens: int
    top_k: int | None = None
    """Likeliest tokens that are drawn from; None: all."""
    revision: str | None = None
    """Of the model on the Hub."""
    dtype: str = "float32"
    """Number format of the weights."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the model's chat template."""


def respond(
    name: str,
    chats: Sequence[Chat],
    settings: GenerationSettings,
    *,
    seeds: Sequence[int],
    note: Callable[[str], None] = lambda text: None,
    report: Callable[[SamplingProgress], None] = lambda progress: None,
    keep_prompts: Callable[[list[str]], object] = lambda texts: None,
) -> Iterator[tuple[int, Completion]]:
    """Load a model and sample a response to each chat, on a GPU if there is one.

    Yields each response with its chat's index, in the order in which they end. Each depends on its
    own seed; see `responses.py`.

    Args:
        name: a checkpoint folder, a GGUF file, or an id of the Hub.
        chats: a prompt each.
        settings: how the model answers.
        seeds: one for each chat.
        note: gets messages for the user.
        report: gets the progress of a batch.
        keep_prompts: gets the texts of all prompts, as the model is given them, before the first.
    """
    source = model_source(name, note=note)
    checkpoint = load_checkpoint(source, revision=settings.revision, dtype=settings.dtype)
    tokenizer = checkpoint.tokenizer
    check_options(tokenizer, settings.template_options)
    for remark in checkpoint.remarks:
        note(remark)
    if tokenizer.chat_template is None:
        note(
            f"{name} has no chat template: prompts are plain text, as in the training of a base "
            "model; prompt.style = instruct asks in training's words"
        )
    prompts = encode_chats(tokenizer, chats, settings.template_options)
    keep_prompts([render_chat(tokenizer, chat, settings.template_options) for chat in chats])
    check_fit(
        find_context(source, settings.revision),
        max(map(len, prompts)),
        {"sampling.max_tokens": settings.max_tokens},
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = checkpoint.model.to(torch.device(device)).eval()  # pyrefly: ignore[bad-argument-type]
    obstacle = find_obstacle(model)
    if obstacle is not None:
        note(
            f"{name} is sampled by transformers' generate, in batches that end with their longest "
            f"response: {obstacle}"
        )
    sampling = Sampling(
        settings.temperature,
        settings.top_p,
        settings.max_tokens,
        checkpoint.end_ids,
        checkpoint.pad_id,
        settings.top_k,
    )
    responses = sample_responses(
        model,
        prompts,
        sampling,
        draws=OwnDraws(seeds, settings.max_tokens),
        batch_size=settings.batch_size,
        in_slots=obstacle is None,
        report=report,
    )
    try:
        for index, ids in responses:
            (text,) = tokenizer.batch_decode([ids], skip_special_tokens=True)
            yield index, Completion(text, ids[-1] not in sampling.end_ids, len(ids))
    except torch.OutOfMemoryError as error:
        reason = str(error).splitlines()[0][:200]
        raise ConfigError(
            f"out of memory ({reason}); lower generation.batch_size (now {settings.batch_size}) or "
            f"sampling.max_tokens (now {settings.max_tokens}); type the same command again to "
            "resume"
        ) from None
