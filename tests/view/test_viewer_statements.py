"""A test is shown beside a rollout only where the model saw its statement;
else the page says why not.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import microcoder
from microcoder.data.benchmarks import HumanEval, digest_questions
from microcoder.judge.core.types import Problem
from microcoder.train.recipe.judge import PromptConfig, make_prompt_builder
from microcoder.train.recipe.recipe import MicroProblems, TrainConfig
from microcoder.train.run.tasks import generate_splits, load_tasks
from microcoder.train.runs import RunDirectory, read_rollouts, write_rollouts
from microcoder.view import open_collection
from microcoder.view.answers import show_test
from microcoder.view.bundle import write_bundle
from microcoder.view.files import ShownProblem
from microcoder.view.statements import PromptFrame, find_frame, is_asked_by
from tests.view.parts.viewer_runs import (
    HUMANEVAL,
    piece,
    write_evaluation,
    write_lines,
    write_problems,
    write_training,
)

Row = dict[str, Any]


UNEQUAL_TIERS = {
    "kind": "micro",
    "num_train": 8,
    "num_heldout": 12,
    "seed": 0,
    "tiers": ["easy", "medium"],
    "heldout_tiers": ["easy", "medium", "hard"],
    "styles": ["stdin", "function"],
}
"""A world whose held-out problems are of other tiers than those that are trained on,
as the demo's are.
"""


def answer_problems(run: Path, problems: Sequence[Problem], *, step: int, is_heldout: bool) -> None:
    """Write one rollout for each problem, with the prompt of a chat template around its
    statement.
    """
    place = RunDirectory(run)
    path = place.evaluation_file(step) if is_heldout else place.rollout_file(step)
    sample = read_rollouts(path)[0]
    rows = []
    for problem in problems:
        prompt = f"<|user|>{problem.statement}<|assistant|>"
        asked = {"problem_id": problem.id, "prompt": prompt, "tests_total": len(problem.tests)}
        rows.append({**sample, **asked})
    write_rollouts(path, rows)


def write_generated(root: Path, problems: Row) -> tuple[Path, list[Problem]]:
    """Write a run on a generated world, whose rollouts answer the problems that
    training was given.
    """
    config = {"problems": problems, "prompt": {"style": "bare"}}
    options = {"num_steps": 1, "evaluate_every": 1, "manifest": {"config": config}}
    run = write_training(root, **options)
    train, heldout = generate_splits(MicroProblems.model_validate(problems))
    answer_problems(run, train, step=1, is_heldout=False)
    for step in (0, 1):
        answer_problems(run, heldout, step=step, is_heldout=True)
    return run, [*train, *heldout]


@pytest.mark.parametrize("missing", [(), ("styles",), ("tiers", "heldout_tiers")])
def test_every_generated_problem_shows_its_own_tests(
    tmp_path: Path, missing: tuple[str, ...]
) -> None:
    problems = {}
    for key, value in UNEQUAL_TIERS.items():
        if key not in missing:
            problems[key] = value
    run, asked = write_generated(tmp_path / "run", problems)
    collection = open_collection([run])
    assert len(asked) == 20
    for problem in asked:
        shown = show_test(collection, {"run": "demo", "problem": problem.id, "test": "0"})
        assert shown["is_known"], shown
        assert shown["statement"] == problem.statement
        assert shown["input"] == problem.tests[0].input
        assert shown["expected"] == problem.tests[0].output


def test_a_generator_that_changed_after_the_run_shows_no_other_problem(tmp_path: Path) -> None:
    run, asked = write_generated(tmp_path / "run", UNEQUAL_TIERS)
    manifest = json.loads((run / "manifest.json").read_text())
    # As if another version drew other problems under the same ids.
    manifest["config"]["problems"]["seed"] = 1
    (run / "manifest.json").write_text(json.dumps(manifest))
    shown = show_test(open_collection([run]), {"run": "demo", "problem": asked[-1].id, "test": "0"})
    assert not shown["is_known"]
    assert "the run's seed, generated anew is not the one that the model saw" in shown["why"]


def same(problem: Row) -> Row:
    return problem


def respaced(problem: Row) -> Row:
    return {**problem, "statement": problem["statement"].replace(" ", "  ") + "\n"}


def reworded(problem: Row) -> Row:
    return {**problem, "statement": problem["statement"].replace("Add", "Subtract")}


def cut(problem: Row) -> Row:
    return {**problem, "statement": problem["statement"].split(" of ")[0]}


def grown(problem: Row) -> Row:
    return {**problem, "statement": problem["statement"] + " All of them."}


def with_a_test_less(problem: Row) -> Row:
    return {**problem, "tests": problem["tests"][:-1]}


def of_another(problem: Row) -> Row:
    return {**problem, "statement": problem["statement"][:-2] + "9."}


OTHER_STATEMENT = (
    "The statement of this problem in problems.jsonl is not the one that the model saw."
)
CHANGES = [
    (same, ""),
    (respaced, ""),
    (reworded, OTHER_STATEMENT),
    (cut, OTHER_STATEMENT),
    (grown, OTHER_STATEMENT),
    (of_another, OTHER_STATEMENT),
    (with_a_test_less, "holds 2 tests of this problem, and the run was judged by 3."),
]


@pytest.mark.parametrize("is_named", [False, True], ids=["by the run's config", "by --problems"])
@pytest.mark.parametrize(
    ("change", "why"),
    CHANGES,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_problem_file_that_changed_after_the_run_says_so(
    tmp_path: Path,
    change: Callable[[Row], Row],
    why: str,
    is_named: bool,
) -> None:
    file = write_problems(tmp_path / "problems.jsonl")
    rows = list(map(json.loads, file.read_text().splitlines()))
    place = str(file if not is_named else tmp_path / "gone.jsonl")
    problems = {"kind": "files", "train": place, "heldout": place}
    config = {"problems": problems, "prompt": {"style": "bare"}}
    run = write_training(tmp_path / "run", num_steps=1, manifest={"config": config})
    write_lines(file, [change(row) for row in rows])
    collection = open_collection([run], problem_files=[file] if is_named else [])
    asked = {"run": "demo", "problem": "train/001", "test": "1"}
    shown = show_test(collection, asked)
    assert shown["is_known"] == (not why)
    if why:
        assert shown["why"].startswith("Not shown: the problem file changed after the run")
        assert shown["why"].endswith(why)
        assert "expected" not in shown
    page = write_bundle(collection, tmp_path / "bundle").page
    chunk = piece(page.parent, "demo/tests-0")
    assert (chunk["train/001"]["tests"] != []) == (not why)
    assert chunk["train/001"].get("why", "") == shown.get("why", "")


def test_tests_that_changed_under_the_same_statement_are_shown_with_a_word_on_it(
    tmp_path: Path,
) -> None:
    file = write_problems(tmp_path / "problems.jsonl")
    rows = list(map(json.loads, file.read_text().splitlines()))
    splits = {}
    for split in ("train", "heldout"):
        splits[split] = [r for r in rows if r["id"].startswith(split)]
    paths = {}
    for split, found in splits.items():
        paths[split] = str(write_lines(tmp_path / f"{split}.jsonl", found))
    config = {
        "model": {"kind": "micro"},
        "problems": {"kind": "files", **paths},
        "prompt": {"style": "bare"},
        "batch": {"train_batch_size": 4, "ppo_mini_batch_size": 2},
    }
    asked = load_tasks(TrainConfig.model_validate(config)).as_record()
    manifest = {"config": config, "problems": asked, "microcoder_version": microcoder.__version__}
    run = write_training(tmp_path / "run", num_steps=1, manifest=manifest)
    words = {"run": "demo", "problem": "train/001", "test": "0"}
    shown = show_test(open_collection([run]), words)
    assert shown["is_known"] is True
    assert shown["origin"] == "train.jsonl"
    changed = []
    for row in rows:
        changed.append({**row, "tests": [{**test, "output": "4\n"} for test in row["tests"]]})
    write_lines(Path(paths["train"]), changed[:6])
    shown = show_test(open_collection([run]), words)
    assert shown["is_known"]
    assert shown["origin"] == (
        "train.jsonl, which changed after the run: the statement is the same, the tests may not be"
    )


def test_a_statement_is_known_again_in_every_style_of_prompt(tmp_path: Path) -> None:
    problem = Problem.model_validate(
        {"id": "a", "statement": "Add two numbers.\n", "tests": [{"input": "1", "output": "2"}]}
    )
    asked = ShownProblem([], problem.statement, None, "default", "a.jsonl", problem)
    for style in (
        {"style": "instruct"},
        {"style": "bare"},
        {"style": "template", "options": {"text": "Q: {statement}"}},
    ):
        made = make_prompt_builder(PromptConfig.model_validate(style))(problem).text
        prompt = f"<|im_start|>user\n{made.strip()}<|im_end|>"
        assert is_asked_by(prompt, asked, style=style, frame=None)
    # A style of the user's own is not run: its text may add to the statement,
    # and may not leave it out.
    own = {"style": "own.py:ask"}
    assert is_asked_by("Please: Add two numbers. Thanks.", asked, style=own, frame=None)
    assert not is_asked_by("Please: Add numbers. Thanks.", asked, style=own, frame=None)


def test_the_frame_of_prompts_is_what_all_of_them_share() -> None:
    frame = find_frame(["<u>Add 1.</u>", "<u>Halve 10.</u>", "<u>Sum\n3.</u>"])
    assert frame is not None
    assert frame == PromptFrame(before=len("<u>"), after=len(".</u>"))
    assert frame.holds("<u>Add 1.</u>", "Add 1.")
    assert not frame.holds("<u>Add 1. Then halve.</u>", "Add 1.")
    assert find_frame(["<u>Add 1.</u>"]) is None


def test_an_evaluation_that_recorded_no_statements_is_known_by_its_whole_benchmark(
    tmp_path: Path,
) -> None:
    path = write_lines(tmp_path / "HumanEval.jsonl", [HUMANEVAL])
    folder = write_evaluation(tmp_path / "eval")
    write_lines(folder / "questions.jsonl", [{"problem_id": "HumanEval/0"}])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"] = {"benchmark": {"kind": "humaneval", "path": str(path)}}
    manifest["benchmark"] = {
        "digest": digest_questions(HumanEval(kind="humaneval", path=path).read())
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    asked = {"run": "eval", "problem": "HumanEval/0", "test": "0"}
    assert show_test(open_collection([folder]), asked)["is_known"]
    write_lines(path, [{**HUMANEVAL, "prompt": HUMANEVAL["prompt"].replace("Double", "Halve")}])
    shown = show_test(open_collection([folder]), asked)
    assert shown["why"].startswith("Not shown: this evaluation recorded no statements")
