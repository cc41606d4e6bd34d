import hashlib
import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from microcoder.data.micro import generate_problems
from microcoder.train.recipe.recipe import WarmStartConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.warm import build_micro_checkpoint, orthogonalise

ROOT = Path(__file__).parents[2]
TINY = WarmStartConfig(
    hidden_size=32,
    num_layers=1,
    vocab_size=400,
    num_demonstrations=120,
    num_steps=4,
    batch_size=16,
)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_micro_checkpoint(TINY, Observer(), cache=tmp_path_factory.mktemp("cache"))


def test_two_builds_are_bit_identical_and_leave_the_global_generator_alone(
    checkpoint: Path, tmp_path: Path
) -> None:
    """Also where one was stopped, and where a half-written one is in the way."""

    class Interrupting(Observer):
        def note(self, text: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_micro_checkpoint(TINY, Interrupting(), cache=tmp_path)
    assert not (tmp_path / checkpoint.name).exists()
    (tmp_path / checkpoint.name).mkdir()
    (tmp_path / checkpoint.name / "model.safetensors").write_bytes(b"cut off")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    again = build_micro_checkpoint(TINY, Observer(), cache=tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    folders = []
    for path in tmp_path.iterdir():
        if path.is_dir():
            folders.append(path)
    assert folders == [again]
    assert again.name == checkpoint.name
    assert contents(again) == contents(checkpoint)


def test_it_loads_as_an_ordinary_checkpoint_and_speaks_chat(checkpoint: Path) -> None:
    tokenizer = load_tokenizer(checkpoint)
    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    chat = [{"role": "user", "content": "Read a word. Print its length."}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert prompt == "Read a word. Print its length.<|sep|>"
    answered = [*chat, {"role": "assistant", "content": "Done."}]
    assert tokenizer.apply_chat_template(answered, tokenize=False) == f"{prompt}Done.<|eos|>"
    ids = tokenizer(prompt, return_tensors="pt")
    output = model.generate(**ids, max_new_tokens=3)
    assert output.shape[1] <= ids["input_ids"].shape[1] + 3
    assert (
        model.generation_config.eos_token_id == tokenizer.eos_token_id == model.config.eos_token_id
    )
    assert tokenizer.pad_token_id == model.generation_config.pad_token_id != tokenizer.eos_token_id


def test_chains_are_learnt_with_a_step_a_token(checkpoint: Path) -> None:
    tokenizer = load_tokenizer(checkpoint)
    problem = generate_problems(split="train", num_problems=3)[2]
    steps = re.findall(r"[+*-]\d", problem.statement)
    operators = []
    for token in tokenizer.tokenize(problem.statement):
        if token[0] in "+*-":
            operators.append(token)
    assert operators == steps
    assert problem.reference
    for token in tokenizer.tokenize(problem.reference):
        assert not re.fullmatch(r"[+*-]\d", token)
    for text in ("3+4=7\n```python\nx-- +5 -x2*10\n```\n", "übung → 日本", "\t \n\n"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 24, 8), (1, 8, 24)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert values.max() < 1.3
    assert values.median() > 0.6
