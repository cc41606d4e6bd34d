"""Whether a folder's files are a whole model that can be trained, by their headers alone: no weight is read."""

import ast
import json
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json
from microcoder.judge.core.syntax import parse_source

_LONGEST_HEADER_BYTES = 100 << 20
"""The format's own bound on the header of a safetensors file."""
_LFS_POINTER = b"version https://git-lfs"
_ADVICE = (
    "use a folder written by save_pretrained() of model and tokenizer, or another with --model.path"
)
_INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_PLAIN_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes of tokenizers that have only the special tokens that their files name."""
ABSOLUTE_POSITIONS = frozenset(("gpt2", "gpt_bigcode", "gpt_neo", "openai-gpt"))
"""Types of models in wide use that count positions from the first column, padding included: GPT-2, StarCoder 1."""


def check_files(folder: Path) -> None:
    """Raise DataError unless a folder's files hold together: kind of model, shards, sizes, tokenizer, end token."""
    fault = next(_find_faults(folder), None)
    if fault is not None:
        raise DataError(f"checkpoint folder {folder}: {fault}")


def _find_faults(folder: Path) -> Iterator[str]:
    config = read_object(folder / "config.json")
    yield from _find_kind_faults(config)
    yield from _find_weight_faults(folder)
    yield from _find_tokenizer_faults(folder)
    if not names_end_token(folder, config):
        yield (
            "no file names an end token, so that no response would ever end; name one as eos_token_id in "
            "generation_config.json"
        )


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a model, empty without the file; DataError if it holds none."""
    if not path.exists():
        return {}
    found: object = read_json(path, what="model's file")
    if not isinstance(found, dict):
        raise DataError(f"model's file {path} holds no object; {_ADVICE}")
    return found


def _find_kind_faults(config: Mapping[str, Any]) -> Iterator[str]:
    kind = config.get("model_type")
    if not isinstance(kind, str):
        yield f"config.json names no model_type, so nobody knows what the weights are; {_ADVICE}"
        return
    known = list_causal_types()
    if known is not None and kind not in known:
        own = "; code of its own is not run" if config.get("auto_map") else ""
        yield (
            f"model_type {kind!r} of config.json is no language model that the installed transformers knows{own}; "
            "use another model, or another version of transformers"
        )


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
    for statement in parse_source(source.read_text(encoding="utf-8")).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name) and target.id == "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES":
            pairs = ast.literal_eval(statement.value.args[0])
            return frozenset(kind for kind, _ in pairs)
    return None


def _find_weight_faults(folder: Path) -> Iterator[str]:
    for name in _INDICES:
        shards = read_object(folder / name).get("weight_map")
        if isinstance(shards, dict):
            missing = sorted(
                {str(file) for file in shards.values() if not (folder / file).exists()}
            )
            if missing:
                yield (
                    f"{len(missing)} of the files that {name} names are missing (first: {missing[0]}); copy or "
                    "download them"
                )
    for file in sorted(folder.glob("*.safetensors")):
        yield from _find_size_fault(file)
    for file in sorted(folder.glob("pytorch_model*.bin")):
        if file.stat().st_size == 0:
            yield f"{file.name} is empty; copy or download it again"
        elif _is_pointer(file):
            yield _explain_pointer(file)


def _is_pointer(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_LFS_POINTER)) == _LFS_POINTER


def _explain_pointer(file: Path) -> str:
    return f"{file.name} is a pointer of Git LFS, not the file; type `git lfs pull` in the folder"


def _find_size_fault(file: Path) -> Iterator[str]:
    """Yield what is wrong with the size of a safetensors file: its header says how long it is."""
    size = file.stat().st_size
    if size == 0:
        yield f"{file.name} is empty (0 bytes); copy or download it again"
        return
    if _is_pointer(file):
        yield _explain_pointer(file)
        return
    with file.open("rb") as opened:
        prefix = opened.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else _LONGEST_HEADER_BYTES + 1
        header = opened.read(length) if length <= _LONGEST_HEADER_BYTES else b""
    try:
        tensors = json.loads(header)
        ends = [
            tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"
        ]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        yield f"{file.name} is no safetensors file; copy or download it again"
        return
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        yield (
            f"{file.name} has {size:,} bytes, its header says {expected:,}: it is cut short or damaged; copy or "
            "download it again"
        )


def _find_tokenizer_faults(folder: Path) -> Iterator[str]:
    file = folder / "tokenizer.json"
    if not file.exists():
        return
    if file.stat().st_size == 0:
        yield f"tokenizer.json is empty (0 bytes); {_ADVICE}"
        return
    if _is_pointer(file):
        yield _explain_pointer(file)
        return
    if not isinstance(read_object(file).get("model"), dict):
        yield f"tokenizer.json holds no tokenizer (no `model`); {_ADVICE}"


def names_end_token(folder: Path, config: Mapping[str, Any]) -> bool:
    """Return whether a checkpoint's files name a token that ends a response."""
    text = config.get("text_config")
    named = [
        read_object(folder / "generation_config.json").get("eos_token_id"),
        config.get("eos_token_id"),
        text.get("eos_token_id") if isinstance(text, Mapping) else None,
        read_object(folder / "tokenizer_config.json").get("eos_token"),
        read_object(folder / "special_tokens_map.json").get("eos_token"),
    ]
    if any(value is not None and value != [] for value in named):
        return True
    # Other classes of tokenizers know an end token without such an entry.
    own_class = read_object(folder / "tokenizer_config.json").get("tokenizer_class")
    return own_class not in _PLAIN_TOKENIZERS


def find_position_fault(config: Mapping[str, Any], model: str) -> str | None:
    """Return why a model whose positions are learned cannot be trained, by its type; None if it can."""
    kind = config.get("model_type")
    if kind not in ABSOLUTE_POSITIONS:
        return None
    return (
        f"model {model} ({kind}) counts positions from the first column, padding included: training would score "
        "responses wrongly; use a model with rotary positions, such as Qwen, Llama or SmolLM"
    )
