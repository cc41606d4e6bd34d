"""Is a statement one of a benchmark's by what it means? By a sentence encoder, where the recipe gives one.

Any encoder that is published as ONNX will do, a multilingual one sees translations. How close two statements are that
mean different things depends on the encoder, so the benchmarks' own problems, which all differ, set the bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microcoder.data.clean.sections import split
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.installation import how_to_install

Vectors = NDArray[np.float32]
"""Shape (texts, dimensions); each row has length 1."""
_MODELS = ("model.onnx", "onnx/model.onnx")
_LEAST_PROBLEMS = 50
_ROWS_AT_ONCE = 512


class MeaningSettings(Config):
    """How statements are compared by what they mean; off by default."""

    model: Path | None = None
    """Folder with `tokenizer.json` and `model.onnx` (or `onnx/model.onnx`) of a sentence encoder; None: off."""
    prefix: str = ""
    """What the encoder wants before a text, such as `query: `."""
    max_tokens: int = Field(default=512, ge=8)
    """Of a statement, counted from its beginning."""
    quantile: float = Field(default=0.99, gt=0, lt=1)
    """The bar: this share of the benchmarks' problems is less similar to the nearest other one (our choice)."""
    min_similarity: float | None = Field(default=None, gt=0, le=1)
    """The bar itself, in place of `quantile`."""


class Encoder:
    """A sentence encoder on one core, so that the same text has the same bits in every process."""

    def __init__(self, settings: MeaningSettings) -> None:
        """Load it."""
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError:
            raise ConfigError(f"meaning.model needs onnxruntime; type: {how_to_install('meaning')}") from None
        assert settings.model is not None
        path = next((found for name in _MODELS if (found := settings.model / name).is_file()), None)
        if path is None or not (settings.model / "tokenizer.json").is_file():
            raise ConfigError(
                f"meaning.model = {str(settings.model)!r}; name a folder with tokenizer.json and {' or '.join(_MODELS)}"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = Tokenizer.from_file(str(settings.model / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(settings.max_tokens)
        self._prefix = settings.prefix

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text: the mean of its tokens', or what the encoder itself makes of them."""
        return np.stack([self._embed(text) for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)

    def _embed(self, text: str) -> NDArray[np.float32]:
        tokens = self._tokenizer.encode(self._prefix + text)
        known = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask, "token_type_ids": tokens.type_ids}
        given = {one.name: np.array([known[one.name]], dtype=np.int64) for one in self._session.get_inputs()}
        found = self._session.run(None, given)[0][0]
        vector = found.mean(axis=0) if found.ndim == 2 else found
        return (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class MeaningIndex:
    """The problems of benchmarks by what they mean."""

    encoder: Encoder
    ids: tuple[str, ...]
    vectors: Vectors
    bar: float
    """Similarity above which two statements mean the same."""

    def find(self, candidate: Candidate) -> tuple[str, float] | None:
        """Return the nearest problem and its similarity, where it is above the bar."""
        if not (text := _told(candidate)):
            return None
        similarities = self.vectors @ self.encoder.embed([text])[0]
        nearest = int(similarities.argmax())
        return (self.ids[nearest], float(similarities[nearest])) if similarities[nearest] > self.bar else None


def index_meaning(problems: Sequence[Candidate], settings: MeaningSettings) -> MeaningIndex | None:
    """Embed the problems of benchmarks; None where no encoder is given."""
    if settings.model is None:
        return None
    encoder = Encoder(settings)
    told = {problem.id: text for problem in problems if (text := _told(problem))}
    vectors, bar = encoder.embed(list(told.values())), settings.min_similarity
    if bar is None and len(told) < _LEAST_PROBLEMS:
        raise DataError(
            f"{len(told)} benchmark problems are too few to find how similar different problems are "
            f"({_LEAST_PROBLEMS} at least); set filter.contamination.meaning.min_similarity"
        )
    return MeaningIndex(encoder, tuple(told), vectors, _find_bar(vectors, settings.quantile) if bar is None else bar)


def _find_bar(vectors: Vectors, quantile: float) -> float:
    nearest = []
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        similarities = vectors[start : start + _ROWS_AT_ONCE] @ vectors.T
        similarities[np.arange(len(similarities)), np.arange(start, start + len(similarities))] = -1.0
        nearest.append(similarities.max(axis=1))
    return float(np.quantile(np.concatenate(nearest), quantile))


def _told(candidate: Candidate) -> str:
    """Return what is asked: examples and bounds are compared elsewhere."""
    sections = split(candidate.statement or candidate.statement_found)
    return "\n\n".join(text for text in (sections.statement, sections.input, sections.output) if text).strip()
