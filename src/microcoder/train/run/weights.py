"""Loading of Hugging Face checkpoints, with errors that say what is wrong."""

from __future__ import annotations

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.machine import is_disk_full
from microcoder.train.run.checkpoints import check_model_folder, model_folder


def silence_transformers() -> None:
    """Keep transformers' notes and progress bars out of our own display."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def model_source(name: str) -> str:
    """Return a folder's path or a hub id."""
    folder = model_folder(name)
    if folder is None:
        return name
    check_model_folder(folder)
    return str(folder)


def load_checkpoint(
    source: str, *, revision: str | None, dtype: str, attn_implementation: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load weights and tokenizer."""
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
    except Exception as error:  # foreign files fail in many ways: safetensors, tokenizers, pydantic, the hub
        if is_disk_full(error):
            raise
        reason = str(error).strip().split("\n")[0]
        if attn_implementation is not None and "attention" in str(error).lower():
            raise ConfigError(
                f'model.attn_implementation = "{attn_implementation}" is not available here: {reason}; use "sdpa", or '
                "leave it out"
            ) from None
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
        raise DataError(f"model {source!r} has no tokenizer; save one into its folder with save_pretrained()")
    return weights, tokenizer


def load_tokenizer(folder: str, *, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a checkpoint alone, from a folder or the hub."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, revision=revision, padding_side="left")
    except Exception as error:  # foreign files fail in many ways
        raise DataError(
            f"cannot load the tokenizer of {folder!r}: {type(error).__name__}: {str(error).splitlines()[0]}; "
            "save one into the folder with save_pretrained()"
        ) from None
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer
