"""`microcoder train`: recipes, dry runs, and one clear line for each mistake."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from microcoder.cli import main
from microcoder.cli.display import parse_overrides
from microcoder.data.micro import generate_problems
from microcoder.data.release.problems import write_problems
from microcoder.judge.core.config import dotted_keys, find_recipe, load_config, name_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.recipe import TrainConfig, find_idle

ROOT = Path(__file__).parents[2]
RECIPES = sorted(
    p
    for p in ROOT.glob("recipes/**/*.toml")
    if p.parent.name not in ("data", "algorithms", "distill")
)
ALGORITHMS = sorted((ROOT / "recipes/algorithms").glob("*.toml"))
SETTINGS = ("micro", "qwen3-1.7b-4k", "qwen3-4b-4k", "qwen3-4b", "r1-qwen3-8b-16k")


def files_of(recipe: Path, folder: Path) -> list[str]:
    """Return the flags that give a recipe problem files: those it names are the user's."""
    if 'kind = "files"' not in recipe.read_text(encoding="utf-8"):
        return []
    splits: tuple[Literal["train", "heldout"], ...] = ("train", "heldout")
    for name in splits:
        write_problems(
            folder / f"{name}.jsonl", generate_problems(split=name, num_problems=64, seed=0)
        )
    options = []
    for name in ("train", "heldout"):
        options.extend((f"--problems.{name}", str(folder / f"{name}.jsonl")))
    return options


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recipe_is_estimated(
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["train", "-c", str(recipe), "--run-dir", str(tmp_path / "run"), "--dry-run"]
    main([*words, *files_of(recipe, tmp_path)])
    shown = capsys.readouterr().out
    config = load_config(TrainConfig, [recipe])
    rollouts = config.num_steps * config.batch.train_batch_size * config.rollout.num_samples
    most = rollouts * config.rollout.max_response_tokens
    assert f"{rollouts:,} rollouts, at most {most:,} tokens" in shown
    assert "model: " in shown
    assert not (tmp_path / "run").exists()
    readmes = [folder / "README.md" for folder in (recipe.parent, ROOT / "recipes")]
    assert any(
        recipe.name in readme.read_text(encoding="utf-8") for readme in readmes if readme.is_file()
    )
    # Every idea of it can act, with any algorithm.
    for over in ([], *([path] for path in ALGORITHMS)):
        idle = find_idle(load_config(TrainConfig, [recipe, *over]))
        if recipe.parent.name == "lab":
            # Shorter than two windows of the paper: a study that lays a mask over them sets its
            # window.
            idle = [one for one in idle if "the repeat check of the mask" not in one]
        assert idle == []


@pytest.mark.parametrize(
    ("keys", "idle"),
    [
        ({"algorithm.loss": "grpo"}, "the clip of loss grpo, with one update a step"),
        ({"algorithm.loss": "cispo", "num_steps": "1"}, "the ratio of loss cispo"),
        (
            {"algorithm.masking.rho": "0", "batch.ppo_mini_batch_size": "32"},
            "the mask, with algorithm.masking.rho = 0",
        ),
        (
            {
                "algorithm.masking.repeat_window_tokens": "128",
                "batch.ppo_mini_batch_size": "32",
            },
            "responses have at most 32; try algorithm.masking.repeat_window_tokens=8",
        ),
    ],
)
def test_what_cannot_act_is_said(
    keys: dict[str, str],
    idle: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # All 64 problems of a step in one update, so that every ratio is 1.
    keys = {"batch.ppo_mini_batch_size": "64", **keys}
    (said,) = find_idle(
        load_config(TrainConfig, [ROOT / "recipes/micro/config.toml"], overrides=keys)
    )
    assert idle in said
    main(
        [
            "train",
            "-c",
            "micro",
            "--dry-run",
            *(word for key, value in keys.items() for word in (f"--{key}", value)),
        ]
    )
    assert f"has no effect: {said}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("loss", "way_out"),
    [
        ("dapo", "--algorithm.loss.clip-high 0.2"),
        ("cispo", "--algorithm.loss grpo"),
        ("gspo", "--algorithm.loss.clip-high 0.0003"),
    ],
)
def test_a_loss_that_rests_on_ratios_is_refused_with_one_update_a_step(
    loss: str, way_out: str
) -> None:
    keys = {"batch.ppo_mini_batch_size": "64", "algorithm.loss": loss}
    with pytest.raises(
        ConfigError, match=rf"every ratio is 1; try batch\.ppo_mini_batch_size=32, or, .*{way_out}"
    ):
        load_config(TrainConfig, [ROOT / "recipes/micro/config.toml"], overrides=keys)
    plain = {"algorithm.loss": "grpo"} if loss != "dapo" else {"algorithm.loss.clip_high": "0.2"}
    load_config(TrainConfig, [ROOT / "recipes/micro/config.toml"], overrides={**keys, **plain})


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_algorithm_over_a_recipe_changes_the_algorithm_alone(setting: str) -> None:
    configs = {path.stem: load_config(TrainConfig, [Path(setting), path]) for path in ALGORITHMS}
    base = configs["dapo"]
    assert load_config(TrainConfig, [Path(setting)]) == configs["microcoder-grpo"]
    assert len({config.algorithm.model_dump_json() for config in configs.values()}) == len(
        ALGORITHMS
    )
    # By the keys of [algorithm] in which each differs from DAPO.
    for name, config in configs.items():
        assert config.model_copy(update={"algorithm": base.algorithm}) == base
        ours = base.algorithm.model_dump()
        theirs = config.algorithm.model_dump()
        assert sum(ours[key] != theirs[key] for key in ours) == {
            "dapo": 0,
            "grpo": 2,
            "dr-grpo": 2,
        }.get(name, 1)


def test_every_recipe_is_known_by_one_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [*RECIPES, *ALGORITHMS]
    names = [name_recipe(path) for path in paths]
    assert [find_recipe(Path(name)) for name in names] == paths
    assert find_recipe(Path("lab/chains")) == ROOT / "recipes/lab/chains.toml"


def test_a_step_that_cannot_be_shared_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = ROOT / "recipes/qwen3-4b/config.toml"
    words = ["train", "-c", str(recipe), "--dry-run", *files_of(recipe, tmp_path)]
    monkeypatch.setenv("WORLD_SIZE", "2")
    main(words)
    assert "16 an update on each of 2 processes" in capsys.readouterr().out
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert (
        "train_batch_size=64 cannot be shared by 3 processes; use a multiple of 3"
        in capsys.readouterr().err
    )


def test_what_may_not_fit_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recipe = ROOT / "recipes/models/qwen3-4b-4k.toml"
    words = [
        "train",
        "-c",
        str(recipe),
        "--run-dir",
        str(tmp_path / "run"),
        *files_of(recipe, tmp_path),
    ]
    main([*words, "--dry-run", "--gpu-memory-gib", "79.6"])
    shown = capsys.readouterr()
    assert "this may not fit" in shown.err
    assert "enable_sleep_mode = true" in shown.err
    assert "optimizer" in shown.out
    main([*words, "--dry-run", "--gpu-memory-gib", "400"])
    assert "of 400" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--gpu-memory-gib", "400"])
    assert "add --dry-run" in capsys.readouterr().err
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(SystemExit, match="2"):
        main([*words[:3], "--dry-run", "--run-dir", str(tmp_path)])
    assert "holds no run" in capsys.readouterr().err


def test_a_dry_run_for_people_shows_the_plan_and_refuses_what_is_missing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(
            [
                "train",
                "-c",
                "qwen3-4b",
                "--dry-run",
                "--algorithm.masking.rho=0.3",
                "--num-steps",
                "7",
            ]
        )
    shown = capsys.readouterr()
    for line in (
        "algorithm.masking.rho = 0.3",
        "num_steps = 7",
        "model Qwen/Qwen3-4B-Instruct-2507 is not a local folder",
        "a checkpoint takes about 46,033 MiB, and up to 3 are",
        "a step           64      512    4,194,304",
    ):
        assert line in shown.out
    assert len(shown.err.strip().splitlines()) == 1
    assert (
        "problems.train data/train.jsonl does not exist; check the path, or pass --problems.train"
        in shown.err
    )


def test_help_is_one_screen_of_the_usual_keys_and_lists_every_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for command, said in (
        ("eval", '--generation.kind = "file" Read the answers from a file.'),
        ("data build", "--sources.path A file, "),
        ("train", "runs/micro-dapo"),
    ):
        main([*command.split(), "--help"])
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 50
        assert said in " ".join(" ".join(lines).split())
    assert (
        max(map(len, lines)) <= 100
    )  # of the others a process keeps the width of their first time
    assert any(
        re.match(r"  --rollout.num_samples = 8 +Responses per problem", line) for line in lines
    )
    assert lines[-1] == "Every key: microcoder train --help-all, docs/reference.md"
    main(["train", "--help-all"])
    lines = capsys.readouterr().out.splitlines()
    unlisted = []
    for key in dotted_keys(TrainConfig):
        if not any(line.startswith(f"  --{key}") for line in lines):
            unlisted.append(key)
    assert unlisted == []


def test_a_dry_run_loads_what_the_recipe_brings_along_and_knows_the_packages_recipes_in_any_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "train",
        "-c",
        "micro",
        "-c",
        "dapo",
        "--dry-run",
        "--rewards",
        f"{tmp_path}/own.py:mine",
    ]
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "own.py does not exist" in capsys.readouterr().err
    (tmp_path / "own.py").write_text(
        "def mine(problem, rollout, program, verdict):\n    return 1.0\n"
    )
    main(words)
    assert "the run would be written to runs/micro-dapo" in capsys.readouterr().out


def test_overrides_are_flag_and_value_or_joined() -> None:
    assert parse_overrides(("--a.b", "1", "--c-d=x=y")) == {"a.b": "1", "c_d": "x=y"}


def write_plan(folder: Path, *, train: int = 64) -> list[str]:
    """Write problem files of a plan that could start;
    return the words of its dry run without a model.
    """
    splits: tuple[Literal["train", "heldout"], ...] = ("train", "heldout")
    for name in splits:
        number = train if name == "train" else 4
        problems = generate_problems(split=name, num_problems=number, tiers=("easy",))
        write_problems(folder / f"{name}.jsonl", problems)
    (folder / "empty.toml").touch()
    files = []
    for name in splits:
        files.extend((f"--problems.{name}", str(folder / f"{name}.jsonl")))
    words = ["train", "-c", str(folder / "empty.toml"), "--dry-run", "--run-dir"]
    kinds = ["--problems.kind", "files", "--model.kind", "hugging_face"]
    limits = ["--rollout.max_response_tokens", "256"]
    return [*words, str(folder / "run"), *kinds, *files, *limits]


@pytest.fixture
def model(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint that a test may spoil."""
    return shutil.copytree(tiny_checkpoint, tmp_path / "model")


def refusal_of(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which a command refuses."""
    with pytest.raises(SystemExit, match="2"):
        main(list(words))
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--rollout.max_response_tokens", "1024"],
            "more than the model's context of 1,024",
        ),
        (
            ["--rollout.length_stages", "[{from_step = 9, max_response_tokens = 1024}]"],
            "or less there, or use a model with a longer context",
        ),
        (
            ["--evaluation.max_response_tokens", "1024"],
            "evaluation.max_response_tokens = 1,024",
        ),
        (
            ["--prompt.chat_template_options.enable_thinking", "false"],
            "prompt.chat_template_options.enable_thinking would change nothing",
        ),
        (
            ["--evaluator.packages", "gone.txt"],
            "evaluator.packages = 'gone.txt' cannot be read",
        ),
        (
            ["--model.attn_implementation", "flash"],
            "model.attn_implementation = 'flash' is unknown; use one of eager, sdpa",
        ),
        (
            ["--trl.disable_dropuot", "true"],
            "[trl] disable_dropuot is no option of the installed TRL; did you mean",
        ),
        (
            ["--trl.report_to", "wanb"],
            "[trl] report_to = 'wanb' is no logger of transformers; use one of none, all",
        ),
    ],
)
def test_a_setting_that_training_would_refuse_is_refused_in_a_line(
    words: list[str],
    message: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = [*write_plan(tmp_path), "--model.path", str(model), *words]
    assert message in refusal_of(plan, capsys)


def copy_statements(folder: Path) -> None:
    """Ask four training problems as held-out ones, under other names and with more white space."""
    lines = (folder / "train.jsonl").read_text().splitlines()[:4]
    copies = []
    for place, line in enumerate(lines):
        row = json.loads(line)
        row |= {"id": f"other-{place}", "statement": f"{row['statement']}\n \n"}
        copies.append(f"{json.dumps(row)}\n")
    (folder / "heldout.jsonl").write_text("".join(copies))


def begin_another_run(folder: Path) -> None:
    run = folder / "run"
    run.mkdir()
    (run / "manifest.json").write_text(json.dumps({"config": {"seed": 7}}))
    (run / "metrics.jsonl").touch()


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "statements": (copy_statements, "4 held-out problems are training problems too"),
    "no held-out problems": (
        lambda folder: (folder / "heldout.jsonl").unlink(),
        "heldout.jsonl does not exist",
    ),
    "empty weights": (
        lambda folder: (folder / "model" / "model.safetensors").write_bytes(b""),
        "model.safetensors is empty (0 bytes)",
    ),
    "empty tokenizer": (
        lambda folder: (folder / "model" / "tokenizer.json").write_text("{}"),
        "tokenizer.json holds no tokenizer",
    ),
    "no model": (lambda folder: shutil.rmtree(folder / "model"), "is no folder here"),
    "another run": (begin_another_run, "was begun under another config"),
    "a link": (
        lambda folder: (folder / "run").symlink_to("/nowhere/run"),
        "run is a link to /nowhere/run, which is not there",
    ),
}
"""What is done to the files of a sound plan, and what is then said."""


@pytest.mark.parametrize("kind", SPOILED)
def test_files_that_training_would_refuse_are_refused_in_a_line(
    kind: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil, message = SPOILED[kind]
    words = [*write_plan(tmp_path), "--model.path", str(model)]
    spoil(tmp_path)
    assert message in refusal_of(words, capsys)


def test_fewer_problems_than_a_step_samples_are_refused_in_a_line(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [*write_plan(tmp_path, train=40), "--model.path", str(model)]
    expected = "batch.train_batch_size=64 is more than the 40 training problems"
    assert expected in refusal_of(words, capsys)


def test_training_problems_as_held_out_ones_are_refused_in_a_line(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    same = ["--problems.heldout", str(tmp_path / "train.jsonl")]
    words = [*write_plan(tmp_path), "--model.path", str(model), *same]
    assert "64 held-out problems are training problems too" in refusal_of(words, capsys)


def write_rows(folder: Path, *, number: int) -> list[str]:
    """Write training problems as rows of a data set in a folder; return the flags that name it."""
    rows = folder / "set" / "default" / "train.jsonl"
    rows.parent.mkdir(parents=True)
    problems = generate_problems(split="train", num_problems=number, tiers=("easy",))
    rows.write_text("".join(f"{p.model_dump_json(exclude_defaults=True)}\n" for p in problems))
    kinds = ["--problems.kind", "hub", "--problems.format", "microcoder"]
    return [*kinds, "--problems.id", str(folder / "set")]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("too few", "batch.train_batch_size=64 is more than the 8 training problems"),
        ("shared", "64 held-out problems are training problems too"),
        ("no split", "check subset and split"),
    ],
)
def test_a_data_set_in_a_folder_is_read_by_the_dry_run(
    kind: str,
    message: str,
    tiny_checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    number = 8 if kind == "too few" else 64
    words = write_plan(tmp_path)
    heldout = tmp_path / "heldout.jsonl"
    if kind == "shared":
        shutil.copy(tmp_path / "train.jsonl", heldout)
    first = words.index("--problems.kind")
    plan = [*words[:first], *write_rows(tmp_path, number=number)]
    plan += ["--problems.heldout", str(heldout), "--model.kind", "hugging_face"]
    plan += ["--model.path", str(tiny_checkpoint), "--rollout.max_response_tokens", "256"]
    if kind == "no split":
        plan += ["--problems.split", "training"]
    with pytest.raises(SystemExit, match="2"):
        main(plan)
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_a_plan_that_can_start_is_not_refused_and_loads_no_torch(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    words = [*write_plan(tmp_path), "--model.path", str(tiny_checkpoint), "--gpu-memory-gib", "80"]
    program = (
        f"import sys; from microcoder.cli import main; main({words!r}); assert 'torch' not in "
        "sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_what_this_machine_lacks_is_said_and_refuses_no_plan(
    tiny_checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vLLM is here")
    main([*write_plan(tmp_path), "--model.path", str(tiny_checkpoint), "--rollout.backend", "vllm"])
    assert "this machine cannot start it: rollout.backend" in capsys.readouterr().out
