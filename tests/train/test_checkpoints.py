"""Checkpoints as others publish them: what of their files decides what, and which are refused."""

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from microcoder.data.completions import Completion
from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.machine import find_bfloat16
from microcoder.train.recipe.recipe import MICRO_CONTEXT_TOKENS, TrainConfig, choose_dtype
from microcoder.train.run.checkpoints import check_model_folder
from microcoder.train.run.context import find_misfit, read_context
from microcoder.train.run.preflight import find_faults
from microcoder.train.run.progress import SamplingProgress
from microcoder.train.run.responses import OwnDraws, Sampling, sample_responses
from microcoder.train.run.warm import _MAX_POSITIONS
from microcoder.train.run.weights import (
    GenerationSettings,
    as_published,
    check_positions,
    load_checkpoint,
    respond,
)
from tests.train.published_sampling import NOT_OF_SAMPLING, SETTINGS, edit, publish
from tests.train.small_runs import SMALL, build_small

CHATS = [
    [{"role": "user", "content": text}]
    for text in ("Read x, print x.", "Let n be 2. Print n + 1.", "Print 3.", "?", "Print 1 + 2 * 3")
]


def load(folder: Path) -> Any:
    return load_checkpoint(str(folder), revision=None, dtype="float32")


def answer(
    model: Path, *, temperature: float, batch_size: int = 5, **more: Any
) -> list[Completion]:
    """Return the responses to `CHATS`, in their order."""
    torch.set_num_threads(1)
    found = respond(
        str(model),
        CHATS,
        GenerationSettings(
            batch_size=batch_size, temperature=temperature, top_p=0.95, max_tokens=24
        ),
        seeds=[31 * number for number in range(len(CHATS))],
        **more,
    )
    return [completion for _, completion in sorted(found, key=lambda one: one[0])]


def test_every_setting_of_a_generation_config_is_tried() -> None:
    known = set(GenerationConfig().to_dict())
    assert known - NOT_OF_SAMPLING - set(SETTINGS) == set()


@pytest.fixture(scope="module")
def plain(tiny_checkpoint: Path) -> dict[float, list[Completion]]:
    return {temperature: answer(tiny_checkpoint, temperature=temperature) for temperature in (0, 1)}


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_setting_of_a_generation_config_changes_no_answer(
    tiny_checkpoint: Path,
    tmp_path: Path,
    plain: dict[float, list[Completion]],
    name: str,
    temperature: float,
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model", **{name: SETTINGS[name]})
    assert answer(model, temperature=temperature) == plain[temperature]


def test_settings_of_sampling_in_an_old_config_json_change_nothing_and_are_saved_as_they_should_be(
    tiny_checkpoint: Path,
    tmp_path: Path,
    plain: dict[float, list[Completion]],
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    edit(model / "config.json", repetition_penalty=1.9, temperature=0.1, num_beams=3)
    (model / "generation_config.json").unlink()
    assert answer(model, temperature=1) == plain[1]
    checkpoint = load(model)
    saved = tmp_path / "saved"
    with as_published(checkpoint, saved):
        checkpoint.model.save_pretrained(saved)
    assert "repetition_penalty" not in json.loads((saved / "config.json").read_text())
    assert json.loads((saved / "generation_config.json").read_text())["repetition_penalty"] == 1.9


def test_all_end_tokens_of_a_generation_config_end_a_response(
    tiny_checkpoint: Path,
    tmp_path: Path,
    plain: dict[float, list[Completion]],
) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny_checkpoint)
    (first, second, *_) = tokenizer(plain[0][0].text, add_special_tokens=False)["input_ids"]
    own = tokenizer.eos_token_id
    model = publish(tiny_checkpoint, tmp_path / "model", eos_token_id=[own, second])
    found = answer(model, temperature=0)[0]
    assert found.num_tokens == 2
    assert not found.is_truncated
    # A single one, and the tokenizer's own beside it.
    model = publish(tiny_checkpoint, tmp_path / "single", eos_token_id=first)
    notes: list[str] = []
    assert answer(model, temperature=0, note=notes.append)[0].num_tokens == 1
    assert load(model).end_ids == [own, first]
    assert "the tokenizer's end token is not one of the model's generation config" in notes[0]


def rollouts(
    checkpoint: Path,
    run: Path,
    judge: Judge,
    *,
    temperature: float = 0.9,
) -> list[list[int]]:
    trainer = build_small(checkpoint, run, judge, **{"rollout.temperature.value": str(temperature)})
    torch.manual_seed(5)
    prompts = [trainer.train_dataset[index]["prompt"] for index in range(6)]  # type: ignore[index]
    _, responses, *_ = trainer._generate(prompts)
    return responses


def test_no_setting_of_a_generation_config_changes_a_rollout_of_training(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
) -> None:
    # Those that transformers refuses together, or that end in another kind of decoding,
    # each alone above.
    apart = {"num_beams", "num_beam_groups", "penalty_alpha", "dola_layers", "diversity_penalty"}
    settings = {}
    for name, value in SETTINGS.items():
        if name not in apart:
            settings[name] = value
    model = publish(tiny_checkpoint, tmp_path / "model", **settings)
    for temperature in (0.9, 1.4):
        expected = rollouts(tiny_checkpoint, tmp_path / "a", judge, temperature=temperature)
        assert rollouts(model, tmp_path / "b", judge, temperature=temperature) == expected


@pytest.mark.parametrize("name", ["num_beams", "penalty_alpha", "dola_layers", "min_p"])
def test_no_kind_of_decoding_of_a_generation_config_is_used_in_training(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
    name: str,
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model", **{name: SETTINGS[name]})
    expected = rollouts(tiny_checkpoint, tmp_path / "a", judge)
    assert rollouts(model, tmp_path / "b", judge) == expected


def test_dropout_is_off_while_sampling_and_on_again_after_it(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    edit(model / "config.json", attention_dropout=0.9)
    expected = rollouts(tiny_checkpoint, tmp_path / "a", judge)
    assert rollouts(model, tmp_path / "b", judge) == expected
    trainer = build_small(model, tmp_path / "c", judge)
    assert trainer.model is not None
    trainer._generate([trainer.train_dataset[0]["prompt"]])  # type: ignore[index]
    assert trainer.model.training


def test_the_recorded_prompt_is_what_the_model_was_given(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    template = (model / "chat_template.jinja").read_text()
    (model / "chat_template.jinja").write_text("Be a help.\n" + template)
    trainer = build_small(model, tmp_path / "run", judge)
    task = trainer.heldout_tasks[0]
    ((rollout,),) = trainer._rollouts([[5, 6]], [task], 28)
    assert rollout.prompt == f"Be a help.\n{task.prompt.text}<|sep|>"


# --- batches of an evaluation ---------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_an_answer_does_not_depend_on_the_batch_it_was_sampled_in(
    tiny_checkpoint: Path,
    plain: dict[float, list[Completion]],
    batch_size: int,
    temperature: float,
) -> None:
    found = answer(tiny_checkpoint, temperature=temperature, batch_size=batch_size)
    assert found == plain[temperature]


@pytest.mark.parametrize("in_slots", [True, False])
def test_sampled_answers_follow_the_models_distribution(
    tiny_checkpoint: Path, in_slots: bool
) -> None:
    checkpoint = load(tiny_checkpoint)
    prompt = checkpoint.tokenizer("Print 3.", add_special_tokens=False)["input_ids"]
    sampling = Sampling(1.0, 1.0, 1, checkpoint.end_ids, checkpoint.pad_id)
    number = 2000
    drawn = sample_responses(
        checkpoint.model.eval(),
        [prompt] * number,
        sampling,
        draws=OwnDraws(range(number), 1),
        batch_size=500,
        in_slots=in_slots,
    )
    counts = torch.zeros(checkpoint.model.config.vocab_size)
    for _, (token,) in drawn:
        counts[token] += 1
    with torch.no_grad():
        expected = checkpoint.model(torch.tensor([prompt])).logits[0, -1].softmax(-1)
    # Each share within five standard errors of its probability.
    error = (counts / number - expected).abs()
    assert bool((error <= 5 * (expected * (1 - expected) / number).sqrt() + 1e-3).all())


class Countdown:
    """A model that counts down: behind a token comes the one before it."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.config = GPT2Config(n_layer=1)
        self.rows: list[int] = []

    def __call__(self, *, input_ids: torch.Tensor, **_: Any) -> Any:
        if input_ids.shape[1] == 1:
            self.rows.append(len(input_ids))
        logits = torch.nn.functional.one_hot(input_ids[:, -1:] - 1, 300).float()
        return SimpleNamespace(logits=logits)


def count_down(
    lengths: Sequence[int], *, batch_size: int, limit: int
) -> tuple[Countdown, dict[int, int]]:
    model: Any = Countdown()
    found = sample_responses(
        model,
        [[200, 201, 5 + length] for length in lengths],
        Sampling(0.0, 1.0, limit, [5], 0),
        draws=OwnDraws([0] * len(lengths), limit),
        batch_size=batch_size,
        in_slots=True,
    )
    return model, {index: len(ids) for index, ids in found}


def test_a_long_answer_does_not_hold_the_others() -> None:
    lengths = [2, 3, 90, 2, 1, 3, 2, 2]
    model, found = count_down(lengths, batch_size=2, limit=200)
    assert found == dict(enumerate(lengths))
    # Those that follow take the place beside the long one: no step is done twice, or for nothing.
    assert sum(model.rows) == sum(lengths)
    assert len(model.rows) == 92


def test_a_response_at_the_limit_is_cut_there() -> None:
    _, found = count_down([1, 50, 1, 1, 50], batch_size=2, limit=20)
    assert found == {0: 1, 1: 20, 2: 1, 3: 1, 4: 20}


def test_progress_counts_tokens_ended_responses_and_what_is_left(tiny_checkpoint: Path) -> None:
    seen: list[SamplingProgress] = []
    found = answer(tiny_checkpoint, temperature=0, report=seen.append)
    ends = []
    for progress in seen:
        if progress.ended == progress.total:
            ends.append(progress)
    assert sum(progress.tokens for progress in ends) <= sum(one.num_tokens or 0 for one in found)
    for progress in seen:
        assert progress.limit == 24
    half = SamplingProgress(
        ended=1,
        total=4,
        tokens=40,
        longest=10,
        limit=30,
        seconds=5.0,
        steps=10,
        steps_left=20,
    )
    assert half.tokens_per_second == 8.0
    assert half.most_seconds_left == 10.0


# --- tokens of ends and padding -------------------------------------------------------------------


def test_a_tokenizer_without_padding_or_end_is_said_and_saved_as_it_was(
    tiny_checkpoint: Path,
    tmp_path: Path,
    plain: dict[float, list[Completion]],
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model", pad_token_id=None)
    edit(model / "tokenizer_config.json", pad_token=None, eos_token=None)
    edit(model / "config.json", pad_token_id=None)
    notes: list[str] = []
    assert answer(model, temperature=0, note=notes.append) == plain[0]
    assert notes[0].startswith("the tokenizer names no end token; the model's own ends a response")
    assert notes[1].startswith("the tokenizer names no padding token")
    checkpoint = load(model)
    saved = tmp_path / "saved"
    with as_published(checkpoint, saved):
        checkpoint.tokenizer.save_pretrained(saved)
    assert checkpoint.tokenizer.pad_token == "<|eos|>"
    again: Any = AutoTokenizer.from_pretrained(saved)
    assert again.pad_token is None
    assert again.eos_token is None


def test_a_template_that_closes_answers_by_a_token_that_ends_none_is_said(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    template = (model / "chat_template.jinja").read_text()
    (model / "chat_template.jinja").write_text(
        template.replace("{{ message['content'] }}<|eos|>", "{{ message['content'] }}<|sep|>")
    )
    (remark,) = load(model).remarks
    assert "closes an answer with '<|sep|>', which ends no response here" in remark
    assert load(tiny_checkpoint).remarks == ()


# --- refused as they are loaded -------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(
    tiny_checkpoint: Path,
    tmp_path: Path,
    value: float,
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    weights["model.norm.weight"][3] = value
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        DataError, match=r"no numbers .* in 1 of its tensors \(first: model\.norm\.weight"
    ):
        answer(model, temperature=0)


def test_no_end_token_is_one_line(tiny_checkpoint: Path, tmp_path: Path) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model", eos_token_id=None)
    edit(model / "config.json", eos_token_id=None)
    edit(model / "tokenizer_config.json", eos_token=None)
    with pytest.raises(DataError, match="names no end token"):
        load(model)
    with pytest.raises(DataError, match="no file names an end token"):
        check_model_folder(model)
    beyond = publish(tiny_checkpoint, tmp_path / "beyond", eos_token_id=9999)
    edit(beyond / "config.json", eos_token_id=9999)
    edit(beyond / "tokenizer_config.json", eos_token=None)
    with pytest.raises(DataError, match=r"names end tokens \[9999\], which its vocabulary lacks"):
        load(beyond)


def tiny_model(folder: Path, tokenizer: Path, kind: str) -> Path:
    """Save an untrained model of another family, with the tokenizer of a folder."""
    torch.manual_seed(0)
    if kind == "gpt2":
        gpt2 = GPT2Config(vocab_size=320, n_embd=32, n_layer=2, n_head=2, n_positions=64)
        GPT2LMHeadModel(gpt2).save_pretrained(folder)
    else:
        llama = LlamaConfig(
            vocab_size=320,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
        LlamaForCausalLM(llama).save_pretrained(folder)
    loaded: Any = AutoTokenizer.from_pretrained(tokenizer)
    loaded.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_counts_padding_as_positions_is_refused_in_training(
    tiny_checkpoint: Path,
    tmp_path: Path,
    dtype: str,
) -> None:
    gpt2 = tiny_model(tmp_path / "gpt2", tiny_checkpoint, "gpt2")
    loaded = load_checkpoint(str(gpt2), revision=None, dtype=dtype)
    with pytest.raises(DataError, match=r"\(gpt2\) gives other log-probs behind padding"):
        check_positions(loaded, "gpt2")
    for good in (tiny_checkpoint, tiny_model(tmp_path / "llama", tiny_checkpoint, "llama")):
        check_positions(load_checkpoint(str(good), revision=None, dtype=dtype), "good")
    with pytest.raises(ConfigError, match="context"):
        answer_long(gpt2)


def answer_long(model: Path) -> None:
    settings = GenerationSettings(batch_size=5, temperature=0, top_p=1, max_tokens=64)
    found = respond(str(model), CHATS, settings, seeds=[1] * 5)
    list(found)


# --- refused by the dry run, from files alone -----------------------------------------------------


def plan(model: Path, **changes: str) -> TrainConfig:
    return load_config(TrainConfig, overrides={**SMALL, "model.path": str(model), **changes})


def weights_of(folder: Path) -> Path:
    return folder / "model.safetensors"


def configure(folder: Path, **changes: Any) -> None:
    edit(folder / "config.json", **changes)


def replace_weights(folder: Path, name: str, content: bytes) -> None:
    weights_of(folder).unlink()
    (folder / name).write_bytes(content)


def index_shards(folder: Path, files: list[str], weights: dict[str, str]) -> None:
    """Call the weights by the first of some names,
    beside an index that says which weight is in which file.
    """
    weights_of(folder).rename(folder / files[0])
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weights}))


def cut_weights(folder: Path) -> None:
    weights = weights_of(folder)
    weights.write_bytes(weights.read_bytes()[:-100])


def lose_a_shard(folder: Path) -> None:
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    index_shards(folder, [first, second], {"a": first, "b": second})


def index_other_weights(folder: Path) -> None:
    file = "model-00001-of-00001.safetensors"
    index_shards(folder, [file], {"model.other": file})


def link_weights_to_nowhere(folder: Path) -> None:
    weights_of(folder).unlink()
    weights_of(folder).symlink_to("/nowhere/model.safetensors")


def make_config_a_folder(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


def set_vocabulary(folder: Path, **vocabulary: Any) -> None:
    edit(folder / "tokenizer.json", model={"type": "BPE", **vocabulary})


def set_template(folder: Path, template: str) -> None:
    (folder / "chat_template.jinja").write_text(template)


LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"
DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda model: weights_of(model).write_bytes(b""),
    "cut": cut_weights,
    "pointer": lambda model: weights_of(model).write_bytes(LFS_POINTER),
    "text": lambda model: weights_of(model).write_text("not found, or no permission: log in first"),
    "no weights": lambda model: weights_of(model).unlink(),
    "shards": lose_a_shard,
    "tokenizer": lambda model: (model / "tokenizer.json").write_text("{}"),
    "adapter": lambda model: (model / "config.json").rename(model / "adapter_config.json"),
    "unknown": lambda model: configure(model, model_type="lama"),
    "seq2seq": lambda model: configure(model, model_type="t5"),
    "gpt2": lambda model: configure(model, model_type="gpt2"),
    "gone": lambda model: model.rename(model.parent / "elsewhere"),
    "link": link_weights_to_nowhere,
    "gguf": lambda model: replace_weights(model, "model.gguf", b"GGUF"),
    "page": lambda model: replace_weights(model, "pytorch_model.bin", b"<!DOCTYPE html><p>log in"),
    "own name": lambda model: weights_of(model).rename(model / "consolidated.safetensors"),
    "other index": index_other_weights,
    "empty index": lambda model: (model / "model.safetensors.index.json").write_text(
        '{"weight_map": {}}'
    ),
    "encoder": lambda model: configure(model, model_type="bert", architectures=["BertForMaskedLM"]),
    "classifier": lambda model: configure(model, architectures=["Qwen3ForSequenceClassification"]),
    "vocabulary": lambda model: configure(model, vocab_size=100_000),
    "width": lambda model: configure(model, hidden_size=48),
    "layers": lambda model: configure(model, num_hidden_layers=99),
    "no vocabulary": lambda model: set_vocabulary(model, vocab={}, merges=[]),
    "other tokenizer": lambda model: set_vocabulary(model, vocab={"a": 999_999}),
    "named end": lambda model: edit(model / "generation_config.json", eos_token_id="<|im_end|>"),
    "cut config": lambda model: (model / "config.json").write_text('{"model_type": "qw'),
    "config folder": make_config_a_folder,
    "template": lambda model: set_template(model, "{% for turn in messages %}"),
    "refusing template": lambda model: set_template(
        model, "{{ raise_exception('roles must alternate') }}"
    ),
}
"""What is done to a folder with a sound model, by name."""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("empty", r"model\.safetensors is empty \(0 bytes\); copy or download it again"),
        ("cut", r"has 610,116 bytes, its header says 610,216"),
        ("pointer", "pointer of Git LFS"),
        ("text", "is no safetensors file"),
        ("no weights", "has no weights"),
        ("shards", r"1 of the files .* missing \(first: model-00002-of-00002\.safetensors\)"),
        ("tokenizer", r"tokenizer\.json holds no tokenizer"),
        ("adapter", "is an adapter"),
        ("unknown", "model_type 'lama'"),
        ("seq2seq", "model_type 't5'"),
        ("gpt2", "counts positions from the first column"),
        ("gone", "is no folder here"),
        (
            "link",
            r"model\.safetensors is a link to /nowhere/model\.safetensors, which is not there",
        ),
        ("gguf", r"model\.gguf .4 bytes. has a header that is cut short or damaged"),
        ("page", r"pytorch_model\.bin is no file of torch's"),
        ("own name", r"none of its weights is called model\.safetensors"),
        (
            "other index",
            r"1 of the weights that .* names are not in their file \(first: model\.other",
        ),
        ("empty index", "names no file"),
        ("encoder", "BertForMaskedLM, which does not predict the next token"),
        ("classifier", "Qwen3ForSequenceClassification, which does not predict"),
        ("vocabulary", r"config\.json says 100,000 tokens \(vocab_size\)"),
        ("width", r"of 48 numbers \(hidden_size\), the embedding has"),
        ("layers", "config.json says 99 layers, the weights are of"),
        ("no vocabulary", "holds no vocabulary"),
        ("other tokenizer", "has tokens up to number 999,999"),
        ("named end", "use the number of a token"),
        ("cut config", r"config\.json is not JSON.*copy or download it again"),
        ("config folder", r"config\.json is a folder"),
        ("template", "chat template cannot make a prompt of a problem"),
        ("refusing template", "roles must alternate; if it takes no system turn"),
    ],
)
def test_a_damaged_checkpoint_is_refused_from_its_files(
    tiny_checkpoint: Path,
    tmp_path: Path,
    kind: str,
    message: str,
) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    DAMAGES[kind](model)
    (fault,) = find_faults(plan(model))
    with pytest.raises(DataError, match=message):
        raise DataError(fault)


def test_a_whole_checkpoint_is_not_refused(tiny_checkpoint: Path) -> None:
    assert find_faults(plan(tiny_checkpoint)) == []


# --- the context ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"max_position_embeddings": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"max_seq_len": 2048}, 2048),
        ({"text_config": {"max_position_embeddings": 4096}}, 4096),
        ({"max_position_embeddings": 4096, "sliding_window": 512}, 4096),
        # Positions of Llama 3.1 are extended already; YaRN's and linear scaling's are not.
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "llama3", "factor": 8},
            },
            131072,
        ),
        (
            {"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.0}},
            8192,
        ),
        (
            {
                "max_position_embeddings": 163840,
                "rope_scaling": {
                    "type": "yarn",
                    "factor": 40,
                    "original_max_position_embeddings": 4096,
                },
            },
            163840,
        ),
        ({"max_position_embeddings": 40960, "rope_scaling": None}, 40960),
    ],
)
def test_the_context_is_read_as_vllm_reads_it(config: dict[str, Any], tokens: int) -> None:
    context = read_context(config)
    assert context is not None
    assert context.tokens == tokens


def test_what_does_not_fit_says_what_to_type() -> None:
    context = read_context({"max_position_embeddings": 8192})
    key = "rollout.max_response_tokens"
    fault = find_misfit(context, 9000, {key: 20000})
    assert fault is not None
    assert "9,000 tokens) and rollout.max_response_tokens = 20,000 make 29,000 tokens" in fault
    assert "leave out such long problems" in fault
    assert find_misfit(context, 192, {key: 8000}) is None
    assert "--rollout.max_response_tokens 8000 or less" in (
        find_misfit(context, 192, {key: 8001}) or ""
    )
    assert find_misfit(None, 10**9, {key: 10**9}) is None
    assert read_context({"vocab_size": 3}) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"rollout.max_response_tokens": "1024"},
        {"rollout.length_stages": "[{from_step = 2, max_response_tokens = 1020}]"},
        {"evaluation.max_response_tokens": "1024"},
    ],
)
def test_prompt_and_response_beyond_the_context_are_refused_by_dry_run_and_training(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
    changes: dict[str, str],
) -> None:
    from microcoder.train.run.checkpoints import Observer
    from microcoder.train.run.training import run_training

    config = plan(tiny_checkpoint, num_steps="2", **changes)
    (fault,) = find_faults(config)
    assert "more than the model's context of 1,024" in fault
    with pytest.raises(ConfigError, match="more than the model's context of 1,024"):
        run_training(config, run_directory=tmp_path / "run", observer=Observer())
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_the_micro_models_context_is_one_number() -> None:
    assert MICRO_CONTEXT_TOKENS == _MAX_POSITIONS


# --- the number format ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "has_it"),
    [
        ("flags\t\t: fpu avx512f avx512bw avx512_bf16 amx_tile", True),
        ("flags\t\t: fpu amx_bf16", True),
        ("flags\t\t: fpu avx2 avx512f avx512bw", False),
        ("Features\t: fp asimd bf16 i8mm", True),
        ("Features\t: fp asimd i8mm", False),
        ("model name\t: avx512_bf16", False),
        ("", False),
    ],
)
def test_a_processor_says_whether_it_multiplies_in_bfloat16(flags: str, has_it: bool) -> None:
    assert find_bfloat16(f"processor\t: 0\n{flags}\nbogomips\t: 1\n") is has_it


def test_a_number_format_asked_for_by_name_is_taken() -> None:
    assert choose_dtype("auto", on_gpu=True) == "bfloat16"
    assert choose_dtype("float32", on_gpu=True) == "float32"
    assert choose_dtype("bfloat16", on_gpu=False) == "bfloat16"


def test_a_header_alone_is_a_safetensors_file(tiny_checkpoint: Path, tmp_path: Path) -> None:
    model = publish(tiny_checkpoint, tmp_path / "model")
    (model / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    check_model_folder(model)
