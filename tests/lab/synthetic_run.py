"""A run directory as training writes it,
made of the real types by a seeded pretence of learning.
"""

import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.files import append_row, write_json
from microcoder.judge.core.rewards import score_verdict
from microcoder.judge.core.types import Outcome, Rollout, TestResult, Verdict
from microcoder.train.metrics import StepMetrics, summarise_evaluation, summarise_step
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.run.checkpoints import RunClock
from microcoder.train.run.training import summarise
from microcoder.train.runs import RunDirectory, rollout_row, write_rollouts

TIERS = {"easy": (0.45, 0.97), "medium": (0.12, 0.72), "hard": (0.0, 0.2)}
LIMIT = 256
SAMPLES = 4


@dataclass
class Recipe:
    """What to pretend."""

    num_steps: int = 24
    evaluate_every: int = 6
    num_heldout: int = 30
    is_finished: bool = True
    num_unscored_each: int = 0
    completion: str = ""
    manifest: dict[str, Any] | None = None
    seed: int = 0


def write_run(root: Path, recipe: Recipe | None = None) -> Path:
    """Write one run and return its folder."""
    recipe = recipe or Recipe()
    run = RunDirectory(root)
    random_source = random.Random(recipe.seed)
    write_json(run.manifest, MANIFEST | (recipe.manifest or {}))
    for step in range(recipe.num_steps + 1):
        skill = step / max(recipe.num_steps, 1)
        if step:
            groups = _sample(recipe, random_source, skill, "train", 6)
            append_row(run.metrics, asdict(_step_metrics(step, groups, skill)))
            rows = []
            for group in groups:
                for sample in group:
                    rows.append(rollout_row(sample, step=step, temperature=1.2))
            write_rollouts(run.rollout_file(step), rows)
        if step % recipe.evaluate_every == 0 or step == recipe.num_steps:
            groups = _sample(recipe, random_source, skill, "heldout", recipe.num_heldout)
            metrics = summarise_evaluation(groups, step=step, temperature=0.6, seconds=1.0)
            append_row(
                run.evaluations, asdict(replace(metrics, diversity=0.6, seconds={"generate": 1.0}))
            )
            rows = []
            for group in groups:
                for sample in group:
                    rows.append(rollout_row(sample, step=step, temperature=0.6))
            write_rollouts(run.evaluation_file(step), rows)
    if recipe.is_finished:
        write_json(
            run.summary, {**summarise(run, RunClock()), "wall_seconds": 312.5, "cpu_seconds": 590.0}
        )
    return root


MANIFEST: dict[str, Any] = {
    "format": 1,
    "microcoder_version": "0.1.0",
    "command": ["microcoder", "train", "-c", "recipes/micro/config.toml", "--run-dir", "runs/demo"],
    "config": {
        "model": {"kind": "micro", "cache": ".cache/microcoder"},
        "masking": {"kind": "conditional", "probability": 0.2, "window": 128},
        "advantage": {"kind": "grpo"},
        "num_steps": 24,
        "tiers": ["easy", "medium", "hard"],
        "resume_from": None,
    },
    "digest": "3f2a9c1be0d7",
    "seed": 0,
    "git": {"commit": "4248b3d0c1f2a3b4c5d6e7f8091a2b3c4d5e6f70", "is_dirty": False},
    "packages": {"torch": "2.13.0", "trl": "1.16.0", "numpy": "2.4.6"},
    "machine": {"cpu": "2 cores", "gpu": None, "python": "3.11.7"},
    "isolation": {"level": "process", "namespaces": ["pid", "net"]},
    "started": "2026-11-20T23:30:00+00:00",
    "name": "demo",
}


def _sample(
    recipe: Recipe,
    random_source: random.Random,
    skill: float,
    split: str,
    num_problems: int,
) -> list[list[ScoredRollout]]:
    groups = []
    for problem in range(num_problems):
        tier = list(TIERS)[problem % len(TIERS)]
        low, high = TIERS[tier]
        chance = min(1.0, max(0.0, low + (high - low) * skill + random_source.gauss(0, 0.15)))
        num_unscored = recipe.num_unscored_each if problem == 0 else 0
        name = f"{split}/{problem:03d}"
        group = []
        for index in range(SAMPLES):
            group.append(_rollout(recipe, random_source, chance, skill, name, index < num_unscored))
        groups.append(
            [replace(one, tier=tier, sample_index=index) for index, one in enumerate(group)]
        )
    return groups


def _rollout(
    recipe: Recipe,
    random_source: random.Random,
    chance: float,
    skill: float,
    problem_id: str,
    is_unscored: bool,
) -> ScoredRollout:
    is_solved = random_source.random() < chance
    is_truncated = not is_solved and random_source.random() < 0.12 + 0.1 * skill
    if is_solved:
        body = "a, b = map(int, input().split())\nprint(a + b)\n"
    else:
        body = "print(int(input()) + 1)\n"
    fence = "" if is_truncated else "```"
    completion = f"We add <both> numbers & print.\n```python\n{body}{fence}\n{recipe.completion}"
    program = extract_program(completion, is_truncated=is_truncated)
    if is_solved:
        outcome = Outcome.ACCEPTED
    else:
        outcome = random_source.choice([Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR])
    if program.code is None:
        outcome = Outcome.NO_CODE
    if is_unscored:
        outcome = Outcome.SANDBOX_FAULT
    passed = TestResult(Outcome.ACCEPTED, 0.02, 0.03, 9.5, "exact", "")
    failed = TestResult(outcome, 0.02, 0.03, 9.5, "", "line 1: expected '3', got '<2>'", "<2>\n")
    tests = (passed,) * 3 if outcome is Outcome.ACCEPTED else (passed, failed)
    verdict = Verdict(
        outcome,
        () if outcome in (Outcome.NO_CODE, Outcome.SANDBOX_FAULT) else tests,
        tests_total=3,
    )
    num_tokens = LIMIT if is_truncated else random_source.randint(40, 90 + int(110 * skill))
    is_masked = is_truncated and random_source.random() < 0.5
    return ScoredRollout(
        rollout=Rollout(
            problem_id,
            f"Add the numbers of {problem_id}.",
            completion,
            (1,) * num_tokens,
            is_truncated,
        ),
        program=program,
        verdict=verdict,
        reward=score_verdict(verdict),
        advantage=0.0 if is_masked or is_unscored else 0.7 if is_solved else -0.5,
        masked_why="truncated, incomplete, not repeating, drawn with probability 0.2"
        if is_masked
        else "",
        tier=None,
        sample_index=0,
    )


def _step_metrics(step: int, groups: list[list[ScoredRollout]], skill: float) -> StepMetrics:
    seconds = {"generate": 4.0 + 3 * skill, "judge": 1.1, "update": 2.5 + skill, "checkpoint": 0.2}
    if step % 6 == 0:
        seconds["evaluate"] = 3.0
    metrics = summarise_step(
        groups,
        step=step,
        temperature=1.0 if skill < 0.5 else 1.2,
        max_response_tokens=LIMIT,
        optimizer={"loss": 0.01, "grad_norm": 0.4},
        seconds={**seconds, "total": sum(seconds.values())},
    )
    # The advantages are pretended, and so is what would be made of them.
    told = {
        "diversity": 0.55 + 0.2 * skill if step != 3 else None,
        "zero_variance_share": 0.5 - 0.3 * skill,
    }
    untold = {"masked": {}, "masked_effective_share": 0.0, "doses": {}, "sampled_accuracy": None}
    return replace(metrics, **told, **untold)  # pyrefly: ignore[bad-argument-type]
