"""What published studies measure: a step under several rules,
and stored programs by the strict comparison.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from measures import contrast_length, judge_both_ways, measure_shifts, step_under_rules
from transformers import AutoModelForCausalLM, AutoTokenizer

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Rollout
from microcoder.lab.studies.work import MeasuredValue, Work
from microcoder.train.algorithm.scoring import score_heldout
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.tasks import load_tasks
from microcoder.train.runs import RunDirectory, read_rollouts, rollout_row, write_rollouts

RULES = {"none": {}, "all": {"algorithm.masking.kind": "all"}}


@pytest.fixture(scope="module")
def taken(
    tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[MeasuredValue]]:
    """The folder and the rows of one step under no mask and under the full one."""
    folder = tmp_path_factory.mktemp("steps")
    layer = {
        "prompt.style": "bare",
        "cpu_threads": 1,
        "model": {
            "kind": "hugging_face",
            "path": str(tiny_checkpoint),
            "compute_dtype": "float32",
            "gradient_checkpointing": False,
        },
        "problems": {"kind": "micro", "num_train": 48, "num_heldout": 8, "tiers": ["easy"]},
        "rollout": {
            "num_samples": 8,
            "max_response_tokens": 28,
            "temperature": {"kind": "constant", "value": 1.0},
        },
        "batch": {"train_batch_size": 48, "ppo_mini_batch_size": 48, "micro_batch_rollouts": 64},
        "optimizer": {"learning_rate": 1e-3, "warmup_steps": 0},
        "algorithm.masking.kind": "none",
        "algorithm.loss.clip_high": 0.2,
        "evaluation.samples_per_problem": 4,
        "evaluator.workers": 1,
    }
    config = load_config(TrainConfig, layers=[layer])
    return folder, list(step_under_rules(Work("masks", "one_step", 0, config, folder), rules=RULES))


def test_a_mask_moves_truncated_responses_and_its_reach_is_reported(
    taken: tuple[Path, list[MeasuredValue]],
) -> None:
    folder, rows = taken
    found = {(row.metric, row.level): row.value for row in rows}
    unmasked = read_rollouts(RunDirectory(folder / "none").rollout_file(1))
    pushed = []
    for row in unmasked:
        pushed.append(row["is_truncated"] and row["advantage"] != 0)
    assert found["masked_effective", "none"] == 0
    assert 0 < found["masked_effective", "all"] == pytest.approx(sum(pushed) / len(pushed))
    assert found["length_shift", "all"] != found["length_shift", "none"]
    assert {row.unit for row in rows} == {"seed0"}


def test_a_shift_is_the_difference_of_two_log_probabilities(
    taken: tuple[Path, list[MeasuredValue]], tiny_checkpoint: Path
) -> None:
    folder, rows = taken
    run = RunDirectory(folder / "none")
    samples = read_rollouts(run.evaluation_file(0))
    shifts = measure_shifts(tiny_checkpoint, run.model, samples)
    assert contrast_length(shifts) == next(
        r.value for r in rows if (r.metric, r.level) == ("length_shift", "none")
    )
    assert {
        shift.change for shift in measure_shifts(tiny_checkpoint, tiny_checkpoint, samples)
    } == {0.0}

    shift = max(shifts, key=lambda s: len(s.response.token_ids))
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny_checkpoint)
    text = tokenizer.batch_decode([list(shift.response.token_ids)], skip_special_tokens=True)[0]
    assert text in {row["completion"] for row in samples}
    ids = torch.tensor([[*shift.response.prompt_ids, *shift.response.token_ids]])
    sums = []
    for folder_of in (tiny_checkpoint, run.model):
        with torch.no_grad():
            logps = AutoModelForCausalLM.from_pretrained(folder_of)(ids).logits[0].log_softmax(-1)
        places = range(len(shift.response.prompt_ids), ids.shape[1])
        sums.append(sum(float(logps[place - 1, ids[0, place]]) for place in places))
    assert sums[1] - sums[0] == pytest.approx(shift.change, abs=1e-3)


ROOT = Path(__file__).parents[2]
TIDY = "```python\n{}```"


def test_the_gap_is_what_the_strict_comparison_refuses(tmp_path: Path) -> None:
    keys = {
        "problems.num_train": 64,
        "problems.num_heldout": 4,
        "evaluator.workers": 1,
        "problems.tiers": ["easy"],
    }
    config = load_config(TrainConfig, [ROOT / "recipes" / "lab" / "layouts.toml"], layers=[keys])
    problem = next(
        t.problem for t in load_tasks(config).train if t.problem.tests[0].output.strip().isdigit()
    )
    answers = {test.input: test.output.strip() for test in problem.tests}
    table = f"import sys\nfound = {answers!r}[sys.stdin.read()]\n"
    right = table + "print(found)\n"
    padded = table + "print(' ' + found + ' ')\n"
    programs = [right, padded, "print('none')\n", right]
    rollouts = []
    for code in programs:
        rollouts.append(Rollout(problem.id, problem.statement, TIDY.format(code), (1, 2), False))
    run = RunDirectory(tmp_path / "run")
    with Judge(workers=1) as judge:
        (samples,) = score_heldout([rollouts], [problem], judge=judge)
    for step, kept in ((1, samples), (2, [samples[0], samples[2], samples[3]])):
        write_rollouts(
            run.rollout_file(step), [rollout_row(one, step=step, temperature=1.0) for one in kept]
        )

    work = Work("s", "gap", 3, config, tmp_path / "own", runs={"robust": run.root})
    found = {(row.metric, row.level): (row.unit, row.value) for row in judge_both_ways(work)}
    assert found == {
        ("accepted", "robust"): (f"seed3/{problem.id}", 0.75),
        ("accepted", "strict"): (f"seed3/{problem.id}", 0.5),
        ("gap", "early"): ("seed3", 0.25),
        ("gap", "late"): ("seed3", 0.0),
    }

    strict = load_config(
        TrainConfig, layers=[config.model_dump(mode="json"), {"evaluator.comparison": "strict"}]
    )
    with pytest.raises(DataError, match="was trained with comparison = 'strict', not robust"):
        list(judge_both_ways(replace(work, config=strict)))
