"""A GGUF file as a model: what it is read as, and which files are refused."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer, check_model_folder
from microcoder.train.run.estimate import count_model_parameters
from microcoder.train.run.gguf_conversion import convert_gguf
from microcoder.train.run.gguf_header import read_header
from microcoder.train.run.preflight import find_faults, model_context, read_template
from microcoder.train.run.starter import Wishes, write_recipe
from microcoder.train.run.training import run_training
from microcoder.train.run.weights import GenerationSettings, load_checkpoint, respond
from tests.train.small_runs import SMALL
from tests.train.tiny_gguf import SPECIAL, TEMPLATE, write_gguf


@pytest.fixture
def gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A GGUF file, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tiny.gguf"
    write_gguf(file)
    return file


def plan(model: Path, **changes: str) -> TrainConfig:
    return load_config(TrainConfig, overrides={**SMALL, "model.path": str(model), **changes})


def test_weights_and_tokens_are_those_of_the_file(gguf: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    folder = convert_gguf(gguf, note=notes.append, cache=tmp_path / "cache")
    checkpoint = load_checkpoint(str(folder), revision=None, dtype="float32")
    expected = write_gguf(tmp_path / "again.gguf").state_dict()
    weights = checkpoint.model.state_dict()
    assert weights.keys() == expected.keys()
    for name, weight in weights.items():
        assert torch.equal(weight, expected[name]), name
    # The chat template's own end, and the file's.
    assert checkpoint.end_ids == [2, 0]
    assert checkpoint.tokenizer.eos_token == "<|im_end|>"
    assert checkpoint.tokenizer.bos_token == "<|im_start|>"
    assert "closes an answer with '<|im_end|>': both end a response" in notes[-1]
    # It is made once.
    again = convert_gguf(gguf, note=notes.append, cache=tmp_path / "cache")
    assert again == folder
    assert len(notes) == 2


def test_text_is_split_as_the_model_was_trained(gguf: Path, tmp_path: Path) -> None:
    folder = convert_gguf(gguf, note=lambda text: None, cache=tmp_path / "cache")
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    # SmolLM's digits stand alone, so that the spaces before one are a token.
    assert tokenizer.tokenize("  1") == ["ĠĠ", "1"]
    assert tokenizer.tokenize("  x") == ["Ġ", "Ġ", "x"]
    assert tokenizer.tokenize("a<|im_end|>b") == ["a", "<|im_end|>", "b"]
    ids = tokenizer("a<|im_start|>b")["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab"


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_dry_run_and_an_answer(gguf: Path, is_folder: bool) -> None:
    model = gguf.parent if is_folder else gguf
    config = plan(model)
    assert find_faults(config) == []
    context = model_context(config)
    assert context is not None
    assert context.tokens == 2048
    assert read_template(str(model)) == TEMPLATE
    expected = sum(weight.numel() for weight in write_gguf(gguf).parameters())
    assert count_model_parameters(config.model) == expected
    chats = [[{"role": "user", "content": "?"}]]
    settings = GenerationSettings(batch_size=1, temperature=0, top_p=1, max_tokens=4)
    ((_, answer),) = respond(str(model), chats, settings, seeds=[0])
    assert answer.num_tokens is not None
    assert 1 <= answer.num_tokens <= 4


def test_a_run_leaves_an_ordinary_folder(gguf: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    changes = {
        "num_steps": "1",
        "rollout.max_response_tokens": "4",
        "problems.num_train": "8",
        "problems.num_heldout": "2",
    }
    run_training(plan(gguf, **changes), run_directory=tmp_path / "run", observer=Observer())
    model = tmp_path / "run" / "model"
    check_model_folder(model)
    assert not list(model.glob("*.gguf"))
    assert load_checkpoint(str(model), revision=None, dtype="float32").end_ids == [2, 0]


def test_init_writes_a_recipe(gguf: Path, tmp_path: Path) -> None:
    problem = '{"id": "p%d", "statement": "Print %d.", "tests": [{"input": "", "output": "%d"}]}\n'
    lines = [problem % (number, number, number) for number in range(90)]
    (tmp_path / "train.jsonl").write_text("".join(lines[1:]))
    (tmp_path / "heldout.jsonl").write_text(lines[0])
    wishes = Wishes(model=str(gguf), problems="train.jsonl", heldout="heldout.jsonl", gpu="cpu")
    assert str(gguf) in write_recipe(wishes)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def cut_header(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (cut, r"tiny\.gguf: it has [\d,]+ bytes, its header says [\d,]+: it is cut short; copy"),
    "cut header": (cut_header, r"header that is cut short or damaged \(.+\); copy or download it"),
    "empty": (lambda file: file.write_bytes(b""), "is no GGUF file"),
    "page": (lambda file: file.write_text("<!DOCTYPE html>"), "is no GGUF file .it begins with"),
    "architecture": (
        lambda file: write_gguf(file, architecture="plamo"),
        "'plamo' is none that the installed transformers reads from GGUF; use the safetensors",
    ),
    "encoder": (lambda file: write_gguf(file, architecture="t5"), "is no language model"),
    "pieces": (lambda file: write_gguf(file, pieces=3), "one of 3 pieces; join them"),
    "no tokenizer": (lambda file: write_gguf(file, tokens=None), "it holds no tokenizer"),
    "no end": (lambda file: write_gguf(file, eos=None, template=None), "names no end token"),
    "several": (
        lambda file: write_gguf(file.with_name("other.gguf")),
        r"has 2 GGUF files \(other\.gguf, tiny\.gguf\); name one of them, such as .*other\.gguf",
    ),
    "gone": (lambda file: file.unlink(), "is no file here; check the path"),
}
"""What is done to a folder with a sound GGUF file, and what is said of it."""


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_file_that_cannot_be_used_is_refused_from_its_header(gguf: Path, kind: str) -> None:
    damage, message = DAMAGES[kind]
    damage(gguf)
    model = gguf.parent if kind == "several" else gguf
    with pytest.raises(DataError, match=message):
        check_model_folder(model)


def test_a_file_that_is_not_there_is_no_id_of_the_hub(tmp_path: Path) -> None:
    (fault,) = find_faults(plan(Path("nowhere.gguf")))
    assert fault == "model nowhere.gguf is no file here; check the path"


def test_the_missing_package_is_named(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(DataError, match="needs the package gguf; type: pip install gguf"):
        check_model_folder(gguf)


def test_an_end_token_beyond_the_vocabulary_counts_for_none(tmp_path: Path) -> None:
    file = tmp_path / "odd.gguf"
    write_gguf(file, eos=9_999, pad=9_999)
    assert read_header(file).find_token("eos") is None
    folder = convert_gguf(file, note=lambda text: None, cache=tmp_path / "cache")
    checkpoint = load_checkpoint(str(folder), revision=None, dtype="float32")
    assert checkpoint.end_ids == [SPECIAL.index("<|im_end|>")]
    assert checkpoint.pad_id == checkpoint.end_ids[0]


def test_no_end_at_all_is_refused_as_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "odd.gguf"
    template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    write_gguf(file, eos=None, template=template)
    with pytest.raises(DataError, match="names no end token, and its chat template closes"):
        convert_gguf(file, note=lambda text: None, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("gguf-*"))
