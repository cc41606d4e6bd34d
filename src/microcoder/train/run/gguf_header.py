"""What a GGUF file says of its model.

GGUF is llama.cpp's format: one file with the weights, the tokenizer and the model's settings. Its
header is read here, by the format's specification (github.com/ggml-org/ggml, docs/gguf.md). The
package gguf reads it too, and takes ten seconds for a vocabulary of 150,000 tokens.
"""

import ast
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.syntax import parse_source
from microcoder.train.run.model_files import WEIGHTS, list_causal_types

SUFFIX = ".gguf"
_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
"""Versions of the format that transformers reads."""
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""Type of a value -> its form in `struct`."""
_STRING = 8
_ARRAY = 9
_DEFAULT_ALIGNMENT = 32
_CONTROL = 3
"""Type of a token that is no text, such as the end of a turn."""
_OTHER_NAMES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "gpt-oss": "gpt_oss",
    "minimax-m2": "minimax_m2",
}
"""Architecture of a file -> its name in transformers, where they differ."""
_COPY_AGAIN = "copy or download it again"
_USE_SAFETENSORS = "use the safetensors files that it was made of"


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a GGUF file."""

    entries: Mapping[str, Any]
    """Settings of model and tokenizer, by the format's keys."""
    tensor_names: frozenset[str]
    num_bytes: int
    """Size that the whole file should have."""

    @property
    def architecture(self) -> str:
        """The model's architecture by llama.cpp's name, such as "llama"."""
        return str(self.entries.get("general.architecture"))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary, by number; empty without a tokenizer."""
        return self.entries.get("tokenizer.ggml.tokens", ())

    @property
    def chat_template(self) -> str:
        """The chat template; empty without one."""
        return self.entries.get("tokenizer.chat_template", "")

    @property
    def control_ids(self) -> list[int]:
        """Numbers of the tokens that are no text."""
        kinds = self.entries.get("tokenizer.ggml.token_type", ())
        return [number for number, kind in enumerate(kinds) if kind == _CONTROL]

    def find_token(self, kind: str) -> int | None:
        """Return the number of a special token, such as "eos"; None without a usable one."""
        number = self.entries.get(f"tokenizer.ggml.{kind}_token_id")
        is_token = isinstance(number, int) and 0 <= number < len(self.tokens)
        return number if is_token else None


def find_gguf(path: Path) -> Path | None:
    """Return the GGUF file that a model's path means: itself, or the only one of its folder.

    None for other models, such as a folder that has weights in another format. DataError if the
    folder has several.
    """
    if path.suffix == SUFFIX:
        return path
    if not path.is_dir() or any(any(path.glob(pattern)) for pattern in WEIGHTS):
        return None
    files = sorted(path.glob(f"*{SUFFIX}"))
    if not files:
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise DataError(
            f"folder {path} has {len(files)} GGUF files ({names}); name one of them, such as "
            f"{files[0]}"
        )
    return files[0]


def check_gguf(file: Path) -> None:
    """Raise DataError unless a GGUF file is whole, and a language model that transformers reads."""
    if find_spec("gguf") is None:
        raise DataError(
            f"model {file} is GGUF, which needs the package gguf; type: pip install gguf, or "
            f"{how_to_install('train')}"
        )
    if not file.is_file():
        raise DataError(f"model {file} is no file here; check the path")
    header = read_header(file)
    fault = _find_fault(header, file.stat().st_size)
    if fault is not None:
        raise DataError(f"model {file}: {fault}")


def _find_fault(header: Header, size: int) -> str | None:
    """Return what is wrong with a GGUF file by its header; None if nothing is."""
    entries = header.entries
    # The pieces name their number.
    if entries.get("split.count", 1) > 1:
        return (
            f"it is one of {entries['split.count']} pieces; join them: llama-gguf-split --merge "
            "FIRST_PIECE WHOLE.gguf"
        )
    if size < header.num_bytes:
        return (
            f"it has {size:,} bytes, its header says {header.num_bytes:,}: it is cut short; "
            f"{_COPY_AGAIN}"
        )
    architecture = header.architecture
    known = _read_names()
    name = _OTHER_NAMES.get(architecture, architecture)
    if known is not None and name not in known and architecture not in known:
        return (
            f"its architecture {architecture!r} is none that the installed transformers reads from "
            f"GGUF; {_USE_SAFETENSORS}"
        )
    causal = list_causal_types()
    if causal is not None and name not in causal:
        return f"its architecture {architecture!r} is no language model; use another model"
    if not header.tokens:
        return f"it holds no tokenizer; {_USE_SAFETENSORS}"
    if header.find_token("eos") is None and not header.chat_template:
        return (
            "it names no end token and has no chat template, so that no response would ever end; "
            f"{_USE_SAFETENSORS}"
        )
    return None


def describe_config(file: Path) -> dict[str, Any]:
    """Return what would stand in config.json of a GGUF file's model.

    Only dimensions and tokens; empty if transformers is not installed, whose names they have.
    """
    header = read_header(file)
    architecture = header.architecture
    name = _OTHER_NAMES.get(architecture, architecture)
    names_of = _read_names() or {}
    names = names_of.get(name) or names_of.get(architecture)
    if names is None:
        return {}
    config: dict[str, Any] = {
        "model_type": name,
        "vocab_size": len(header.tokens),
        # With one matrix for both, the file has the input's alone.
        "tie_word_embeddings": "output.weight" not in header.tensor_names,
        "eos_token_id": header.find_token("eos"),
    }
    for key, own_name in names.items():
        value = header.entries.get(f"{architecture}.{key}")
        if own_name and value is not None:
            config[own_name] = value
    return config


@cache
def _read_names() -> Mapping[str, Mapping[str, str | None]] | None:
    """Return transformers' names of GGUF's settings, by architecture; None if it does not say.

    Read from its source: to import it takes seconds.
    """
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return None
    source = Path(next(iter(spec.submodule_search_locations)), "integrations", "ggml.py")
    if not source.exists():
        return None
    for statement in parse_source(source.read_text(encoding="utf-8")).body:
        if not isinstance(statement, ast.Assign):
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name) and target.id == "GGUF_CONFIG_MAPPING":
            return ast.literal_eval(statement.value)
    return None


def read_header(file: Path) -> Header:
    """Return the header of a GGUF file; DataError if it is damaged or of another format."""
    state = file.stat()
    return _read_header(file, state.st_size, state.st_mtime_ns)


# A dry run asks several times. By size and time too: a file may be replaced.
@lru_cache(maxsize=4)
def _read_header(file: Path, size: int, changed_ns: int) -> Header:
    with file.open("rb") as opened:
        magic = opened.read(len(_MAGIC))
        if magic != _MAGIC:
            raise DataError(
                f"model {file} is no GGUF file (it begins with {magic!r}); {_COPY_AGAIN}"
            )
        try:
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _parse(_Reader(content, position=len(_MAGIC)))
        except (struct.error, IndexError, UnicodeDecodeError, KeyError, ValueError) as error:
            raise DataError(
                f"model {file} ({size:,} bytes) has a header that is cut short or damaged "
                f"({error}); {_COPY_AGAIN}"
            ) from None


class _Reader:
    """Reads values from the bytes of a GGUF file, one after the other."""

    def __init__(self, content: mmap.mmap, *, position: int) -> None:
        self._content = content
        self.position = position

    def number(self, form: str) -> int:
        """Return the next whole number, which has a form of `struct`."""
        (value,) = self._numbers(form, 1)
        return int(value)

    def _numbers(self, form: str, count: int) -> tuple[float, ...]:
        # A damaged count would ask for memory that is not there.
        if count > len(self._content):
            raise ValueError(f"{count} values in an array")
        format_ = f"<{count}{form}"
        values = struct.unpack_from(format_, self._content, self.position)
        self.position += struct.calcsize(format_)
        return values

    def text(self) -> str:
        """Return the next string."""
        length = self.number("Q")
        end = self.position + length
        if end > len(self._content):
            raise IndexError("a text beyond the end of the file")
        text = self._content[self.position : end].decode("utf-8")
        self.position = end
        return text

    def value(self) -> str | float | tuple[str, ...] | tuple[float, ...]:
        """Return the next value with its type before it; a tuple of an array."""
        kind = self.number("I")
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            (value,) = self._numbers(_SCALARS[kind], 1)
            return value
        kind = self.number("I")
        count = self.number("Q")
        if kind != _STRING:
            return self._numbers(_SCALARS[kind], count)
        texts = []
        for _ in range(count):
            texts.append(self.text())
        return tuple(texts)


def _parse(reader: _Reader) -> Header:
    """Return a header whose first bytes have been read."""
    version = reader.number("I")
    if version not in _VERSIONS:
        raise ValueError(f"version {version} of GGUF is none of {_VERSIONS}")
    num_tensors = reader.number("Q")
    num_entries = reader.number("Q")
    entries: dict[str, Any] = {}
    for _ in range(num_entries):
        key = reader.text()
        entries[key] = reader.value()
    names = set()
    tensors_bytes = 0
    for _ in range(num_tensors):
        names.add(reader.text())
        num_dimensions = reader.number("I")
        shape = [reader.number("Q") for _ in range(num_dimensions)]
        kind = reader.number("I")
        begin = reader.number("Q")
        tensors_bytes = max(tensors_bytes, begin + _count_bytes(kind, shape))
    alignment = entries.get("general.alignment", _DEFAULT_ALIGNMENT)
    # The tensors begin at the next multiple of it.
    begin = -(-reader.position // alignment) * alignment
    return Header(entries, frozenset(names), begin + tensors_bytes)


def _count_bytes(kind: int, shape: list[int]) -> int:
    """Return the bytes of a tensor; KeyError for a kind that the package gguf does not know."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    num_per_block, bytes_per_block = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    return prod(shape) // num_per_block * bytes_per_block
