"""`microcoder init`: the recipe it writes is the published one, fits, and starts."""

import json
import shlex
import struct
from pathlib import Path
from typing import Any, Literal

import pytest

from microcoder.cli import main
from microcoder.data.micro import generate_problems
from microcoder.data.release.problems import write_problems
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.train.recipe.recipe import HubProblems, HuggingFaceModel, TrainConfig
from microcoder.train.run.estimate import count_memory
from microcoder.train.run.starter import GPUS, Wishes, write_recipe

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Problem files that are there."""
    splits: tuple[Literal["train", "heldout"], ...] = ("train", "heldout")
    for name in splits:
        write_problems(tmp_path / f"{name}.jsonl", generate_problems(split=name, num_problems=64))
    return {"problems": str(tmp_path / "train.jsonl"), "heldout": str(tmp_path / "heldout.jsonl")}


def resolve(text: str, folder: Path) -> TrainConfig:
    path = folder / "written.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(TrainConfig, [path])


def make_model(folder: Path, *, chat_template: str | None, layers: int = 28) -> Path:
    """Write the files that say what a model is, without weights that anyone could load."""
    folder.mkdir()
    kind = {"model_type": "qwen3", "tie_word_embeddings": True}
    dims = {
        "hidden_size": 2048,
        "num_hidden_layers": layers,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
    }
    more = {
        "head_dim": 128,
        "intermediate_size": 6144,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
    }
    (folder / "config.json").write_text(json.dumps({**kind, **dims, **more}))
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    (folder / "tokenizer.json").write_text('{"model": {"vocab": {"a": 0}}}')
    settings = {"chat_template": chat_template, "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_one_line_writes_the_published_recipe_and_the_dry_run_takes_it(
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "recipe.toml"
    model = make_model(tmp_path / "model", chat_template="{{ messages }}")
    words = ["--model", str(model), "--problems", files["problems"], "--heldout", files["heldout"]]
    main(["init", *words, "--gpu", "h100", "--out", str(out)])
    assert "--dry-run" in capsys.readouterr().out
    config = load_config(TrainConfig, [out])
    # The package's defaults are the published recipe; all but these two is one of them.
    plain = load_config(
        TrainConfig,
        overrides={"model.kind": "hugging_face", "model.path": str(model)},
        layers=[
            {"problems": {"kind": "files", "train": files["problems"], "heldout": files["heldout"]}}
        ],
    )
    rollout = plain.rollout.model_copy(update={"backend": "vllm", "vllm": config.rollout.vllm})
    # What bounds memory alone, and changes no result, may be smaller.
    assert config.batch.micro_batch_rollouts <= plain.batch.micro_batch_rollouts
    assert config == plain.model_copy(update={"rollout": rollout, "batch": config.batch})
    assert config.optimizer.learning_rate == 1e-6
    main(["train", "-c", str(out), "--dry-run"])
    assert "a step           64      512" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["init", *words, "--gpu", "h100", "--out", str(out)])
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "algorithm", ["microcoder-grpo", "grpo", "dr-grpo", "cispo", "mask-all-uncounted"]
)
def test_an_algorithm_is_that_of_the_recipes_of_its_name(
    algorithm: str,
    files: dict[str, str],
    tmp_path: Path,
) -> None:
    text = write_recipe(
        Wishes(model="Qwen/Qwen3-4B-Instruct-2507", gpu="h200", algorithm=algorithm, **files)
    )
    published = load_config(TrainConfig, [Path("qwen3-4b"), Path(algorithm)])
    assert resolve(text, tmp_path).algorithm == published.algorithm


def test_a_recipe_for_verl_comes_with_the_command_that_verl_takes(
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command that `train` runs."""
    from microcoder.train.runs import RunDirectory
    from microcoder.train.verl.translate import as_words, translate

    out = tmp_path / "cluster.toml"
    words = [
        "--model",
        "Qwen/Qwen3-4B",
        "--problems",
        files["problems"],
        "--heldout",
        files["heldout"],
    ]
    main(["init", *words, "--gpu", "h100", "--engine", "verl", "--out", str(out)])
    printed = capsys.readouterr().out
    config = load_config(TrainConfig, [out])
    assert config.engine == "verl"
    assert config.verl["trainer.nnodes"] == 1
    command = shlex.split(printed.replace("\\\n", "").partition("\n")[2].rpartition("\nwrote ")[0])
    expected = as_words(translate(config, RunDirectory(Path("runs/cluster"))))
    assert command == ["python", "-m", "verl.trainer.main_ppo", *expected]
    assert "actor_rollout_ref.rollout.temperature=1.2" in command


def test_what_does_not_fit_is_trained_by_adapters_or_refused(
    files: dict[str, str], tmp_path: Path
) -> None:
    by_gpu = {gpu: write_recipe(Wishes(model="Qwen/Qwen3-1.7B", gpu=gpu, **files)) for gpu in GPUS}
    assert "for a trial run" in by_gpu["cpu"]
    small = resolve(by_gpu["h100"], tmp_path)
    assert small.weights.lora is None
    assert small.rollout.max_response_tokens == 8192
    assert resolve(by_gpu["l4"], tmp_path).weights.lora is not None
    four, eight = (
        resolve(write_recipe(Wishes(model=f"Qwen/Qwen3-{size}B", gpu="h100", **files)), tmp_path)
        for size in (4, 8)
    )
    assert four.weights.lora is None
    assert four.rollout.max_response_tokens == 8192
    assert four.optimizer.name == "adamw_8bit"
    assert four.rollout.vllm.enable_sleep_mode
    # What is left goes to the sampler's cache; passes of two are enough.
    table = count_memory(four, device_memory_gib=80e9 / 2**30)
    assert table is not None
    assert table.fits
    assert four.batch.micro_batch_rollouts == 2
    assert table.cached_responses == 35
    assert isinstance(eight.model, HuggingFaceModel)
    assert eight.model.lora is not None
    assert eight.model.dtype == "bfloat16"
    assert eight.optimizer.learning_rate == 1e-5


def test_a_model_says_itself_whether_it_thinks_and_whether_it_chats(
    files: dict[str, str], tmp_path: Path
) -> None:
    hybrid = make_model(
        tmp_path / "hybrid", chat_template="{% if enable_thinking is false %}{% endif %}"
    )
    base = make_model(tmp_path / "base", chat_template=None)
    for model, is_hybrid, is_bare in (
        (str(hybrid), True, False),
        (str(base), False, True),
        ("Qwen/Qwen3-1.7B", True, False),
        ("Qwen/Qwen3-4B-Instruct-2507", False, False),
    ):
        text = write_recipe(Wishes(model=model, gpu="h100", **files))
        assert ("chat_template_options = { enable_thinking = false }" in text) == is_hybrid
        assert ("has no chat template" in text) == is_bare


def test_a_data_set_of_the_hub_is_named_with_its_format(tmp_path: Path) -> None:
    wishes = Wishes(
        model="Qwen/Qwen3-1.7B",
        problems="open-r1/codeforces",
        heldout="test",
        gpu="h100",
    )
    problems = resolve(write_recipe(wishes), tmp_path).problems
    assert problems == HubProblems(
        kind="hub",
        id="open-r1/codeforces",
        format="openr1_codeforces",
        heldout_split="test",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"problems": "me/mine", "heldout": "test"},
            "the rows of me/mine look like is not known; give --format trl",
        ),
        (
            {"problems": "me/mine", "heldout": "test", "format": "livecodebench"},
            "'livecodebench' is a benchmark",
        ),
        ({"gpu": "h1000"}, "gpu 'h1000' is unknown; use one of h200, h100"),
        ({"engine": "megatron"}, "engine 'megatron' is unknown; use one of trl, verl"),
        ({"model": "Qwen/Qwen3-8B", "gpu": "l4"}, "Qwen3-8B does not fit on one l4"),
        ({"problems": "none.jsonl"}, "problems.train none.jsonl does not exist"),
        ({"heldout": "none.jsonl"}, "problems.heldout none.jsonl does not exist"),
        (
            {"model": "./none"},
            "model none is no folder here; use a checkpoint folder, a GGUF file or a hub id",
        ),
        (
            {"model": str(ROOT / "tests")},
            "tests has no config.json and no weights .* written by save_pretrained",
        ),
        ({"model": "me/mine"}, "the size of me/mine is unknown"),
        ({"model": "not a model"}, "is neither a folder here nor an id of the Hub"),
        ({"algorithm": "ppo"}, "algorithm 'ppo' is unknown; use one of microcoder-grpo"),
    ],
)
def test_what_is_not_there_is_said_at_once(
    changes: dict[str, str],
    message: str,
    files: dict[str, str],
) -> None:
    wishes: dict[str, Any] = {"model": "Qwen/Qwen3-1.7B", "gpu": "h100", **files, **changes}
    with pytest.raises((ConfigError, DataError), match=message):
        write_recipe(Wishes(**wishes))


@pytest.mark.parametrize(
    ("num_problems", "gpu", "engine", "step", "update"),
    [
        # Two updates a step, each a divisor of the 32 (of a trial's 4) problems of the published
        # update.
        (40, "h100", "trl", 32, 16),
        (63, "h100", "trl", 32, 16),
        (3, "h100", "trl", 2, 1),
        (5, "cpu", "trl", 4, 2),
        (2, "cpu", "trl", 2, 1),
        # Eight GPUs share a step.
        (20, "h100", "verl", 16, 8),
        (8, "h100", "verl", 8, 4),
    ],
)
def test_few_problems_get_batches_that_they_fill_and_the_dry_run_takes_them(
    tmp_path: Path,
    num_problems: int,
    gpu: str,
    engine: str,
    step: int,
    update: int,
) -> None:
    model = make_model(tmp_path / "model", chat_template="{{ messages }}")
    train = tmp_path / "few.jsonl"
    heldout = tmp_path / "held.jsonl"
    write_problems(train, generate_problems(split="train", num_problems=num_problems))
    write_problems(heldout, generate_problems(split="heldout", num_problems=4))
    wishes = Wishes(
        model=str(model),
        problems=str(train),
        heldout=str(heldout),
        gpu=gpu,
        engine=engine,
    )
    text = write_recipe(wishes)
    batch = resolve(text, tmp_path).batch
    assert batch.train_batch_size == step
    assert batch.ppo_mini_batch_size == update
    assert f"but there are {num_problems} training problems" in text
    main(["train", "-c", str(tmp_path / "written.toml"), "--dry-run"])


def test_as_many_problems_as_a_step_samples_are_enough(
    files: dict[str, str], tmp_path: Path
) -> None:
    model = make_model(tmp_path / "model", chat_template="{{ messages }}")
    text = write_recipe(Wishes(model=str(model), gpu="h100", **files))
    assert "train_batch_size" not in text


def test_a_single_problem_is_too_few(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model", chat_template="{{ messages }}")
    train = tmp_path / "one.jsonl"
    heldout = tmp_path / "held.jsonl"
    write_problems(train, generate_problems(split="train", num_problems=1))
    write_problems(heldout, generate_problems(split="heldout", num_problems=4))
    wishes = Wishes(model=str(model), problems=str(train), heldout=str(heldout), gpu="h100")
    with pytest.raises(ConfigError, match="so few do not fill a step of two updates"):
        write_recipe(wishes)


def test_a_file_of_rows_with_a_format_is_sent_to_convert(
    files: dict[str, str], tmp_path: Path
) -> None:
    model = make_model(tmp_path / "model", chat_template="{{ messages }}")
    wishes = Wishes(model=str(model), gpu="h100", format="taco", **files)
    with pytest.raises(ConfigError, match=r"data convert .*train\.jsonl --format taco -o"):
        write_recipe(wishes)


def test_rows_of_a_benchmark_are_sent_to_the_held_out_side(
    files: dict[str, str], tmp_path: Path
) -> None:
    rows = tmp_path / "humaneval.jsonl"
    row = {
        "task_id": "HumanEval/0",
        "prompt": "def one():\n",
        "entry_point": "one",
        "canonical_solution": "    return 1\n",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
    }
    rows.write_text(json.dumps(row) + "\n")
    model = make_model(tmp_path / "model", chat_template="{{ messages }}")
    wishes = Wishes(model=str(model), gpu="h100", **(files | {"problems": str(rows)}))
    with pytest.raises(ConfigError, match="--with-test-rows, and use them as held-out problems"):
        write_recipe(wishes)
