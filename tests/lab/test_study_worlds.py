"""What studies need of the micro world: layouts that evaluators disagree about, and mixtures."""

from __future__ import annotations

from pathlib import Path

from microcoder.data.micro import ThinkingShares, generate_chain_demonstrations
from microcoder.data.micro.chains import make_chain_problem
from microcoder.judge import Judge
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Checker
from microcoder.lab.studies.design import QUICK, StudyFile, find_studies
from microcoder.lab.studies.work import plan_runs
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.tasks import load_tasks

ROOT = Path(__file__).parents[2]


def configs_of(file: StudyFile) -> dict[str, TrainConfig]:
    """The recipe of each level, with the first seed."""
    runs = plan_runs(file, scale=QUICK, root=Path("runs"))
    return {run.name: run.config for run in runs if run.seed == 0}


def test_a_right_value_in_another_layout_passes_the_robust_evaluator_alone() -> None:
    shown = generate_chain_demonstrations(num=60, shares=ThinkingShares(layout=1.0), thorough=True, styles=("stdin",))
    right = list(shown)[:24]
    programs = [extract_program(d.response, is_truncated=False) for d in right]
    problems = [make_chain_problem(d.task, f"p{i}") for i, d in enumerate(right)]
    strict = [problem.model_copy(update={"checker": Checker(type="exact")}) for problem in problems]
    with Judge(workers=1) as judge:
        assert all(verdict.is_accepted for verdict in judge.judge(programs, problems))
        assert not any(verdict.is_accepted for verdict in judge.judge(programs, strict))


def test_strict_comparison_is_of_training_alone() -> None:
    file = next(file for file in find_studies(None, folder=ROOT / "studies") if file.name == "002_evaluator")
    checkers = {}
    for level in file.study.levels:
        tasks = load_tasks(configs_of(file)[level])
        checkers[level] = [{task.problem.checker.type for task in split} for split in (tasks.train, tasks.heldout)]
    assert checkers == {
        "robust": [{"default"}, {"default"}],
        "strict": [{"exact"}, {"default"}],
    }


def test_mixtures_are_measured_on_the_same_problems() -> None:
    file = next(file for file in find_studies(None, folder=ROOT / "studies") if file.name == "004_data")
    tasks = {level: load_tasks(config) for level, config in configs_of(file).items()}
    heldout = {level: [task.problem.id for task in found.heldout] for level, found in tasks.items()}
    assert heldout["easy"] == heldout["mixed"] == heldout["hard"]
    assert {task.problem.tier for task in tasks["hard"].train} == {"hard"}
    assert {task.problem.tier for task in tasks["easy"].train} == {"easy"}
