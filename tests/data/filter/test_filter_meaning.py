"""A sentence encoder, made here, sees that words in another language mean the same."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from microcoder.data import Candidate
from microcoder.data.filter import ContaminationSettings, build_index, find_hits
from microcoder.data.filter.contamination import MeaningSettings
from microcoder.judge.core.errors import ConfigError, DataError

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

MEANINGS = (
    ("sum", "total", "somme"),
    ("numbers", "integers", "entiers"),
    ("longest", "longueur"),
    ("word", "mot"),
    ("of", "the", "two", "la", "de", "deux", "find"),
)


def number(value: int) -> bytes:
    """A varint of protobuf."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def field(place: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return number(place << 3) + number(value)
    content = value.encode() if isinstance(value, str) else value
    return number(place << 3 | 2) + number(len(content)) + content


def write_encoder(folder: Path) -> Path:
    """Write an ONNX model that looks up a vector for each token, the same for words of one meaning."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [word for group in MEANINGS for word in group]
    vocabulary = {"?": 0, **{word: place for place, word in enumerate(words, 1)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))

    size = len(MEANINGS)
    rows = [[0.01] * size]
    # The last meaning are words that say little.
    rows += [
        [(0.2 if at == size - 1 else 1.0) * (at == here) for here in range(size)]
        for at, group in enumerate(MEANINGS)
        for _ in group
    ]
    flat = struct.pack(f"<{len(rows) * size}f", *(value for row in rows for value in row))
    table = field(1, len(rows)) + field(1, size) + field(2, 1) + field(8, "table") + field(9, flat)
    gather = field(1, "table") + field(1, "input_ids") + field(2, "vectors") + field(4, "Gather")

    def tensor(name: str, kind: int, *axes: str) -> bytes:
        shape = b"".join(field(1, field(2, axis)) for axis in axes)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    graph = field(1, gather) + field(2, "encoder") + field(5, table)
    graph += field(11, tensor("input_ids", 7, "texts", "tokens"))
    graph += field(12, tensor("vectors", 1, "texts", "tokens", "size"))
    model = field(1, 8) + field(7, graph) + field(8, field(2, 13))
    (folder / "model.onnx").write_bytes(model)
    return folder


def problem(name: str, statement: str) -> Candidate:
    return Candidate(id=name, dataset=name.split("/")[0], statement=statement)


BENCHMARK = [problem("bench/sum", "find the sum of two numbers"), problem("bench/word", "find the longest word")]


def test_a_translation_is_found_by_what_it_means_and_another_task_is_not(tmp_path: Path) -> None:
    meaning = MeaningSettings(model=write_encoder(tmp_path), min_similarity=0.9)
    index = build_index(BENCHMARK, ContaminationSettings(meaning=meaning))
    (hit,) = find_hits(problem("mine/1", "la somme de deux entiers"), index)
    assert (hit.problem_id, hit.by) == ("bench/sum", "meaning")
    assert hit.detail == f"similarity {hit.score:.3f}, above 0.900"
    assert [hit.problem_id for hit in find_hits(problem("mine/2", "longueur mot"), index)] == ["bench/word"]
    assert not find_hits(problem("mine/3", "the sum of the longest word"), index)
    assert not find_hits(problem("mine/1", "la somme de deux entiers"), build_index(BENCHMARK))


def test_the_bar_is_what_different_problems_stay_below(tmp_path: Path) -> None:
    meaning = MeaningSettings(model=write_encoder(tmp_path))
    with pytest.raises(DataError, match="2 benchmark problems are too few"):
        build_index(BENCHMARK, ContaminationSettings(meaning=meaning))
    many = [
        problem(f"bench/{one}/{two}/{three}", f"{'sum ' * one}{'numbers ' * two}{'word ' * three}")
        for one in range(1, 5)
        for two in range(1, 5)
        for three in range(1, 5)
    ]
    index = build_index(many, ContaminationSettings(meaning=meaning.model_copy(update={"quantile": 0.5}))).meaning
    assert index is not None
    others = index.vectors @ index.vectors.T - 2 * np.eye(len(many))
    # 1 1 1 and 2 2 2 mean the same, so the most similar ones of all set no bar of 0.5.
    assert 0.4 <= (others.max(axis=1) < index.bar).mean() <= 0.6
    assert index.bar < others.max()


def test_a_folder_without_an_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.json and model\.onnx"):
        build_index(BENCHMARK, ContaminationSettings(meaning=MeaningSettings(model=tmp_path)))
