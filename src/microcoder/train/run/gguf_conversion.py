"""A GGUF file made into a checkpoint folder.

transformers reads the file: it computes each weight in float32 and builds the tokenizer. That takes
a minute for half a billion weights, so the folder is kept, and all that follows sees an ordinary
checkpoint. What transformers reads otherwise than the model was trained is put right here: the
special tokens, and how text is split before it is cut into tokens.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gguf
import torch
import transformers
from tokenizers import Regex, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    modeling_gguf_pytorch_utils,
)

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import new_folder
from microcoder.judge.core.machine import is_disk_full, lock_file
from microcoder.train.rollouts import find_closing_token
from microcoder.train.run.gguf_header import Header, read_header

CACHE = Path(".cache/microcoder")
"""Folder of built checkpoints, in the working folder like the runs."""
_FORM = "1"
"""Changes with this code, so that a folder of an earlier version is not used."""
_LINK = "model.gguf"
_SPECIAL_TOKENS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""Special token of a tokenizer -> its name in GGUF."""
_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Llama 3 splits text: by its own tokenizer.json."""


def convert_gguf(file: Path, *, note: Callable[[str], None], cache: Path = CACHE) -> Path:
    """Return the checkpoint folder of a GGUF file, made unless `cache` holds it already.

    The folder is there whole or not at all; other processes that need it wait.

    Args:
        file: a GGUF file that `check_gguf` has passed.
        note: gets messages for the user.
        cache: where the folder is, or will be.

    Raises:
        DataError: transformers cannot read the file, or no token ends a response.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"gguf-{_digest(file)}"
    with (cache / f".{folder.name}.lock").open("w") as lock:
        lock_file(lock, waits=True)
        if not folder.exists():
            note(f"{file.name} is made into a checkpoint folder in float32, once: {folder}")
            with new_folder(folder) as partial:
                _convert(file, partial, note)
    return folder


def _digest(file: Path) -> str:
    """Return a digest of all that decides the folder: the file, and what reads it."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256")
    digest.update(f"{_FORM} {transformers.__version__} {version('gguf')}".encode())
    return digest.hexdigest()[:16]


def _convert(file: Path, folder: Path, note: Callable[[str], None]) -> None:
    """Write a GGUF file's model and tokenizer as a checkpoint folder."""
    header = read_header(file)
    model, tokenizer = _load(file, header)
    _settle_tokenizer(tokenizer, header)
    ends = _find_ends(tokenizer, header, file)
    named = header.find_token("eos")
    if named is not None and named != ends[0]:
        note(
            f"{file.name} names {header.tokens[named]!r} as its end token, and its chat template "
            f"closes an answer with {header.tokens[ends[0]]!r}: both end a response"
        )
    tokenizer.eos_token = header.tokens[ends[0]]
    model.config.eos_token_id = ends[0]
    model.config.bos_token_id = tokenizer.bos_token_id
    model.config.pad_token_id = tokenizer.pad_token_id
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=ends, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _load(file: Path, header: Header) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return the model and the tokenizer as transformers reads them from a GGUF file."""
    # In a folder of its own: files beside it may describe another model.
    with TemporaryDirectory() as folder:
        Path(folder, _LINK).symlink_to(os.path.abspath(file))
        try:
            with _reading_once():
                tokenizer, model, report = _read(folder, header)
        except Exception as error:  # foreign files fail in many ways
            if is_disk_full(error):
                raise
            reason = str(error).strip().split("\n")[0]
            raise DataError(
                f"model {file} cannot be read by transformers: {type(error).__name__}: {reason}; "
                "use the safetensors files that it was made of"
            ) from None
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise DataError(
            f"model {file} has a tokenizer of a kind that is not read from GGUF; use the "
            "safetensors files that it was made of"
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise DataError(
            f"model {file} lacks {len(missing)} weights of its architecture (first: {missing[0]}); "
            "use the safetensors files that it was made of"
        )
    return model, tokenizer


def _read(folder: str, header: Header) -> tuple[object, PreTrainedModel, dict[str, Any]]:
    """Return tokenizer and model of a folder's GGUF file, and transformers' report on weights."""
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=_LINK)
    config = AutoConfig.from_pretrained(folder, gguf_file=_LINK)
    # One beyond the vocabulary would be refused; those that count are set later.
    config.pad_token_id = header.find_token("padding")
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, config=config, gguf_file=_LINK, dtype=torch.float32, output_loading_info=True
    )
    return tokenizer, model, report


@contextmanager
def _reading_once() -> Iterator[None]:
    """Within the body, transformers reads a GGUF file's header once, and shows no bar.

    It would read it five times, ten seconds each for a vocabulary of 150,000 tokens.
    """
    package: Any = gguf
    module: Any = modeling_gguf_pytorch_utils
    reader = package.GGUFReader
    bar = module.tqdm
    package.GGUFReader = cache(reader)
    module.tqdm = lambda items, **_: items
    try:
        yield
    finally:
        package.GGUFReader = reader
        module.tqdm = bar


def _settle_tokenizer(tokenizer: PreTrainedTokenizerFast, header: Header) -> None:
    """Give a tokenizer the special tokens and the split of text that its file names."""
    # transformers takes some of them for others.
    for kind, name in _SPECIAL_TOKENS.items():
        number = header.find_token(name)
        token = None if number is None else header.tokens[number]
        setattr(tokenizer, f"{kind}_token", token)
    control = [header.tokens[number] for number in header.control_ids]
    tokenizer.backend_tokenizer.add_special_tokens(control)
    split = _make_split(header.entries.get("tokenizer.ggml.pre"))
    # A class of a family splits text in its own way, also when it is loaded again.
    is_plain = type(tokenizer).__name__ in ("TokenizersBackend", "PreTrainedTokenizerFast")
    if split is not None and is_plain:
        tokenizer.backend_tokenizer.pre_tokenizer = split


def _make_split(name: str | None) -> pre_tokenizers.PreTokenizer | None:
    """Return how text is split before it is cut into tokens, by GGUF's name for it.

    None for names whose split is transformers' own choice.
    """
    if name == "smollm":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    if name == "llama-bpe":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_LLAMA_3), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    return None


def _find_ends(tokenizer: PreTrainedTokenizerFast, header: Header, file: Path) -> list[int]:
    """Return the tokens that end a response: the chat template's own first.

    DataError if there is none.
    """
    named = header.find_token("eos")
    ends = [] if named is None else [named]
    closing = find_closing_token(tokenizer, header.control_ids)
    if closing is not None and closing not in ends:
        ends.insert(0, closing)
    if not ends:
        raise DataError(
            f"model {file} names no end token, and its chat template closes an answer with none: "
            "no response would ever end; use the safetensors files that it was made of"
        )
    return ends
