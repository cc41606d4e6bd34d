"""The report of a run as plain JSON values, which the viewer's overview shows.

It compares held-out accuracy before and after training, and of several runs on the same
problems, with intervals.
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

Link = tuple[str, str, dict[str, str]]
"""A sentence, the text of its link, and the state of the view that the link opens."""

_DASH = "–"  # noqa: RUF001
"""What a cell without a value shows."""

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
        """Number of problems that are compared; with one side only, the number of its problems."""
        estimate = self.difference or self.after or self.before
        return estimate.num_problems if estimate else 0


def compare(history: History, *, k: int = 1, tier: str = "") -> BeforeAfter:
    """Compare pass@k (k = 1: accuracy) before and after training.

    Args:
        history: the run.
        k: number of samples of which one has to solve the problem.
        tier: the tier of the problems; empty: all problems.
    """
    before = _solved_of_tier(history, history.before, tier)
    after = _solved_of_tier(history, history.after, tier)
    return BeforeAfter(
        estimate_accuracy(before, k=k),
        estimate_accuracy(after, k=k),
        estimate_difference(before, after, k=k),
    )


def _solved_of_tier(
    history: History,
    evaluation: EvaluationMetrics | None,
    tier: str,
) -> Mapping[str, Sequence[bool | None]]:
    if evaluation is None:
        return history.of_tier({}, tier)
    return history.of_tier(evaluation.solved, tier)


def describe_report(history: History, others: Sequence[History] = ()) -> dict[str, Any]:
    """Return the report of a run: title, headline, sentences, notices, tables, command.

    Args:
        history: the run that it is about, finished or not.
        others: other runs on the same problems (`check_alike`), to compare it with.
    """
    headline = compare(history)
    subject = _subject(history.manifest.get("config") or {})
    state = "finished" if history.is_finished else "not finished"
    return {
        "title": subject or history.name,
        "state": state,
        "about": " · ".join(_about(history, has_subject=bool(subject))),
        "headline": _headline(history, headline),
        "story": _story(history),
        "notices": list(_notices(history)),
        "tables": [*_arms(history, others), *_before_after(history, headline)],
        "reproduce": "\n".join(_commands(history)),
    }


def _about(history: History, *, has_subject: bool) -> list[str]:
    """Return the run's name (where the title is not it), steps, start, duration and seed."""
    manifest = history.manifest
    parts = []
    if has_subject:
        parts.append(f"run {history.name}")
    parts.append(_count(len(history.steps), "training step"))
    if manifest.get("started"):
        parts.append(f"started {manifest['started']}")
    summary = history.summary or {}
    for key, unit in (("wall_seconds", "minutes of wall time"), ("cpu_seconds", "CPU minutes")):
        seconds = summary.get(key)
        if isinstance(seconds, int | float):
            parts.append(f"{seconds / 60:.1f} {unit}")
    if manifest.get("seed") is not None:
        parts.append(f"seed {manifest['seed']}")
    return parts


def _commands(history: History) -> list[str]:
    """Return the commands that repeat the run, as far as its manifest names them."""
    git = history.manifest.get("git") or {}
    command = shlex.join(history.manifest.get("command") or [])
    lines = []
    if git.get("commit"):
        lines.append(f"git checkout {git['commit']}")
    if command:
        lines.append(command)
    return lines


def _headline(history: History, row: BeforeAfter) -> dict[str, Any]:
    """Return the figures at the top of the page, each with its name."""
    step = history.after.step if history.after else 0
    samples = _count(_samples_per_problem(history), "sample")
    asked = f"{row.num_problems} problems, {samples} each"
    trained = f"after {_count(step, 'step')}"
    if not history.is_finished:
        trained += " so far"
    figures = [_percent(estimate.value) for estimate in (row.before, row.after) if estimate]
    if row.before and row.after:
        text = (
            f"Held-out accuracy before training and {trained}: {asked}. The difference is in "
            "percentage points, with its 95 % interval."
        )
        includes_zero = row.difference is not None and not row.difference.excludes_zero
        finding = "The interval includes zero: no change is shown." if includes_zero else ""
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
    when = "before training" if row.before else trained
    return {
        "figures": figures,
        "text": f"Held-out accuracy {when}: {asked}. There is nothing to compare it with yet.",
    }


# ----- What happened in training.


def _story(history: History) -> list[Link]:
    """Return sentences on what happened in training, each with the view to look at."""
    on_rollouts = []
    reward = _describe_reward(history)
    if reward:
        on_rollouts.append(reward)
    total, truncated, masked = count_masked(history)
    if not total:
        return on_rollouts
    truncation = _describe_truncation(history, total, truncated)
    if masked:
        truncation += _describe_idle_masks(history, masked)
    on_rollouts.append((truncation, "truncated rollouts", {"truncated": "yes"}))
    links = []
    for text, name, state in on_rollouts:
        view_state = {"view": "rollouts", "split": "train", **state}
        links.append((text, name, view_state))
    removed = _describe_removed_advantage(history.steps)
    masked_rollouts = {"view": "rollouts", "split": "train", "masked": "yes"}
    if masked:
        links.append((removed, "masked rollouts", masked_rollouts))
    else:
        links.append((removed, "curves of the doses", {"view": "curves", "find": "doses"}))
    return links


def _describe_reward(history: History) -> Link | None:
    """Return a sentence on the rise of the mean reward; None for too few steps."""
    steps = []
    for step in history.steps:
        # A step without a scored rollout has no mean, and is not 0.
        if step.reward_mean is not None:
            steps.append((step.step, step.reward_mean))
    # Means of a tenth of the run, so that the noise of one step is no jump.
    width = max(1, len(steps) // 10)
    means = []
    for end in range(width, len(steps) + 1):
        window = steps[end - width : end]
        means.append(fmean(reward for _, reward in window))
    pairs = zip(means, means[width:], strict=False)
    rises = [after - before for before, after in pairs]
    if not rises:
        return None
    # A rise is between the means of two neighbouring tenths.
    steepest = rises.index(max(rises))
    first = steps[steepest][0]
    last = steps[steepest + 2 * width - 1][0]
    text = f"Mean reward: {means[0]:.3f} at first, {means[-1]:.3f} in the end"
    text += f", the largest rise {max(rises):+.3f} from step {first} to {last}."
    return text, "rollouts of these steps", {"step": f"{first}-{last}", "order": "first"}


def _describe_truncation(history: History, total: int, truncated: int) -> str:
    """Return a sentence on the truncated rollouts, with the first and the last tenth's share."""
    shares = [step.truncated_share for step in history.steps]
    trend = ""
    if len(shares) > 1:
        # A tenth of the run, since a single step is mostly noise.
        width = len(shares) // 10 or 1
        first = fmean(shares[:width])
        last = fmean(shares[-width:])
        trend = f", {first:.1%} at first, {last:.1%} in the end"
    return f"Truncated in training: {truncated / total:.1%} of {total:,} rollouts{trend}."


def _describe_idle_masks(history: History, masked: int) -> str:
    """Return a sentence on the masks that changed nothing, since their rollouts had no
    advantage."""
    effective = sum(
        step.masked_effective_share * sum(step.outcomes.values()) for step in history.steps
    )
    idle = masked - round(effective)
    return f" Of {masked:,} masked, {idle:,} would have had an advantage of 0 anyway."


def _describe_removed_advantage(steps: Sequence[StepMetrics]) -> str:
    """Return a sentence on the advantage that never reached the update.

    It names the share that masks, penalties and corrections removed, and what a clip stopped.
    """
    removed: dict[str, float] = {}
    # A mask that removed no advantage is named, too: that is a finding.
    if any(step.masked_share for step in steps):
        removed["mask"] = 0.0
    for step in steps:
        for name, share in step.doses.items():
            mechanism = name.partition("_")[0]
            # Over all steps: where a mechanism is not recorded, it removed nothing.
            so_far = removed.get(mechanism, 0.0)
            removed[mechanism] = so_far + share / len(steps)
    shares = ", ".join(f"{mechanism} {share:.1%}" for mechanism, share in removed.items())
    text = f"Share of |advantage| removed: {shares or 'none'}"
    clipped = []
    has_clip = False
    for step in steps:
        of_step = [share for name, share in step.optimizer.items() if name.startswith("clip_")]
        has_clip = has_clip or bool(of_step)
        clipped.append(sum(of_step))
    if has_clip:
        # TRL means those of micro-batches, verl those of a mini-batch, GSPO those of sequences.
        text += f"; the clip stopped {fmean(clipped):.2%}, as the engine counts"
    return f"{text}."


def count_masked(history: History) -> tuple[int, int, int]:
    """Return the numbers of all training rollouts, of the truncated and of the masked ones."""
    total = 0
    truncated = 0
    masked = 0
    for step in history.steps:
        num_rollouts = sum(step.outcomes.values())
        total += num_rollouts
        # A share is what is recorded: rounding gives the count back.
        truncated += round(step.truncated_share * num_rollouts)
        masked += sum(step.masked.values())
    return total, truncated, masked


# ----- Against other runs.


def _arms(history: History, others: Sequence[History]) -> Iterator[dict[str, Any]]:
    """Yield the table that compares the run with others, if there are any."""
    if not others:
        return
    arms = [history, *others]
    labels = _labels(arms)
    rows: list[list[Cell]] = []
    departures: list[str] = []
    for arm, label in zip(arms, labels, strict=True):
        rows.append(_arm_row(history, arm, label))
        if arm is not history:
            departures += _departures(history, arm)
    title = "Against the other arms" if len(others) > 1 else "Against the other arm"
    yield {
        "id": "arms",
        "title": title,
        "columns": [
            "arm",
            "held-out accuracy after",
            f"less {labels[0]}, points",
            "length after",
            "diversity after",
            "truncated in training",
            "masked in training",
        ],
        "rows": rows,
        "note": (
            "The same problems, paired; 95 % intervals over the choice of problems: one run each "
            "does not show what another seed would give. The arms differ in: "
            f"{'; '.join(departures) or 'nothing'}."
        ),
    }


def _arm_row(history: History, arm: History, label: str) -> list[Cell]:
    """Return a run's row of the table that compares arms, with its difference from `history`."""
    end = arm.after
    difference = None
    if history.after and end and arm is not history:
        difference = estimate_difference(history.after.solved, end.solved)
    accuracy = estimate_accuracy(end.solved) if end else None
    length = end.length_mean if end else None
    diversity = end.diversity if end else None
    total, truncated, masked = count_masked(arm)
    # Of no rollouts none is truncated.
    total = total or 1
    return [
        label,
        _percent(accuracy),
        _difference(difference),
        _number(length),
        _number(diversity),
        _percent(truncated / total),
        _percent(masked / total),
    ]


def _departures(history: History, arm: History) -> list[str]:
    """Return the config keys in which two runs differ, each with both values."""
    ours = flatten(history.manifest.get("config") or {})
    theirs = flatten(arm.manifest.get("config") or {})
    departures = []
    # What only one of them has hangs on a kind, in which they then differ.
    for key in sorted(ours.keys() & theirs.keys()):
        if not key.startswith(_NEUTRAL) and ours[key] != theirs[key]:
            departures.append(f"{key}: {ours[key]} / {theirs[key]}")
    return departures


def _labels(arms: Sequence[History]) -> list[str]:
    """Return a name per run: its algorithm.

    Position, the run's own name and its seed follow where two names would be equal.
    """
    names = []
    for arm in arms:
        config = arm.manifest.get("config") or {}
        name = algorithm_name(config.get("algorithm") or {})
        names.append(name or arm.name)
    labels = []
    for position, (name, arm) in enumerate(zip(names, arms, strict=True), 1):
        label = name
        if names.count(name) > 1:
            label = f"{name} ({position}: {arm.name}, seed {arm.manifest.get('seed')})"
        labels.append(label)
    return labels


def check_alike(history: History, other: History) -> None:
    """Raise DataError if two runs have different problems."""
    # Accuracies on other problems would say nothing of the algorithm.
    ours = problems_digest(history.manifest)
    theirs = problems_digest(other.manifest)
    if theirs != ours:
        raise DataError(
            f"{other.run.root} asked other problems than {history.run.root} (digest {theirs} "
            f"against {ours}); compare runs of one recipe that differ in their algorithm"
        )


# ----- Before and after.


def _before_after(history: History, headline: BeforeAfter) -> Iterator[dict[str, Any]]:
    """Yield the table of changes between the first and the last held-out evaluation."""
    if not (headline.before or headline.after):
        return
    rows: list[list[Cell]] = []
    for label, row in _accuracies(history, headline).items():
        rows.append(
            [
                label,
                str(row.num_problems),
                _percent(row.before),
                _percent(row.after),
                _difference(row.difference),
            ]
        )
    for label, read in _quantities(history).items():
        before = read(history.before) if history.before else _DASH
        after = read(history.after) if history.after else _DASH
        rows.append([label, "", before, after, ""])
    yield {
        "id": "before-after",
        "title": "Before and after",
        "columns": ["held-out accuracy", "problems", "before", "after", "difference, points"],
        "rows": rows,
        "note": (
            "In brackets: 95 % intervals from resampling problems with all their samples; "
            "differences are paired by problem. They cover the choice of problems, not the "
            "training seed: one run cannot show that."
        ),
    }


def _accuracies(history: History, headline: BeforeAfter) -> dict[str, BeforeAfter]:
    """Return label -> accuracy before and after: of all problems, of each tier, and pass@k."""
    compared = {"all problems": headline}
    asked = set(history.tier_of.values())
    tiers = [tier for tier in history.tiers if tier in asked]
    # A tier of all problems would repeat the row above.
    if tiers != ["untiered"]:
        for tier in tiers:
            compared[tier] = compare(history, tier=tier)
    samples = _samples_per_problem(history)
    if samples > 1:
        compared[f"pass@{samples}"] = compare(history, k=samples)
    return compared


def _quantities(history: History) -> dict[str, Callable[[EvaluationMetrics], str]]:
    """Return label -> reader, for what the table shows beside accuracy."""
    readers: dict[str, Callable[[EvaluationMetrics], str]] = {
        "response length (mean tokens)": lambda evaluation: f"{evaluation.length_mean:,.1f}",
        "truncated": lambda evaluation: _percent(evaluation.truncated_share),
        "diversity (unique 4-grams)": _show_diversity,
        "sampling temperature": lambda evaluation: f"{evaluation.temperature:g}",
    }
    evaluations = [side for side in (history.before, history.after) if side]
    for outcome in Outcome:
        if any(evaluation.outcomes.get(outcome) for evaluation in evaluations):
            readers[f"verdict {outcome}"] = partial(_count_outcome, outcome)
    return readers


def _show_diversity(evaluation: EvaluationMetrics) -> str:
    if evaluation.diversity is None:
        return _DASH
    return f"{evaluation.diversity:.3f}"


def _count_outcome(outcome: Outcome, evaluation: EvaluationMetrics) -> str:
    number = evaluation.outcomes.get(outcome, 0)
    return f"{number} ({_percent(number / max(1, sum(evaluation.outcomes.values())))})"


def _notices(history: History) -> Iterator[str]:
    """Yield what a reader must know before the report's figures."""
    # Unscored samples are counted, and averaged in nowhere.
    in_training = sum(step.outcomes.get(str(Outcome.SANDBOX_FAULT), 0) for step in history.steps)
    before = history.before.num_unscored if history.before else 0
    after = history.after.num_unscored if history.after else 0
    total = in_training + before + after
    if total:
        yield (
            f"{_count(total, 'unscored sample')}: {in_training} in training, {before} before, "
            f"{after} after. The sandbox failed on them, not the program, so they are in no mean "
            "on this page."
        )
    git = history.manifest.get("git") or {}
    if git.get("is_dirty"):
        yield (
            "The working tree had uncommitted changes, so the commit alone does not give this run."
        )


# ----- What the run was.


def _subject(config: Mapping[str, Any]) -> str:
    """Return algorithm, model and problems as a title; empty where the config lacks one."""
    algorithm = algorithm_name(config.get("algorithm") or {})
    model = config.get("model") or {}
    problems = config.get("problems") or {}
    if not (algorithm and model and problems):
        return ""
    name = _last_part(model.get("path"))
    if model.get("kind") == "micro":
        size = (model.get("warm_start") or {}).get("num_layers")
        name = f"a tiny Qwen3 of {size} layers" if size else "a tiny Qwen3"
    asked = _last_part(problems.get("train"))
    if problems.get("kind") == "micro":
        asked = "the micro lab's chains"
    return f"{algorithm} on {name}: {asked}" if asked else f"{algorithm} on {name}"


def _last_part(path: object) -> str:
    """Return the last two parts of a path or of a name `owner/model`."""
    parts = [part for part in str(path or "").split("/") if part]
    return "/".join(parts[-2:])


def algorithm_name(config: Mapping[str, Any]) -> str:
    """Return the published name of an algorithm's settings, and what differs from it.

    Args:
        config: the manifest's table `algorithm`; its name is empty for an empty table.
    """
    if not config:
        return ""
    loss = {"kind": "dapo", **(config.get("loss") or {})}
    masking = {"kind": "none", **(config.get("masking") or {})}
    advantage = config.get("advantage", "grpo")
    has_kl = bool(config.get("kl_coefficient"))
    kind = loss["kind"]
    mask = masking.get("name", masking["kind"])
    # As published.
    name = kind.upper().replace("DR_GRPO", "Dr. GRPO")
    is_published = (kind, mask, advantage, has_kl) == ("dapo", "conditional", "grpo", False)
    if is_published:
        name = "MicroCoder-GRPO"
        mask = "none"
    parts = [name]
    if advantage not in ("grpo", kind):
        parts.append(f"advantage {advantage}")
    if mask != "none":
        parts.append(f"masking {mask}")
    left_out_of = masking.get("leave_out_of", "gradient")
    if left_out_of != "gradient":
        parts.append(f"left out of the {left_out_of}")
    if kind == "dapo" and loss.get("clip_low") == loss.get("clip_high") is not None:
        parts.append("symmetric clip")
    # GRPO's own recipe has a KL term; the others have none.
    if has_kl != (kind == "grpo"):
        parts.append("KL" if has_kl else "no KL")
    if config.get("group_filtering") == "dynamic":
        parts.append("dynamic sampling")
    if config.get("group_filtering") == "dynamic_reward":
        parts.append("dynamic sampling by reward")
    return ", ".join(parts)


# ----- Cells.


def _count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _samples_per_problem(history: History) -> int:
    sides = (history.before, history.after)
    return max((side.samples_per_problem for side in sides if side), default=1)


def _percent(value: float | Estimate | None) -> str:
    if value is None:
        return _DASH
    if isinstance(value, Estimate):
        return f"{_percent(value.value)} ({_percent(value.low)} to {_percent(value.high)})"
    return f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.3g}"


def _difference(difference: Estimate | None) -> Cell:
    """Return a difference in percentage points with its interval, and its direction."""
    if difference is None:
        return _DASH
    direction = "flat"
    if difference.excludes_zero:
        direction = "up" if difference.value > 0 else "down"
    text = f"{100 * difference.value:+.1f}"
    text += f" ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
    # A minus sign, as wide as the plus of other cells.
    return [text.replace("-", "−"), direction]  # noqa: RUF001
