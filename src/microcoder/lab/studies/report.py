"""What the report of a run says, as plain JSON values that the viewer's overview shows.

Held-out accuracy before and after training and of several runs on the same problems, with intervals; and a few
rollouts worth reading: illustrations, not a sample.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.effects import Estimate, Solved, estimate_accuracy, estimate_difference
from microcoder.lab.studies.history import History, Row, read_history
from microcoder.lab.studies.names import algorithm_name
from microcoder.lab.yardstick.report import wilson_interval
from microcoder.train.algorithm.continuation import Fate, count_continued
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.run.probe import read_probe

Cell = str | list[str]
"""A text, or a difference with its direction: `up`, `down` or `flat`."""
_DASH = "–"  # noqa: RUF001
_MAX_LEARNT = 3
_NEUTRAL = ("evaluator.", "checkpoint.", "logging.")
"""Keys that do not define an arm, such as the seed's."""


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One row of the before/after table."""

    label: str
    before: Estimate | None
    after: Estimate | None
    difference: Estimate | None
    """Paired, over the problems that both sides scored."""

    @property
    def num_problems(self) -> int:
        """Number of problems of the difference, or of the only side."""
        estimate = self.difference or self.after or self.before
        return estimate.num_problems if estimate else 0


def compare(history: History, *, label: str = "all problems", k: int = 1, tier: str | None = None) -> BeforeAfter:
    """Compare pass@k (k = 1: accuracy) before and after, on one tier or on all problems."""
    ids = None if tier is None else {name for name, its_tier in history.tier_of.items() if its_tier == tier}
    before, after = (_solved(one, ids) for one in (history.before, history.after))
    return BeforeAfter(
        label, estimate_accuracy(before, k=k), estimate_accuracy(after, k=k), estimate_difference(before, after, k=k)
    )


def _solved(evaluation: EvaluationMetrics | None, ids: Collection[str] | None) -> Solved:
    solved = evaluation.solved if evaluation else {}
    return solved if ids is None else {name: samples for name, samples in solved.items() if name in ids}


def describe_report(history: History, others: Sequence[Path] = ()) -> dict[str, Any]:
    """Return what a report says of a run, finished or not.

    Args:
        history: the run that it is about.
        others: other runs on the same problems, to compare it with.

    Raises:
        DataError: a file is damaged, or another run asked other problems.
    """
    manifest, summary, num_steps = history.manifest, history.summary or {}, len(history.steps)
    headline, subject = compare(history), _subject(manifest.get("config") or {})
    git, command = manifest.get("git") or {}, manifest.get("command") or ""
    words = [str(word) for word in command] if isinstance(command, list) else []
    times = (("wall_seconds", "minutes of wall time"), ("cpu_seconds", "CPU minutes"))
    about = [
        f"run {history.name}" if subject else "",
        f"{num_steps} training step{'' if num_steps == 1 else 's'}",
        f"started {manifest['started']}" if manifest.get("started") else "",
        *(f"{summary[key] / 60:.1f} {what}" for key, what in times if isinstance(summary.get(key), int | float)),
        "" if manifest.get("seed") is None else f"seed {manifest['seed']}",
    ]
    # As its command named it: where the page lies now must not change the page.
    folder = shlex.quote(dict(pairwise(words)).get("--run-dir", "RUN"))
    reproduce = [f"git checkout {git['commit']}"] if git.get("commit") else []
    return {
        "title": subject or history.name,
        "state": "finished" if history.is_finished else "not finished",
        "about": " · ".join(filter(None, about)),
        "headline": _headline(history, headline),
        "story": _story(history),
        "topics": describe_run(history),
        "next": [(f"microcoder view {folder}", "read every rollout with its tests")],
        "notices": list(_notices(history, headline)),
        "tables": [
            *_arms(history, others),
            *_before_after(history, headline),
            *_outcomes(history),
            *_continued(history),
        ],
        "examples": choose_examples(history),
        "reproduce": "\n".join([*reproduce, *filter(None, [shlex.join(words) or str(command)])]),
    }


def _headline(history: History, row: BeforeAfter) -> dict[str, Any]:
    before, after, step = row.before, row.after, history.after.step if history.after else 0
    samples = _samples_per_problem(history)
    asked = f"{row.num_problems} problems, {samples} sample{'' if samples == 1 else 's'} each"
    trained = f"after {step} step{'' if step == 1 else 's'}{'' if history.is_finished else ' so far'}"
    figures = [_percent(one.value) for one in (before, after) if one]
    if before and after:
        text = (
            f"Held-out accuracy before training and {trained}: {asked}. The difference is in percentage points, with "
            "its 95 % interval."
        )
        is_shown = row.difference is None or row.difference.excludes_zero
        finding = "" if is_shown else "The interval includes zero: no change is shown."
        return {"figures": figures, "difference": _difference(row.difference), "text": text, "finding": finding}
    if not figures:
        return {"figures": ["No accuracy yet"], "text": "No scored held-out evaluation was recorded."}
    asked = f"{'before training' if before else trained}: {asked}"
    return {"figures": figures, "text": f"Held-out accuracy {asked}. There is nothing to compare it with yet."}


def _story(history: History) -> list[tuple[str, str, dict[str, str]]]:
    """Return sentences on what happened in training, each with what its link is called and leads to in the viewer."""
    steps = [(step.step, step.reward_mean) for step in history.steps if step.reward_mean is not None]
    num = max(1, len(steps) // 10)
    # Means of a tenth of the run, so that the noise of one step is no jump.
    means = [fmean(reward for _, reward in steps[end - num : end]) for end in range(num, len(steps) + 1)]
    links = []
    if rises := [after - before for before, after in zip(means, means[num:], strict=False)]:
        place = rises.index(max(rises))
        first, last = steps[place][0], steps[place + 2 * num - 1][0]
        text = f"Mean reward: {means[0]:.3f} at first, {means[-1]:.3f} in the end"
        text += f", the largest rise {max(rises):+.3f} from step {first} to {last}."
        links.append((text, "rollouts of these steps", {"step": f"{first}-{last}", "order": "first"}))
    if history.steps:
        total, truncated, _ = count_masked(history)
        ends = _ends(history, "truncated_share", "{:.1%}", "{:.1%}")
        text = f"Truncated in training: {truncated / total:.1%} of {total:,} rollouts{ends and f', {ends}'}."
        links.append((text, "truncated rollouts", {"truncated": "yes"}))
        links = [(text, name, {"view": "rollouts", "split": "train", **state}) for text, name, state in links]
        links.append((_doses(history.steps), "all curves", {"view": "curves"}))
    return links


def _doses(steps: Sequence[StepMetrics]) -> str:
    """Say what masks, penalties and corrections took of the advantages, and of how many tokens a clip took the rest."""
    taken = {"mask": 0.0} if any(step.masked_share for step in steps) else {}
    for name, share in (item for step in steps for item in step.doses.items()):
        idea = name.partition("_")[0]
        taken[idea] = taken.get(idea, 0.0) + share / len(steps)
    text = ", ".join(f"the {idea} took {share:.1%}" for idea, share in taken.items()) or "nothing was taken"
    clipped = [[share for name, share in step.optimizer.items() if name.startswith("clip_")] for step in steps]
    left = fmean(map(sum, clipped))
    return f"Doses: of all |advantage| {text}{f'; the clip stopped {left:.2%} of the tokens' if any(clipped) else ''}."


def _arms(history: History, others: Sequence[Path]) -> Iterator[dict[str, Any]]:
    if not others:
        return
    arms = [history, *map(read_history, others)]
    for other in arms[1:]:
        check_alike(history, other)
    labels, after = _labels(arms), history.after
    rows: list[list[Cell]] = []
    said, changed = [], []
    for arm, label in zip(arms, labels, strict=True):
        end = arm.after
        difference = estimate_difference(after.solved, end.solved) if after and end and arm is not history else None
        total, truncated, masked = count_masked(arm)
        figures = (
            _DASH if value is None else f"{value:.3g}" for value in (end and end.length_mean, end and end.diversity)
        )
        shares = (_percent(num / total if total else 0.0) for num in (truncated, sum(masked.values())))
        accuracy = _percent(estimate_accuracy(end.solved) if end else None)
        rows.append([label, accuracy, _difference(difference), *figures, *shares])
        if arm is not history:
            said.append(conclude(labels[0], label, difference))
            changed += _changed(history, arm)
    yield {
        "id": "arms",
        "title": f"Against the other arm{'s' if len(rows) > 2 else ''}",
        "text": " ".join(said),
        "columns": [
            *("arm", "held-out accuracy after", f"less {labels[0]}, points", "length after"),
            *("diversity after", "truncated in training", "masked in training"),
        ],
        "rows": rows,
        "note": "The same problems, paired; 95 % intervals over the choice of problems, not over seeds. The arms "
        f"differ in: {'; '.join(changed) or 'nothing'}.",
    }


def _labels(arms: Sequence[History]) -> list[str]:
    """Return the arms' names: their algorithms; with the run's own name and seed where two would be called alike."""
    names = [algorithm_name((arm.manifest.get("config") or {}).get("algorithm") or {}) or arm.name for arm in arms]
    longer = [
        f"{name} ({arm.name}, seed {arm.manifest.get('seed')})" if names.count(name) > 1 else name
        for name, arm in zip(names, arms, strict=True)
    ]
    return [label if longer.count(label) == 1 else f"{label} {place}" for place, label in enumerate(longer, 1)]


def conclude(ours: str, other: str, difference: Estimate | None) -> str:
    """Say what the difference of another arm from ours shows, nothing included."""
    if difference is None:
        return f"{other} has no evaluation after training yet: nothing to compare."
    if not difference.excludes_zero:
        return f"No difference in accuracy between {ours} and {other} is shown by these two runs."
    better, worse = (ours, other) if difference.value < 0 else (other, ours)
    return (
        f"{better} ends above {worse}, by more than the choice of problems explains; one run each does not show what "
        "another seed would give."
    )


def check_alike(history: History, other: History) -> None:
    """Refuse to compare runs on other problems."""
    ours, theirs = ((h.manifest.get("problems") or {}).get("digest") for h in (history, other))
    if ours != theirs:
        raise DataError(
            f"{other.run.root} asked other problems than {history.run.root} (digest {theirs} against {ours}); compare "
            "runs of one recipe that differ in their algorithm"
        )


def _changed(history: History, other: History) -> list[str]:
    # What only one of them has hangs on a kind, in which they then differ.
    ours, theirs = (flatten(h.manifest.get("config") or {}) for h in (history, other))
    return [
        f"{key}: {ours[key]} / {theirs[key]}"
        for key in sorted(ours.keys() & theirs.keys())
        if ours[key] != theirs[key] and not key.startswith(_NEUTRAL)
    ]


def _before_after(history: History, headline: BeforeAfter) -> Iterator[dict[str, Any]]:
    if not (headline.before or headline.after):
        return
    samples, of_samples = _samples_per_problem(history), set(history.tier_of.values())
    tiers = [tier for tier in history.tiers if tier in of_samples]
    compared = [headline, *(compare(history, label=tier, tier=tier) for tier in tiers if tiers != ["untiered"])]
    if samples > 1:
        compared.append(compare(history, label=f"pass@{samples}", k=samples))
    changes: dict[str, Callable[[EvaluationMetrics], str]] = {
        "response length (mean tokens)": lambda e: f"{e.length_mean:,.1f}",
        "truncated": lambda e: _percent(e.truncated_share),
        "diversity (unique 4-grams)": lambda e: _DASH if e.diversity is None else f"{e.diversity:.3f}",
        "sampling temperature": lambda e: f"{e.temperature:g}",
        "unscored samples": lambda e: str(e.num_unscored),
    }
    sides = (history.before, history.after)
    yield {
        "id": "before-after",
        "title": "Before and after",
        "columns": ["held-out accuracy", "problems", "before", "after", "difference, points"],
        "rows": [
            *(
                [one.label, str(one.num_problems), *map(_percent, (one.before, one.after)), _difference(one.difference)]
                for one in compared
            ),
            *([label, "", *(read(e) if e else _DASH for e in sides), ""] for label, read in changes.items()),
        ],
        "note": "In brackets: 95 % intervals from resampling problems with all their samples; differences are paired "
        "by problem. They cover the choice of problems, not the training seed: one run cannot show that.",
    }


def _outcomes(history: History) -> Iterator[dict[str, Any]]:
    sides = [e.outcomes if e else {} for e in (history.before, history.after)]
    totals = [sum(counts.values()) for counts in sides]

    def share(outcome: Outcome) -> Iterator[str]:
        for counts, total in zip(sides, totals, strict=True):
            number = counts.get(outcome, 0)
            yield f"{number} ({_percent(number / total)})" if total else _DASH

    rows = [[outcome.value, *share(outcome)] for outcome in Outcome if any(counts.get(outcome) for counts in sides)]
    columns = ["verdict", "before", "after"]
    if rows:
        yield {"id": "verdicts", "title": "Verdicts on held-out samples", "columns": columns, "rows": rows}


def _continued(history: History) -> Iterator[dict[str, Any]]:
    if not (rows := history.run.read_continuations()):
        return
    counts = {fate: one for fate, one in count_continued(rows).items() if one.truncated}
    said = [
        f"of {one.scored} {fate}, {one.right}" for fate in (Fate.MASKED, Fate.PUNISHED) if (one := counts.get(fate))
    ]
    yield {
        "id": "continued",
        "title": "Did the mask deserve it?",
        "text": f"Would have been right at twice the limit: {'; '.join(said)}." if said else "",
        "columns": ["truncated in training", "number", "went on", "ended", "right", "share right"],
        "rows": [
            [
                str(fate),
                *(f"{number:,}" for number in (one.truncated, one.scored, one.ended, one.right)),
                _percent(Estimate(one.right / one.scored, *wilson_interval(one.right, one.scored), one.scored))
                if one.scored
                else _DASH,
            ]
            for fate, one in counts.items()
        ],
        "note": "Each went on from where it was cut, by the weights and at the temperature that sampled it, before the "
        "update; nothing was learnt from it. Drawn in each step, so many of each kind at most. In brackets: 95 % "
        "intervals (Wilson), as if all responses were independent.",
    }


def _notices(history: History, headline: BeforeAfter) -> Iterator[str]:
    before, after, unscored = history.before, history.after, history.num_unscored
    if total := sum(unscored):
        yield (
            f"{total} unscored sample{'' if total == 1 else 's'}: {unscored[0]} in training, {unscored[1]} before, "
            f"{unscored[2]} after. The sandbox failed on them, not the program, so they are in no mean on this page."
        )
    if not history.is_finished:
        yield f"This run is not finished: {len(history.steps)} steps so far, and numbers will change."
    for evaluation in (e for e in (before, after) if e and not history.run.evaluation_file(e.step).exists()):
        name = history.run.evaluation_file(evaluation.step).name
        yield f"The held-out samples evaluations/{name} are missing: rows by tier and examples may be missing too."
    if before and after and before.solved.keys() != after.solved.keys():
        yield f"Before and after used different problems; the difference covers the {headline.num_problems} in both."
    if (history.manifest.get("git") or {}).get("is_dirty"):
        yield "The working tree had uncommitted changes, so the commit alone does not give this run."


# ----- What the run was, and what its ideas did.


def _subject(config: Mapping[str, Any]) -> str:
    algorithm = algorithm_name(config.get("algorithm") or {})
    model, problems = config.get("model") or {}, config.get("problems") or {}
    if not (algorithm and model and problems):
        return ""
    size = (model.get("warm_start") or {}).get("num_layers")
    tiny = f"a tiny Qwen3 of {size} layers" if size else "a tiny Qwen3"
    name = tiny if model.get("kind") == "micro" else _last_part(model.get("path"))
    asked = "the micro lab's chains" if problems.get("kind") == "micro" else _last_part(problems.get("train"))
    return f"{algorithm} on {name}: {asked}" if asked else f"{algorithm} on {name}"


def _last_part(path: object) -> str:
    return "/".join([part for part in str(path or "").split("/") if part][-2:])


def describe_run(history: History) -> list[tuple[str, str]]:
    """Return topics with sentences, as far as the run's files have them."""
    config = history.manifest.get("config") or {}
    algorithm = config.get("algorithm") or {}
    loss, penalty = algorithm.get("loss") or {}, algorithm.get("kl_coefficient") or 0.0
    clip = f"clip {loss['clip_low']} / {loss['clip_high']}" if "clip_low" in loss else ""
    parts = (algorithm_name(algorithm), clip, f"KL {penalty:g}" if penalty else "no KL")
    limits = sorted({step.max_response_tokens for step in history.steps})
    rows = (
        ("algorithm", ", ".join(filter(None, parts)) if algorithm else ""),
        ("truncation mask", _mask(history)),
        ("temperature", _temperature(history, config)),
        ("length", _ends(history, "length_mean", "mean response of {:.1f} tokens", "{:.1f}")),
        ("diversity", _ends(history, "diversity", "{:.2f} of all 4-grams unique", "{:.2f}")),
        ("limit", _limits(limits, (config.get("evaluation") or {}).get("max_response_tokens"))),
    )
    return [(name, text) for name, text in rows if text]


def count_masked(history: History) -> tuple[int, int, Counter[str]]:
    """Return how many rollouts were trained on, how many of them were truncated, and the masked ones by reason."""
    total = truncated = 0
    masked: Counter[str] = Counter()
    for step in history.steps:
        num = sum(step.outcomes.values())
        total += num
        truncated += round(step.truncated_share * num)
        masked.update(step.masked)
    return total, truncated, masked


def _mask(history: History) -> str:
    if not history.steps:
        return ""
    total, _, masked = count_masked(history)
    reasons = {"truncated_incomplete": "cut off before the program ended", "truncated_correct": "right though cut off"}
    why = ", ".join(f"{count:,} {reasons.get(reason, reason)}" for reason, count in sorted(masked.items()) if count)
    num_masked = sum(masked.values())
    effective = round(sum(step.masked_effective_share * sum(step.outcomes.values()) for step in history.steps))
    anyway = f": {why}; of {num_masked - effective:,} it would have been 0 anyway" if num_masked else ""
    return f"{num_masked:,} of {total:,} rollouts ({num_masked / total:.1%}) had their advantage set to 0{anyway}"


def _limits(limits: Sequence[int], in_test: int | None) -> str:
    if not limits:
        return ""
    text = f"at most {' then '.join(map(str, limits))} tokens of a response in training"
    if not in_test or in_test == limits[-1]:
        return text
    return f"{text}, and {in_test} in tests: lengths and accuracy of the two differ by that"


def _temperature(history: History, config: Mapping[str, Any]) -> str:
    values = " then ".join(f"{value:g}" for value in dict.fromkeys(step.temperature for step in history.steps))
    kind = ((config.get("rollout") or {}).get("temperature") or {}).get("kind")
    if not values or kind != "diversity":
        return f"{values}, given in the recipe" if values else ""
    try:
        probe = read_probe(history.run)
    except DataError:
        return f"{values}, chosen by a probe whose file is missing"
    tried = ", ".join(f"{point.temperature:g}" for point in probe.points)
    # The reasons go through the temperatures one by one; the last one is the choice.
    return f"{values}, chosen by a probe of the untrained model at {tried}: {probe.choice.reasons[-1]}"


def _ends(history: History, name: str, first: str, second: str) -> str:
    values = [value for step in history.steps if (value := getattr(step, name)) is not None]
    num = max(1, len(values) // 10)
    ends = (first.format(fmean(values[:num])), second.format(fmean(values[-num:]))) if len(values) > 1 else ()
    return "{} at first, {} in the end".format(*ends) if ends else ""


# ----- Rollouts worth reading.


def choose_examples(history: History) -> list[dict[str, Any]]:
    """Choose examples of gains, losses, remaining failures and masked rollouts; deterministic for the same files."""
    before, after = (_by_problem(history.heldout_samples(one)) for one in (history.before, history.after))
    both = sorted(before.keys() & after.keys())
    gains = {name: _share_solved(after[name]) - _share_solved(before[name]) for name in both}
    best: dict[str, str] = {}
    for name in both:
        tier = history.tier_of.get(name, "untiered")
        is_more = gains[name] > (gains[best[tier]] if tier in best else 0.0)
        if is_more and _pick(before[name], False) and _pick(after[name], True):
            best[tier] = name
    learnt = [best[tier] for tier in history.tiers if tier in best][:_MAX_LEARNT]
    lost = [name for name in both if name not in learnt and gains[name] < 0][:1]
    rest = (name for name in sorted(after) if name not in [*learnt, *lost])
    failing = [name for name in rest if not _pick(after[name], True) and _pick(after[name], False)][:1]
    chosen = []
    for kind, names, end in (("Learnt", learnt, True), ("Lost", lost, False), ("Still failing", failing, False)):
        for name in names:
            sides = [("before", before.get(name, ()), not end)] if kind != "Still failing" else []
            sides.append(("after", after[name], end))
            why = ", ".join(f"{_tally(rows)} {label}" for label, rows, _ in sides)
            why += ": the largest gain of its tier." if kind == "Learnt" else "."
            picked = [(label, _pick(rows, wanted)) for label, rows, wanted in sides]
            chosen.append(_example(kind, name, why, [(label, row) for label, row in picked if row]))
    return [*chosen, *_masked(history)]


def _example(kind: str, problem: str, why: str, rows: Iterable[tuple[str, Row]]) -> dict[str, Any]:
    rollouts = [{"label": label, "id": row["id"]} for label, row in rows]
    return {"title": f"{kind}: {problem}", "problem_id": problem, "why": why, "rollouts": rollouts}


def _masked(history: History) -> Iterator[dict[str, Any]]:
    """Yield the first masked rollout of the last step that has one; where none was masked, the first truncated one."""
    for kind, field, share, why in (
        ("Masked", "masked_why", "masked_share", "Kept out of the loss by the truncation mask: {}."),
        ("Truncated", "is_truncated", "truncated_share", "Reached the length limit; not masked."),
    ):
        for step in (step for step in reversed(history.steps) if getattr(step, share)):
            if row := next((row for row in history.training_samples(step.step) if row[field]), None):
                yield _example(kind, row["problem_id"], why.format(row[field]), [(f"training step {step.step}", row)])
                return


def _by_problem(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["problem_id"], row["sample_index"])):
        grouped[row["problem_id"]].append(row)
    return dict(grouped)


def _scored(rows: Sequence[Row]) -> list[bool]:
    return [row["verdict"] == Outcome.ACCEPTED for row in rows if row["reward"] is not None]


def _pick(rows: Sequence[Row], is_solved: bool) -> Row | None:
    return next((row for row in rows if _scored([row]) == [is_solved]), None)


def _share_solved(rows: Sequence[Row]) -> float:
    return sum(_scored(rows)) / len(_scored(rows)) if _scored(rows) else 0.0


def _tally(rows: Sequence[Row]) -> str:
    return f"{sum(_scored(rows))} of {len(_scored(rows))} samples solved"


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
    value, low, high = (f"{100 * x:+.1f}" for x in (difference.value, difference.low, difference.high))
    direction = "flat" if not difference.excludes_zero else "up" if difference.value > 0 else "down"
    return [f"{value} ({low} to {high})".replace("-", "−"), direction]  # noqa: RUF001
