"""The report of a run as plain JSON values, which the viewer's overview shows.

It compares held-out accuracy before and after training, and of several runs on the same problems, with intervals.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.accuracy import Estimate, estimate_accuracy, estimate_difference
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.runs import History, problems_digest

Cell = str | list[str]
"""A cell of a table: a text, or a difference with its direction, `up`, `down` or `flat`."""
_DASH = "–"  # noqa: RUF001
_NEUTRAL = ("evaluator.", "checkpoint.", "logging.")
"""Prefixes of config keys that do not count as a difference between runs."""


class BeforeAfter(NamedTuple):
    """Pass@k before training and after."""

    before: Estimate | None
    after: Estimate | None
    difference: Estimate | None
    """Paired difference over the problems that both sides scored; None if there are none."""

    @property
    def num_problems(self) -> int:
        """Number of problems of the difference, or of the only side."""
        estimate = self.difference or self.after or self.before
        return estimate.num_problems if estimate else 0


def compare(history: History, *, k: int = 1, tier: str = "") -> BeforeAfter:
    """Compare pass@k (k = 1: accuracy) before and after training, on one tier or (empty) on all problems."""
    before, after = (
        history.of_tier(one.solved if one else {}, tier) for one in (history.before, history.after)
    )
    at_first, in_the_end = (estimate_accuracy(solved, k=k) for solved in (before, after))
    return BeforeAfter(at_first, in_the_end, estimate_difference(before, after, k=k))


def describe_report(history: History, others: Sequence[History] = ()) -> dict[str, Any]:
    """Return the report of a run, finished or not: title, headline, sentences, notices, tables, command.

    Args:
        history: the run that it is about.
        others: other runs on the same problems (`check_alike`), to compare it with.
    """
    manifest, summary, num_steps = history.manifest, history.summary or {}, len(history.steps)
    headline, subject = compare(history), _subject(manifest.get("config") or {})
    git, command = manifest.get("git") or {}, manifest.get("command") or []
    times = (("wall_seconds", "minutes of wall time"), ("cpu_seconds", "CPU minutes"))
    about = [
        f"run {history.name}" if subject else "",
        f"{num_steps} training step{'' if num_steps == 1 else 's'}",
        f"started {manifest['started']}" if manifest.get("started") else "",
        *(
            f"{summary[key] / 60:.1f} {what}"
            for key, what in times
            if isinstance(summary.get(key), int | float)
        ),
        "" if manifest.get("seed") is None else f"seed {manifest['seed']}",
    ]
    reproduce = [f"git checkout {git['commit']}"] if git.get("commit") else []
    return {
        "title": subject or history.name,
        "state": "finished" if history.is_finished else "not finished",
        "about": " · ".join(filter(None, about)),
        "headline": _headline(history, headline),
        "story": _story(history),
        "notices": list(_notices(history)),
        "tables": [*_arms(history, others), *_before_after(history, headline)],
        "reproduce": "\n".join([*reproduce, *filter(None, [shlex.join(command)])]),
    }


def _headline(history: History, row: BeforeAfter) -> dict[str, Any]:
    before, after, step = row.before, row.after, history.after.step if history.after else 0
    samples = _samples_per_problem(history)
    asked = f"{row.num_problems} problems, {samples} sample{'' if samples == 1 else 's'} each"
    trained = (
        f"after {step} step{'' if step == 1 else 's'}{'' if history.is_finished else ' so far'}"
    )
    figures = [_percent(one.value) for one in (before, after) if one]
    if before and after:
        text = (
            f"Held-out accuracy before training and {trained}: {asked}. The difference is in percentage points, with "
            "its 95 % interval."
        )
        is_shown = row.difference is None or row.difference.excludes_zero
        finding = "" if is_shown else "The interval includes zero: no change is shown."
        return {
            "figures": figures,
            "difference": _difference(row.difference),
            "text": text,
            "finding": finding,
        }
    if not figures:
        return {
            "figures": ["No accuracy yet"],
            "text": "No scored held-out evaluation was recorded.",
        }
    asked = f"{'before training' if before else trained}: {asked}"
    return {
        "figures": figures,
        "text": f"Held-out accuracy {asked}. There is nothing to compare it with yet.",
    }


def _story(history: History) -> list[tuple[str, str, dict[str, str]]]:
    """Return sentences on what happened in training, each with the text of a link and the view that it opens."""
    steps = [
        (step.step, step.reward_mean) for step in history.steps if step.reward_mean is not None
    ]
    num = max(1, len(steps) // 10)
    # Means of a tenth of the run, so that the noise of one step is no jump.
    means = [
        fmean(reward for _, reward in steps[end - num : end]) for end in range(num, len(steps) + 1)
    ]
    links = []
    if rises := [after - before for before, after in zip(means, means[num:], strict=False)]:
        place = rises.index(max(rises))
        first, last = steps[place][0], steps[place + 2 * num - 1][0]
        text = f"Mean reward: {means[0]:.3f} at first, {means[-1]:.3f} in the end"
        text += f", the largest rise {max(rises):+.3f} from step {first} to {last}."
        links.append(
            (text, "rollouts of these steps", {"step": f"{first}-{last}", "order": "first"})
        )
    total, truncated, masked = count_masked(history)
    if total:
        shares = [step.truncated_share for step in history.steps]
        first, last = (
            fmean(part)
            for part in (shares[: len(shares) // 10 or 1], shares[-(len(shares) // 10 or 1) :])
        )
        ends = f", {first:.1%} at first, {last:.1%} in the end" if len(shares) > 1 else ""
        text = f"Truncated in training: {truncated / total:.1%} of {total:,} rollouts{ends}."
        idle = masked - round(
            sum(s.masked_effective_share * sum(s.outcomes.values()) for s in history.steps)
        )
        text += (
            f" Of {masked:,} masked, {idle:,} would have had an advantage of 0 anyway."
            if masked
            else ""
        )
        links.append((text, "truncated rollouts", {"truncated": "yes"}))
        links = [
            (text, name, {"view": "rollouts", "split": "train", **state})
            for text, name, state in links
        ]
        links.append((_doses(history.steps), "all curves", {"view": "curves"}))
    return links


def _doses(steps: Sequence[StepMetrics]) -> str:
    """Return a sentence: the share of advantages that masks, penalties and corrections removed, and a clip stopped."""
    taken = {"mask": 0.0} if any(step.masked_share for step in steps) else {}
    for name, share in (item for step in steps for item in step.doses.items()):
        idea = name.partition("_")[0]
        taken[idea] = taken.get(idea, 0.0) + share / len(steps)
    text = ", ".join(f"{idea} {share:.1%}" for idea, share in taken.items()) or "none"
    clipped = [
        [share for name, share in step.optimizer.items() if name.startswith("clip_")]
        for step in steps
    ]
    left = fmean(map(sum, clipped))
    # TRL means those of micro-batches, verl those of a mini-batch, GSPO those of sequences.
    clip = f"; the clip stopped {left:.2%}, as the engine counts" if any(clipped) else ""
    return f"Share of |advantage| removed: {text}{clip}."


def _arms(history: History, others: Sequence[History]) -> Iterator[dict[str, Any]]:
    if not others:
        return
    arms = [history, *others]
    labels, after = _labels(arms), history.after
    rows: list[list[Cell]] = []
    changed: list[str] = []
    for arm, label in zip(arms, labels, strict=True):
        end = arm.after
        difference = (
            estimate_difference(after.solved, end.solved)
            if after and end and arm is not history
            else None
        )
        total, truncated, masked = count_masked(arm)
        figures = (
            _DASH if value is None else f"{value:.3g}"
            for value in (end and end.length_mean, end and end.diversity)
        )
        shares = (_percent(num / total if total else 0.0) for num in (truncated, masked))
        accuracy = _percent(estimate_accuracy(end.solved) if end else None)
        rows.append([label, accuracy, _difference(difference), *figures, *shares])
        if arm is not history:
            ours, theirs = (flatten(one.manifest.get("config") or {}) for one in (history, arm))
            # What only one of them has hangs on a kind, in which they then differ.
            shared = sorted(
                key for key in ours.keys() & theirs.keys() if not key.startswith(_NEUTRAL)
            )
            changed += [
                f"{key}: {ours[key]} / {theirs[key]}" for key in shared if ours[key] != theirs[key]
            ]
    yield {
        "id": "arms",
        "title": f"Against the other arm{'s' if len(rows) > 2 else ''}",
        "columns": [
            *("arm", "held-out accuracy after", f"less {labels[0]}, points", "length after"),
            *("diversity after", "truncated in training", "masked in training"),
        ],
        "rows": rows,
        "note": "The same problems, paired; 95 % intervals over the choice of problems: one run each does not show "
        f"what another seed would give. The arms differ in: {'; '.join(changed) or 'nothing'}.",
    }


def _labels(arms: Sequence[History]) -> list[str]:
    """Return a name per run: its algorithm, with position, the run's own name and seed if two would be equal."""
    names = [
        algorithm_name((arm.manifest.get("config") or {}).get("algorithm") or {}) or arm.name
        for arm in arms
    ]
    return [
        f"{name} ({place}: {arm.name}, seed {arm.manifest.get('seed')})"
        if names.count(name) > 1
        else name
        for place, (name, arm) in enumerate(zip(names, arms, strict=True), 1)
    ]


def check_alike(history: History, other: History) -> None:
    """Raise DataError if two runs have different problems."""
    ours, theirs = (problems_digest(run.manifest) for run in (history, other))
    if theirs != ours:
        raise DataError(
            f"{other.run.root} asked other problems than {history.run.root} (digest {theirs} against "
            f"{ours}); compare runs of one recipe that differ in their algorithm"
        )


def _before_after(history: History, headline: BeforeAfter) -> Iterator[dict[str, Any]]:
    if not (headline.before or headline.after):
        return
    samples, of_samples = _samples_per_problem(history), set(history.tier_of.values())
    tiers = [tier for tier in history.tiers if tier in of_samples]
    compared = {"all problems": headline}
    compared |= {tier: compare(history, tier=tier) for tier in tiers if tiers != ["untiered"]}
    if samples > 1:
        compared[f"pass@{samples}"] = compare(history, k=samples)
    changes: dict[str, Callable[[EvaluationMetrics], str]] = {
        "response length (mean tokens)": lambda e: f"{e.length_mean:,.1f}",
        "truncated": lambda e: _percent(e.truncated_share),
        "diversity (unique 4-grams)": lambda e: (
            _DASH if e.diversity is None else f"{e.diversity:.3f}"
        ),
        "sampling temperature": lambda e: f"{e.temperature:g}",
    }
    sides = (history.before, history.after)
    for outcome in (one for one in Outcome if any(e and e.outcomes.get(one) for e in sides)):
        changes[f"verdict {outcome}"] = partial(_count_outcome, outcome)
    yield {
        "id": "before-after",
        "title": "Before and after",
        "columns": ["held-out accuracy", "problems", "before", "after", "difference, points"],
        "rows": [
            *(
                [
                    label,
                    str(one.num_problems),
                    *map(_percent, (one.before, one.after)),
                    _difference(one.difference),
                ]
                for label, one in compared.items()
            ),
            *(
                [label, "", *(read(e) if e else _DASH for e in sides), ""]
                for label, read in changes.items()
            ),
        ],
        "note": "In brackets: 95 % intervals from resampling problems with all their samples; differences are paired "
        "by problem. They cover the choice of problems, not the training seed: one run cannot show that.",
    }


def _count_outcome(outcome: Outcome, evaluation: EvaluationMetrics) -> str:
    number = evaluation.outcomes.get(outcome, 0)
    return f"{number} ({_percent(number / max(1, sum(evaluation.outcomes.values())))})"


def _notices(history: History) -> Iterator[str]:
    before, after = history.before, history.after
    in_training = sum(step.outcomes.get(str(Outcome.SANDBOX_FAULT), 0) for step in history.steps)
    unscored = [in_training, *(one.num_unscored if one else 0 for one in (before, after))]
    if total := sum(unscored):
        yield (
            f"{total} unscored sample{'' if total == 1 else 's'}: {unscored[0]} in training, {unscored[1]} before, "
            f"{unscored[2]} after. The sandbox failed on them, not the program, so they are in no mean on this page."
        )
    if (history.manifest.get("git") or {}).get("is_dirty"):
        yield "The working tree had uncommitted changes, so the commit alone does not give this run."


# ----- What the run was.


def _subject(config: Mapping[str, Any]) -> str:
    algorithm = algorithm_name(config.get("algorithm") or {})
    model, problems = config.get("model") or {}, config.get("problems") or {}
    if not (algorithm and model and problems):
        return ""
    size = (model.get("warm_start") or {}).get("num_layers")
    tiny = f"a tiny Qwen3 of {size} layers" if size else "a tiny Qwen3"
    name = tiny if model.get("kind") == "micro" else _last_part(model.get("path"))
    asked = (
        "the micro lab's chains"
        if problems.get("kind") == "micro"
        else _last_part(problems.get("train"))
    )
    return f"{algorithm} on {name}: {asked}" if asked else f"{algorithm} on {name}"


def _last_part(path: object) -> str:
    return "/".join([part for part in str(path or "").split("/") if part][-2:])


def count_masked(history: History) -> tuple[int, int, int]:
    """Return the numbers of all training rollouts, of the truncated and of the masked ones."""
    nums = [sum(step.outcomes.values()) for step in history.steps]
    truncated = sum(
        round(step.truncated_share * num) for step, num in zip(history.steps, nums, strict=True)
    )
    return sum(nums), truncated, sum(sum(step.masked.values()) for step in history.steps)


# ----- What an algorithm is called.


def algorithm_name(config: Mapping[str, Any]) -> str:
    """Return the published name of the settings in a manifest's `algorithm`, and what differs; empty if unnamed."""
    if not config:
        return ""
    usual = (("loss", "dapo"), ("masking", "none"))
    loss, masking = ({"kind": kind, **(config.get(key) or {})} for key, kind in usual)
    advantage, has_kl = config.get("advantage", "grpo"), bool(config.get("kl_coefficient"))
    kind, mask = loss["kind"], masking.get("name", masking["kind"])
    out_of = masking.get("leave_out_of", "gradient")
    name = kind.upper().replace("DR_GRPO", "Dr. GRPO")
    if (kind, mask, advantage, has_kl) == ("dapo", "conditional", "grpo", False):
        name, mask = "MicroCoder-GRPO", "none"
    departures = {
        f"advantage {advantage}": advantage not in ("grpo", kind),
        f"masking {mask}": mask != "none",
        f"left out of the {out_of}": out_of != "gradient",
        "symmetric clip": kind == "dapo"
        and loss.get("clip_low") == loss.get("clip_high") is not None,
        # GRPO's own recipe has a KL term; the others have none.
        "KL" if has_kl else "no KL": has_kl != (kind == "grpo"),
        "dynamic sampling": config.get("group_filtering") == "dynamic",
        "dynamic sampling by reward": config.get("group_filtering") == "dynamic_reward",
    }
    return ", ".join([name, *(text for text, holds in departures.items() if holds)])


# ----- Cells.


def _samples_per_problem(history: History) -> int:
    return max((e.samples_per_problem for e in (history.before, history.after) if e), default=1)


def _percent(value: float | Estimate | None) -> str:
    if value is None:
        return _DASH
    if isinstance(value, Estimate):
        return f"{_percent(value.value)} ({_percent(value.low)} to {_percent(value.high)})"
    return f"{100 * value:.1f} %"


def _difference(difference: Estimate | None) -> Cell:
    if difference is None:
        return _DASH
    value, low, high = (
        f"{100 * x:+.1f}" for x in (difference.value, difference.low, difference.high)
    )
    direction = "flat" if not difference.excludes_zero else "up" if difference.value > 0 else "down"
    return [f"{value} ({low} to {high})".replace("-", "−"), direction]  # noqa: RUF001
