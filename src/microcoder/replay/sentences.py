"""A replay in words: a table of the alternatives, and the sentences that matter about each.

`tell_alternative` and `tell_payments` give the sentences. A sentence is written only where it is
true of the run: each has a case in the tests where it is, and one where it is not.
"""

from collections.abc import Sequence
from typing import NamedTuple

from microcoder.replay.answers import RunAnswer, StepAnswer
from microcoder.replay.disagreements import WeakProblem
from microcoder.replay.payments import PaymentCurve
from microcoder.replay.replaying import Replay, ReplayedAlternative, Reproduction

NOT_THE_OTHER_RUN = (
    "This is not the other run: it says what the same rollouts would have taught. After its first "
    "other update the other run would have sampled other rollouts."
)
"""Printed with every replay against alternatives."""

COLUMNS = (
    "",
    "differs from",
    "steps",
    "cosine",
    "masked (right)",
    "credit taken",
    "blame taken",
    "moved",
    "flat groups",
)
"""Columns of the table."""


def describe_replay(found: Replay) -> list[str]:
    """Return a replay as lines of text: what was read, the table, the sentences, what lacks."""
    run = found.recorded
    lines = [tell_recording(found)]
    if found.reproduction is not None:
        lines.append(tell_reproduction(found.reproduction))
    if found.alternatives:
        lines += ["", *_tabulate(found)]
        for alternative in found.alternatives:
            lines += ["", *tell_alternative(alternative, run)]
    if found.payments is not None:
        lines += ["", *tell_payments(found.payments)]
    if found.weak_problems:
        lines.append(tell_weak(found.weak_problems))
    if found.alternatives:
        lines += ["", NOT_THE_OTHER_RUN]
    if found.notes:
        lines += ["", "Not recorded, and so not answered:"]
        lines += [f"  {note}" for note in found.notes]
    return lines


def tell_recording(found: Replay) -> str:
    """Return what was read."""
    run = found.recorded
    return (
        f"{found.name} ({found.format}): {run.num_steps} steps, {run.num_rollouts:,} rollouts in "
        f"{run.num_groups:,} groups"
    )


def tell_reproduction(reproduction: Reproduction) -> str:
    """Return whether the recorded recipe gives what is recorded."""
    if reproduction.is_exact:
        return (
            "under its own recipe the replay gives every recorded reward, mask, advantage and dose"
        )
    return (
        f"UNDER ITS OWN RECIPE THE REPLAY DIFFERS from step {reproduction.first_step} on: "
        f"{reproduction.what}; what follows differs for that reason, too"
    )


def tell_alternative(alternative: ReplayedAlternative, recorded: RunAnswer) -> list[str]:
    """Return the sentences about an alternative: updates, advantage taken, groups and rewards."""
    run = alternative.run
    sentences = [
        f"{alternative.name}: {_tell_updates(run)}",
        _tell_taken(run, recorded),
        _tell_groups(run, recorded),
    ]
    if alternative.temperature is not None:
        sentences.append(
            "The diversity rule would have chosen temperature "
            f"{alternative.temperature.temperature:g}."
        )
    sentences += [f"{sentence}." for sentence in alternative.unanswered]
    return sentences


def _tell_updates(run: RunAnswer) -> str:
    if run.first_difference is None:
        return f"all {run.num_steps} updates would have been the same."
    text = (
        f"the update would first have differed in step {run.first_difference}, and in "
        f"{run.differing_steps} of {run.num_steps} steps"
    )
    if run.replaces_groups:
        text += (
            f"; {run.replaces_groups:,} of {run.num_groups:,} groups would have given way to other "
            "problems"
        )
    if run.recounted:
        text += f"; {run.recounted:,} responses enter or leave the loss's denominator"
    if run.cosine is not None:
        text += f" (cosine of all advantages {run.cosine:.3f})"
    return f"{text}."


def _tell_taken(run: RunAnswer, recorded: RunAnswer) -> str:
    """Return how much advantage masks take, from whom, and how much a penalty moves."""
    sentences = []
    mask = measure_mask(run)
    num_masked = sum(run.masked.values())
    if num_masked:
        sentences.append(
            f"It masks {num_masked:,} responses, {run.masked_right:,} of them right, and with them "
            f"{mask.credit + mask.blame:.1%} of all advantage ({mask.credit:.1%} credit, "
            f"{mask.blame:.1%} blame)"
        )
    penalty = _measure_penalty(run)
    if penalty:
        sentences.append(f"Its penalty moves {penalty:.1%} of all advantage")
    if not sentences:
        sentences.append("It takes no advantage away")
    text = "; ".join(sentences)
    before = measure_mask(recorded)
    text += f"; recorded: {before.credit + before.blame:.1%} masked"
    moved = _measure_penalty(recorded)
    if moved:
        text += f", {moved:.1%} moved"
    return f"{text}."


class Taken(NamedTuple):
    """Shares of all advantage that masks take."""

    credit: float
    blame: float


def measure_mask(run: RunAnswer | StepAnswer) -> Taken:
    """Return what the truncation mask and the sampler's mismatch take."""
    credit = 0.0
    blame = 0.0
    for mechanism in ("mask", "mismatch"):
        credit += run.doses.get(f"{mechanism}_positive", 0.0)
        blame += run.doses.get(f"{mechanism}_negative", 0.0)
    return Taken(credit, blame)


def _measure_penalty(run: RunAnswer) -> float:
    """Return by how much a penalty moves advantages, down and up, as a share of all."""
    return run.doses.get("penalty_positive", 0.0) + run.doses.get("penalty_negative", 0.0)


def _tell_groups(run: RunAnswer, recorded: RunAnswer) -> str:
    flat = run.flat_groups / run.num_groups
    text = f"{flat:.1%} of the groups are flat"
    if run.became_flat or run.became_mixed:
        text += (
            f" (recorded: {recorded.flat_groups / run.num_groups:.1%}; {run.became_flat:,} became "
            f"flat, {run.became_mixed:,} mixed)"
        )
    else:
        text += ", the same as recorded"
    if run.rewards_changed:
        text += f"; {run.rewards_changed:,} of {run.num_rollouts:,} rewards change"
    else:
        text += "; no reward changes"
    return f"{text}. Dynamic filtering would throw away {run.filtered['dynamic']:.1%}."


def tell_payments(curve: PaymentCurve) -> list[str]:
    """Return the sentences about what was paid and is wrong."""
    paid = sum(step.paid for step in curve.steps)
    wrong = sum(step.wrong for step in curve.steps)
    verdicts = f"by the {curve.judged_by} verdicts"
    if not wrong:
        return [f"Paid and wrong, {verdicts}: none of {paid:,} paid programs."]
    sentences = [f"Paid and wrong, {verdicts}: {wrong:,} of {paid:,} paid programs."]
    if curve.onset is None:
        sentences.append("Their share begins to rise at no step.")
        return sentences
    onset = curve.onset
    sentences.append(
        f"Their share begins to rise in step {onset.step}: from {onset.share_before:.1%} of the "
        f"paid before to {onset.share_after:.1%} since (p = {onset.p_value:.3g})."
    )
    for way in curve.ways:
        if way.since:
            sentences.append(
                f"  {way.way}: {way.since:,} since, {way.before:,} before; such as "
                f"{way.problem_id} sample {way.sample_index} of step {way.step}"
            )
    return sentences


def tell_weak(problems: Sequence[WeakProblem]) -> str:
    """Return how many problems had tests that were too weak, and of which input one is wrong."""
    first = problems[0]
    text = (
        f"Problems whose tests were too weak: {len(problems):,}; of {first.problem_id}, paid most "
        f"often, test {first.test}"
    )
    if first.accepted is None:
        return f"{text} refuses all that was paid."
    return f"{text} tells two accepted programs apart."


def list_cells(found: Replay) -> list[tuple[str, ...]]:
    """Return the rows of the table under `COLUMNS`, the recorded decisions first."""
    rows = [_row("recorded", found.recorded, found.recorded)]
    for alternative in found.alternatives:
        rows.append(_row(alternative.name, alternative.run, found.recorded))
    return rows


def _tabulate(found: Replay) -> list[str]:
    """Return the table of the alternatives as lines of text."""
    rows = [COLUMNS, *list_cells(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [_align(row, widths) for row in rows]


def _row(name: str, run: RunAnswer, recorded: RunAnswer) -> tuple[str, ...]:
    taken = measure_mask(run)
    is_other = run is not recorded
    first = "-" if run.first_difference is None else f"step {run.first_difference}"
    cosine = "-" if run.cosine is None else f"{run.cosine:.3f}"
    return (
        name,
        first if is_other else "",
        f"{run.differing_steps}/{run.num_steps}" if is_other else "",
        cosine if is_other else "",
        f"{sum(run.masked.values()):,} ({run.masked_right:,})",
        f"{taken.credit:.1%}",
        f"{taken.blame:.1%}",
        f"{_measure_penalty(run):.1%}",
        f"{run.flat_groups / run.num_groups:.1%}",
    )


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *cells = row
    parts = [f"{name:<{widths[0]}}"]
    for cell, width in zip(cells, widths[1:], strict=True):
        parts.append(f"{cell:>{width}}")
    return "  ".join(parts).rstrip()
