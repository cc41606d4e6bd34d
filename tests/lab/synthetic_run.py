"""A run directory as training writes it, made of the real types by a seeded pretence of learning."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.files import append_row, write_json
from microcoder.judge.core.rewards import score_verdict
from microcoder.judge.core.types import Outcome, Rollout, TestResult, Verdict
from microcoder.train.metrics import (
    EvaluationMetrics,
    ScoredRollout,
    StepMetrics,
    count_methods,
    count_outcomes,
    rollout_row,
    summarise_accuracy,
)
from microcoder.train.runs import RunDirectory, write_rollouts

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
    run, random_source = RunDirectory(root), random.Random(recipe.seed)
    write_json(run.manifest, MANIFEST | (recipe.manifest or {}))
    evaluated = []
    for step in range(recipe.num_steps + 1):
        skill = step / max(recipe.num_steps, 1)
        if step:
            samples = _sample(recipe, random_source, skill, "train", 6)
            append_row(run.metrics, _step_metrics(step, samples, skill).as_row())
            write_rollouts(run.rollout_file(step), [rollout_row(s, step=step, temperature=1.2) for s in samples])
        if step % recipe.evaluate_every == 0 or step == recipe.num_steps:
            samples = _sample(recipe, random_source, skill, "heldout", recipe.num_heldout)
            evaluated.append(_evaluation_metrics(step, samples))
            append_row(run.evaluations, evaluated[-1].as_row())
            write_rollouts(run.evaluation_file(step), [rollout_row(s, step=step, temperature=0.6) for s in samples])
    if recipe.is_finished:
        write_json(run.summary, _summary(recipe, evaluated[0], evaluated[-1]))
    return root


MANIFEST: dict[str, Any] = {
    "format": 1,
    "microcoder_version": "0.1.0",
    "command": "microcoder train -c recipes/micro/config.toml --run-dir runs/demo",
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
    recipe: Recipe, random_source: random.Random, skill: float, split: str, num_problems: int
) -> list[ScoredRollout]:
    samples = []
    for problem in range(num_problems):
        tier = list(TIERS)[problem % len(TIERS)]
        low, high = TIERS[tier]
        chance = min(1.0, max(0.0, low + (high - low) * skill + random_source.gauss(0, 0.15)))
        for index in range(SAMPLES):
            is_unscored = problem == 0 and index < recipe.num_unscored_each
            samples.append(
                _rollout(recipe, random_source, chance, skill, tier, f"{split}/{problem:03d}", index, is_unscored)
            )
    return samples


def _rollout(
    recipe: Recipe,
    random_source: random.Random,
    chance: float,
    skill: float,
    tier: str,
    problem_id: str,
    index: int,
    is_unscored: bool,
) -> ScoredRollout:
    is_solved = random_source.random() < chance
    is_truncated = not is_solved and random_source.random() < 0.12 + 0.1 * skill
    body = "a, b = map(int, input().split())\nprint(a + b)\n" if is_solved else "print(int(input()) + 1)\n"
    completion = (
        f"We add <both> numbers & print.\n```python\n{body}{'' if is_truncated else '```'}\n{recipe.completion}"
    )
    program = extract_program(completion, is_truncated=is_truncated)
    outcome = Outcome.ACCEPTED if is_solved else random_source.choice([Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR])
    if program.code is None:
        outcome = Outcome.NO_CODE
    if is_unscored:
        outcome = Outcome.SANDBOX_FAULT
    tests = () if outcome in (Outcome.NO_CODE, Outcome.SANDBOX_FAULT) else _tests(outcome)
    verdict = Verdict(outcome, tests, tests_total=3)
    num_tokens = LIMIT if is_truncated else random_source.randint(40, 90 + int(110 * skill))
    is_masked = is_truncated and random_source.random() < 0.5
    return ScoredRollout(
        rollout=Rollout(problem_id, f"Add the numbers of {problem_id}.", completion, (1,) * num_tokens, is_truncated),
        program=program,
        verdict=verdict,
        reward=score_verdict(verdict),
        advantage=0.0 if is_masked or is_unscored else 0.7 if is_solved else -0.5,
        masked_why="truncated, incomplete, not repeating, drawn with probability 0.2" if is_masked else "",
        tier=tier,
        sample_index=index,
    )


def _tests(outcome: Outcome) -> tuple[TestResult, ...]:
    passed = TestResult(Outcome.ACCEPTED, 0.02, 0.03, 9.5, "exact", "")
    if outcome is Outcome.ACCEPTED:
        return (passed,) * 3
    return (passed, TestResult(outcome, 0.02, 0.03, 9.5, "", "line 1: expected '3', got '<2>'", "<2>\n"))


def _share(samples: Sequence[ScoredRollout], outcome: Outcome) -> float:
    return sum(s.verdict.outcome is outcome for s in samples) / len(samples)


def _step_metrics(step: int, samples: Sequence[ScoredRollout], skill: float) -> StepMetrics:
    lengths = [len(s.rollout.token_ids) for s in samples]
    accuracy, by_tier = summarise_accuracy(samples)
    seconds = {"generate": 4.0 + 3 * skill, "judge": 1.1, "update": 2.5 + skill, "checkpoint": 0.2}
    if step % 6 == 0:
        seconds["evaluate"] = 3.0
    return StepMetrics(
        step=step,
        reward_mean=accuracy,
        accuracy_by_tier=by_tier,
        length_mean=sum(lengths) / len(lengths),
        length_max=max(lengths),
        diversity=0.55 + 0.2 * skill if step != 3 else None,
        temperature=1.0 if skill < 0.5 else 1.2,
        max_response_tokens=LIMIT,
        truncated_share=sum(s.rollout.is_truncated for s in samples) / len(samples),
        masked_share=sum(bool(s.masked_why) for s in samples) / len(samples),
        no_code_share=_share(samples, Outcome.NO_CODE),
        unscored_share=_share(samples, Outcome.SANDBOX_FAULT),
        zero_variance_share=0.5 - 0.3 * skill,
        outcomes=count_outcomes(samples),
        methods=count_methods(samples),
        masked={},
        optimizer={"loss": 0.01, "grad_norm": 0.4},
        seconds={**seconds, "total": sum(seconds.values())},
    )


def _evaluation_metrics(step: int, samples: Sequence[ScoredRollout]) -> EvaluationMetrics:
    solved: dict[str, list[bool | None]] = {}
    for sample in samples:
        known = None if sample.reward is None else sample.verdict.is_accepted
        solved.setdefault(sample.rollout.problem_id, []).append(known)
    scored = {name: [s for s in values if s is not None] for name, values in solved.items()}
    means = [sum(values) / len(values) for values in scored.values() if values]
    tiers = [sample.tier or "untiered" for sample in samples if sample.sample_index == 0]
    return EvaluationMetrics(
        step=step,
        accuracy=sum(means) / len(means),
        accuracy_by_tier=summarise_accuracy(samples)[1],
        num_problems=len(solved),
        num_problems_by_tier={tier: tiers.count(tier) for tier in sorted(set(tiers))},
        samples_per_problem=SAMPLES,
        num_unscored=sum(s.reward is None for s in samples),
        solved=solved,
        length_mean=sum(len(s.rollout.token_ids) for s in samples) / len(samples),
        diversity=0.6,
        truncated_share=sum(s.rollout.is_truncated for s in samples) / len(samples),
        temperature=0.6,
        outcomes=count_outcomes(samples),
        seconds={"generate": 1.0},
    )


def _summary(recipe: Recipe, before: EvaluationMetrics, after: EvaluationMetrics) -> dict[str, Any]:
    return {
        "accuracy_before": before.accuracy,
        "accuracy_after": after.accuracy,
        "num_problems": after.num_problems,
        "samples_per_problem": SAMPLES,
        "wall_seconds": 312.5,
        "cpu_seconds": 590.0,
        "num_steps": recipe.num_steps,
        "accuracy_before_by_tier": dict(before.accuracy_by_tier),
        "accuracy_after_by_tier": dict(after.accuracy_by_tier),
        "num_unscored": before.num_unscored + after.num_unscored,
    }
