"""Whether a folder's files are a whole model that can be trained.

They are judged by their headers alone: no weight is read.
"""

import ast
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json
from microcoder.judge.core.syntax import parse_source

_LONGEST_HEADER_BYTES = 100 << 20
"""The format's own bound on the header of a safetensors file."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""Patterns of the files that hold weights."""
_COPY_AGAIN = "copy or download it again"
_PICKLES = (b"PK\x03\x04", b"\x80")
"""First bytes of a file that `torch.save` wrote, now and in its early versions."""
_WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""The files that transformers looks for, in this order; all others are found by an index alone."""
_OTHER_HEADS = (
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForPreTraining",
)
"""Ends of the names of architectures that do not predict the next token.

They are encoders, classifiers and reward models.
"""
_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
"""Ends of the names of a vocabulary's embedding, by family."""
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
_LFS_POINTER = b"version https://git-lfs"
_ADVICE = (
    "use a folder written by save_pretrained() of model and tokenizer, or another with --model.path"
)
_INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_PLAIN_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes of tokenizers that have only the special tokens that their files name."""
ABSOLUTE_POSITIONS = frozenset(("gpt2", "gpt_bigcode", "gpt_neo", "openai-gpt"))
"""Types of models in wide use that count positions from the first column, padding included.

GPT-2 is one, StarCoder 1 another.
"""


def check_files(folder: Path) -> None:
    """Raise DataError unless a folder's files hold together.

    Kind of model, shards, sizes, tokenizer and end token are looked at.
    """
    fault = next(_find_faults(folder), None)
    if fault is not None:
        raise DataError(f"checkpoint folder {folder}: {fault}")


def _find_faults(folder: Path) -> Iterator[str]:
    """Yield the faults of a folder's files; a fault that would hide others comes first."""
    for file in sorted(folder.iterdir()):
        # The Hub's cache is made of links; copied without their targets they hang.
        if file.is_symlink() and not file.exists():
            yield f"{file.name} is a link to {file.readlink()}, which is not there; {_COPY_AGAIN}"
    config = read_object(folder / "config.json")
    yield from _find_kind_faults(config)
    yield from _find_weight_faults(folder, config)
    yield from _find_tokenizer_faults(folder, config)
    yield from _find_end_faults(folder, config)


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a model, empty without the file.

    DataError if the file holds no object.
    """
    if not path.exists():
        return {}
    if path.is_dir():
        raise DataError(f"model's file {path} is a folder; {_ADVICE}")
    try:
        content: object = read_json(path, what="model's file")
    except DataError as error:
        raise DataError(f"{error}; {_COPY_AGAIN}") from None
    if not isinstance(content, dict):
        raise DataError(f"model's file {path} holds no object; {_ADVICE}")
    return content


def _find_kind_faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a model does not predict the next token."""
    kind = config.get("model_type")
    if not isinstance(kind, str):
        yield f"config.json names no model_type, so nobody knows what the weights are; {_ADVICE}"
        return
    known = list_causal_types()
    if known is not None and kind not in known:
        # Such code would run with all rights of the user.
        own = ""
        if config.get("auto_map"):
            own = "; code of its own is not run"
        yield (
            f"model_type {kind!r} of config.json is no language model that the installed "
            f"transformers knows{own}; use another model, or another version of transformers"
        )
    names = config.get("architectures")
    if _has_other_heads(names):
        yield (
            f"config.json says {names[0]}, which does not predict the next token; use a language "
            "model (...ForCausalLM)"
        )


def _has_other_heads(architectures: object) -> TypeGuard[list[Any]]:
    """Return whether architectures are named, and none of them predicts the next token."""
    if not isinstance(architectures, list) or not architectures:
        return False
    return all(str(architecture).endswith(_OTHER_HEADS) for architecture in architectures)


@cache
def list_causal_types() -> frozenset[str] | None:
    """Return the types of models that transformers can load for text; None if it is not installed.

    Read from its source: to import it takes seconds, which a dry run should not.
    """
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return None
    source = Path(next(iter(spec.submodule_search_locations)), "models", "auto", "modeling_auto.py")
    if not source.exists():
        return None
    # A table of (type, class) pairs, in an OrderedDict.
    for statement in parse_source(source.read_text(encoding="utf-8")).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name) and target.id == "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES":
            pairs = ast.literal_eval(statement.value.args[0])
            return frozenset(kind for kind, _ in pairs)
    return None


def _find_weight_faults(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of the files of weights, up to the first damaged file."""
    if not any((folder / name).exists() for name in _WEIGHT_FILES):
        yield f"none of its weights is called {', '.join(_WEIGHT_FILES)}; {_ADVICE}"
    # Of a model in several files the index says which.
    for name in _INDICES:
        yield from _find_missing_shards(folder, name)
    tensors: dict[str, dict[str, Sequence[int]]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        fault = _find_file_fault(file)
        if fault is not None:
            yield fault
            return
        tensors[file.name] = _read_shapes(file)
    for file in sorted(folder.glob("pytorch_model*.bin")):
        fault = _find_pickle_fault(file)
        if fault is not None:
            yield fault
    yield from _find_index_faults(folder, tensors)
    shapes: dict[str, Sequence[int]] = {}
    for of_file in tensors.values():
        shapes |= of_file
    yield from _find_shape_faults(config, shapes)


def _find_missing_shards(folder: Path, index: str) -> Iterator[str]:
    """Yield the files of weights that an index lists and the folder lacks."""
    shards = read_object(folder / index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        if (folder / index).exists():
            yield f"{index} names no file (no `weight_map`); {_COPY_AGAIN}"
        return
    named = {str(file) for file in shards.values()}
    missing = sorted(file for file in named if not (folder / file).exists())
    if missing:
        yield (
            f"{len(missing)} of the files that {index} names are missing (first: {missing[0]}); "
            "copy or download them"
        )


def _find_index_faults(
    folder: Path, tensors: Mapping[str, Mapping[str, Sequence[int]]]
) -> Iterator[str]:
    """Yield the weights that an index places in a file without them, like the index of another
    model."""
    shards = read_object(folder / _INDICES[0]).get("weight_map")
    if not isinstance(shards, dict):
        return
    lost = [name for name, file in shards.items() if name not in tensors.get(str(file), {})]
    if lost:
        yield (
            f"{len(lost)} of the weights that {_INDICES[0]} names are not in their file (first: "
            f"{lost[0]}, in {shards[lost[0]]}); {_COPY_AGAIN}"
        )


def _find_shape_faults(
    config: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """Yield where the weights do not have the shapes that config.json describes."""
    if not shapes or config.get("quantization_config"):
        # Packed weights have shapes of their own.
        return
    text = _text_config(config)
    embeddings = [shape for name, shape in shapes.items() if name.endswith(_EMBEDDINGS)]
    vocabulary = text.get("vocab_size")
    # The width has other names in older configs, so any number of config.json will do.
    widths = {value for value in text.values() if isinstance(value, int)}
    if isinstance(vocabulary, int) and embeddings:
        fits = [shape[0] == vocabulary and shape[-1] in widths for shape in embeddings]
        if not any(fits):
            wanted = (
                f"{vocabulary:,} tokens (vocab_size) of {text.get('hidden_size')} numbers "
                "(hidden_size)"
            )
            sizes = " x ".join(f"{size:,}" for size in embeddings[0])
            yield (
                f"config.json says {wanted}, the embedding has {sizes}: it is another model's; "
                f"{_COPY_AGAIN}"
            )
    numbers = []
    for match in map(_LAYER.search, shapes):
        if match is not None:
            numbers.append(int(match.group(1)))
    # Counted from 0.
    num_layers = max(numbers, default=-1) + 1
    wanted_layers = text.get("num_hidden_layers", text.get("n_layer"))
    if isinstance(wanted_layers, int) and 0 < num_layers < wanted_layers:
        yield (
            f"config.json says {wanted_layers} layers, the weights are of {num_layers}: "
            f"files are missing, or another model's; {_COPY_AGAIN}"
        )


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of config.json that describes the language model.

    For most models that is all of it; models of several parts have one part for language.
    """
    text = config.get("text_config")
    return text if isinstance(text, Mapping) else config


def _find_pickle_fault(file: Path) -> str | None:
    """Return what is wrong with a file of `torch.save`, by its first bytes; None if nothing is."""
    if file.stat().st_size == 0:
        return f"{file.name} is empty; {_COPY_AGAIN}"
    if _is_pointer(file):
        return _explain_pointer(file)
    with file.open("rb") as opened:
        begin = opened.read(4)
    if not begin.startswith(_PICKLES):
        return f"{file.name} is no file of torch's; {_COPY_AGAIN}"
    return None


def _is_pointer(file: Path) -> bool:
    """Return whether a file is only a pointer: Git LFS did not fetch the file itself."""
    with file.open("rb") as opened:
        return opened.read(len(_LFS_POINTER)) == _LFS_POINTER


def _explain_pointer(file: Path) -> str:
    return f"{file.name} is a pointer of Git LFS, not the file; type `git lfs pull` in the folder"


def _find_file_fault(file: Path) -> str | None:
    """Return what is wrong with a safetensors file by its size; None if nothing is.

    The header says which size it should be.
    """
    size = file.stat().st_size
    if size == 0:
        return f"{file.name} is empty (0 bytes); {_COPY_AGAIN}"
    if _is_pointer(file):
        return _explain_pointer(file)
    try:
        length, tensors = _read_header(file)
        ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return f"{file.name} is no safetensors file; {_COPY_AGAIN}"
    # Eight bytes for the header's length, the header, and the tensors.
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        return (
            f"{file.name} has {size:,} bytes, its header says {expected:,}: it is cut short or "
            f"damaged; {_COPY_AGAIN}"
        )
    return None


def _read_header(file: Path) -> tuple[int, dict[str, Any]]:
    """Return the length of a safetensors file's header, and what it says of each tensor.

    ValueError if the file has no such header.
    """
    with file.open("rb") as opened:
        prefix = opened.read(8)
        if len(prefix) < 8:
            raise ValueError("no length of a header")
        (length,) = struct.unpack("<Q", prefix)
        # A length beyond the bound is that of another format: nothing so long is read.
        header = opened.read(length) if length <= _LONGEST_HEADER_BYTES else b""
    tensors = json.loads(header)
    tensors.pop("__metadata__", None)
    return length, tensors


def _read_shapes(file: Path) -> dict[str, Sequence[int]]:
    """Return the shape of each tensor in a whole safetensors file."""
    _, tensors = _read_header(file)
    return {name: tensor["shape"] for name, tensor in tensors.items()}


def _find_tokenizer_faults(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    file = folder / "tokenizer.json"
    if not file.exists():
        return
    if file.stat().st_size == 0:
        yield f"tokenizer.json is empty (0 bytes); {_ADVICE}"
        return
    if _is_pointer(file):
        yield _explain_pointer(file)
        return
    model = read_object(file).get("model")
    if not isinstance(model, dict):
        yield f"tokenizer.json holds no tokenizer (no `model`); {_ADVICE}"
        return
    vocabulary = model.get("vocab")
    if not vocabulary:
        yield f"tokenizer.json holds no vocabulary (`model.vocab`); {_ADVICE}"
        return
    # Of Unigram it is a list, in the order of the tokens.
    largest = len(vocabulary) - 1
    if isinstance(vocabulary, dict):
        largest = max(vocabulary.values())
    # The embedding has a row for each token, and sometimes more.
    size = _text_config(config).get("vocab_size")
    if isinstance(size, int) and largest >= size:
        yield (
            f"tokenizer.json has tokens up to number {largest:,}, the model has {size:,} "
            f"(vocab_size of config.json): it is another model's tokenizer; {_ADVICE}"
        )


def _find_end_faults(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield why no response of a model would end: no file names an end token that the model has."""
    what_to_do = "name one as eos_token_id in generation_config.json"
    if not names_end_token(folder, config):
        yield f"no file names an end token, so that no response would ever end; {what_to_do}"
        return
    size = _text_config(config).get("vocab_size")
    ends = read_object(folder / "generation_config.json").get("eos_token_id")
    if ends is None:
        return
    numbers = ends if isinstance(ends, list) else [ends]
    if not all(isinstance(number, int) for number in numbers):
        yield (
            f"eos_token_id of generation_config.json is {ends!r}: use the number of a token, or "
            "several in a list"
        )
        return
    if not numbers or not isinstance(size, int):
        return
    if _tokenizer_names_end(folder):
        return
    if not any(0 <= number < size for number in numbers):
        yield (
            f"eos_token_id of generation_config.json is {ends}, and the model has tokens 0 to "
            f"{size - 1:,}: no response would ever end; {what_to_do}"
        )


def names_end_token(folder: Path, config: Mapping[str, Any]) -> bool:
    """Return whether a checkpoint's files name a token that ends a response."""
    named = [
        read_object(folder / "generation_config.json").get("eos_token_id"),
        config.get("eos_token_id"),
        _text_config(config).get("eos_token_id"),
    ]
    if any(value is not None and value != [] for value in named):
        return True
    return _tokenizer_names_end(folder)


def _tokenizer_names_end(folder: Path) -> bool:
    """Return whether a tokenizer's files name an end token, or need not."""
    settings = read_object(folder / "tokenizer_config.json")
    if settings.get("eos_token"):
        return True
    if read_object(folder / "special_tokens_map.json").get("eos_token"):
        return True
    # Other classes of tokenizers know an end token without such an entry.
    return settings.get("tokenizer_class") not in _PLAIN_TOKENIZERS


def find_position_fault(config: Mapping[str, Any], model: str) -> str | None:
    """Return why a model whose positions are learned cannot be trained, by its type.

    None if it can.
    """
    kind = config.get("model_type")
    if kind not in ABSOLUTE_POSITIONS:
        return None
    return (
        f"model {model} ({kind}) counts positions from the first column, padding included: "
        "training would score responses wrongly; use a model with rotary positions, such as Qwen, "
        "Llama or SmolLM"
    )
