"""Stored programs judged anew by the strict comparison: what only the robust one accepts is the gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from measures import judge_both_ways

from microcoder.data.micro import ThinkingShares, generate_chain_demonstrations
from microcoder.data.micro.chains import make_chain_problem
from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Checker, Rollout
from microcoder.lab.studies.work import Work
from microcoder.train.algorithm.scoring import score_heldout
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.rollouts import rollout_row
from microcoder.train.run.tasks import load_tasks
from microcoder.train.runs import RunDirectory, write_rollouts

ROOT = Path(__file__).parents[2]
TIDY = "```python\n{}```"


def test_the_gap_is_what_the_strict_comparison_refuses(tmp_path: Path) -> None:
    keys = {"problems.num_train": 64, "problems.num_heldout": 4, "evaluator.workers": 1, "problems.tiers": ["easy"]}
    config = load_config(TrainConfig, [ROOT / "recipes" / "lab" / "layouts.toml"], layers=[keys])
    problem = next(t.problem for t in load_tasks(config).train if t.problem.tests[0].output.strip().isdigit())
    answers = {test.input: test.output.strip() for test in problem.tests}
    table = f"import sys\nfound = {answers!r}[sys.stdin.read()]\n"
    right, padded = table + "print(found)\n", table + "print(' ' + found + ' ')\n"
    programs = [right, padded, "print('none')\n", right]
    rollouts = [Rollout(problem.id, problem.statement, TIDY.format(code), (1, 2), False) for code in programs]
    run = RunDirectory(tmp_path / "run")
    with Judge(workers=1) as judge:
        (samples,) = score_heldout([rollouts], [problem], judge=judge)
    for step, kept in ((1, samples), (2, [samples[0], samples[2], samples[3]])):
        write_rollouts(run.rollout_file(step), [rollout_row(one, step=step, temperature=1.0) for one in kept])

    work = Work("s", "gap", 3, config, tmp_path / "own", runs={"robust": run.root})
    found = {(row.metric, row.level): (row.unit, row.value) for row in judge_both_ways(work)}
    assert found == {
        ("accepted", "robust"): (f"seed3/{problem.id}", 0.75),
        ("accepted", "strict"): (f"seed3/{problem.id}", 0.5),
        ("gap", "early"): ("seed3", 0.25),
        ("gap", "late"): ("seed3", 0.0),
    }

    strict = load_config(TrainConfig, layers=[config.model_dump(mode="json"), {"evaluator.comparison": "strict"}])
    with pytest.raises(DataError, match="was trained with comparison = 'strict', not robust"):
        list(judge_both_ways(replace(work, config=strict)))


def test_a_right_value_in_another_layout_passes_the_robust_evaluator_alone() -> None:
    shown = generate_chain_demonstrations(num=60, shares=ThinkingShares(layout=1.0), thorough=True, styles=("stdin",))
    right = list(shown)[:24]
    programs = [extract_program(d.response, is_truncated=False) for d in right]
    problems = [make_chain_problem(d.task, f"p{i}") for i, d in enumerate(right)]
    strict = [problem.model_copy(update={"checker": Checker(type="exact")}) for problem in problems]
    with Judge(workers=1) as judge:
        assert all(verdict.is_accepted for verdict in judge.judge(programs, problems))
        assert not any(verdict.is_accepted for verdict in judge.judge(programs, strict))
