"""A replay as the viewer's page shows it, kept in the run's folder as `replay.json`.

Sentences, table and curves are made here, so that the page only draws them. Of the rollouts that an
alternative decides otherwise their places are kept; what they are stands in the run's own files.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field

from pydantic import TypeAdapter, ValidationError

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.files import to_line, write_text
from microcoder.replay.answers import DifferingRollout, StepAnswer
from microcoder.replay.payments import PaymentCurve, WayCount
from microcoder.replay.recordings import Recording
from microcoder.replay.replaying import Replay
from microcoder.replay.sentences import (
    COLUMNS,
    NOT_THE_OTHER_RUN,
    list_cells,
    measure_mask,
    tell_alternative,
    tell_payments,
    tell_recording,
    tell_reproduction,
    tell_weak,
)
from microcoder.train.runs import RunDirectory, read_steps, steps_in

_FORMAT = 1
"""Version of the file: one of another version is not shown."""

_DIGITS = 6
"""Digits of a curve's values behind the point: more than a chart shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedLine:
    """A line of a chart: of the recording, of an alternative, or of some verdicts."""

    label: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] | None = None
    """Lower ends of 95 % intervals; None for a line without them."""
    high: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChart:
    """One quantity by step, the recorded beside the alternatives."""

    title: str
    unit: str
    """`share` or `count`."""
    lines: tuple[SavedLine, ...]
    mark: int | None = None
    """A step to draw attention to; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAlternative:
    """What is said about an alternative, and which rollouts it decides otherwise."""

    name: str
    sentences: tuple[str, ...]
    differing: Mapping[int, tuple[int, ...]]
    """Step -> rows of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedReplay:
    """What the page of a replay shows."""

    format: int
    sizes: Mapping[int, int]
    """Step -> bytes of its file of rollouts, by which a reader knows if it is still the same."""
    about: str
    reproduction: str
    """Whether the recorded recipe gives what is recorded; empty where no recipe is."""
    is_exact: bool
    """Whether it does."""
    limits: str
    """What a replay is not."""
    columns: tuple[str, ...]
    """Headings of the table."""
    rows: tuple[tuple[str, ...], ...]
    alternatives: tuple[SavedAlternative, ...]
    charts: tuple[SavedChart, ...]
    payments: tuple[str, ...]
    """Sentences about what was paid and is wrong; empty where no verdicts are recorded."""
    paid: SavedChart | None
    """The same by step; None if nothing was."""
    ways: tuple[WayCount, ...]
    weak: str
    """A sentence on problems whose tests were too weak; empty without one."""
    notes: tuple[str, ...]
    """What is not recorded, and so not answered."""


@dataclass
class Places:
    """Collects which rollouts alternatives decide otherwise, as `replay` goes through the steps."""

    of: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Name of an alternative -> step -> rows."""

    def add(self, rows: Sequence[DifferingRollout]) -> None:
        """Add the rollouts of a step that one alternative decides otherwise."""
        if rows:
            first = rows[0]
            self.of.setdefault(first.alternative, {})[first.step] = tuple(row.row for row in rows)


_READER = TypeAdapter(SavedReplay)


def check_can_save(recording: Recording) -> RunDirectory:
    """Return the run's folder.

    Raises:
        ConfigError: the rollouts have no folder that the viewer opens.
    """
    if recording.format != "microcoder":
        raise ConfigError(
            "--save keeps the replay in the folder of a run of `microcoder train`, which the "
            f"viewer opens; rollouts of {recording.format} have none, so use --json > FILE"
        )
    return RunDirectory(recording.paths[0])


def save_replay(run: RunDirectory, found: Replay, places: Places) -> None:
    """Write a replay into the folder of its run, in place of the one before."""
    write_text(run.replay, to_line(asdict(_describe(run, found, places))))


def read_replay(run: RunDirectory) -> SavedReplay:
    """Return the replay that is kept in a run's folder.

    Raises:
        DataError: there is none, it is damaged, or it is of another version.
    """
    try:
        saved = _READER.validate_json(run.replay.read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"{run.root} holds no replay; type: microcoder replay {run.root} --against dapo --save"
        ) from None
    except ValidationError:
        # What the file holds is not repeated: a folder from elsewhere may have a link there.
        saved = None
    if saved is None or saved.format != _FORMAT:
        raise DataError(
            f"{run.replay} is damaged or of another version; make it again: microcoder replay "
            f"{run.root} --against dapo --save"
        )
    return saved


def tell_changes(run: RunDirectory, saved: SavedReplay) -> str:
    """Return how the rollouts differ from those that were replayed; empty if they do not."""
    # As in a replay: a file without a row was cut off by a kill.
    done = {row.step for row in read_steps(run)}
    sizes = _measure_files(run, [step for step in steps_in(run.rollouts) if step in done])
    both = sizes.keys() & saved.sizes.keys()
    parts = {
        "new since": sizes.keys() - saved.sizes.keys(),
        "gone since": saved.sizes.keys() - sizes.keys(),
        "written again": {step for step in both if sizes[step] != saved.sizes[step]},
    }
    told = [f"{name}: {_name_steps(steps)}" for name, steps in parts.items() if steps]
    if not told:
        return ""
    return (
        "This replay was made of other rollouts than the run has now. "
        f"{'; '.join(told).capitalize()}. To make it again, repeat the command with --save."
    )


def _name_steps(steps: Set[int]) -> str:
    if len(steps) == 1:
        return f"step {min(steps)}"
    return f"{len(steps):,} steps, the first of them {min(steps)}"


def _measure_files(run: RunDirectory, steps: Sequence[int]) -> dict[int, int]:
    """Return the bytes of each step's file."""
    return {step: run.rollout_file(step).stat().st_size for step in steps}


def _describe(run: RunDirectory, found: Replay, places: Places) -> SavedReplay:
    alternatives = []
    for alternative in found.alternatives:
        saved = SavedAlternative(
            name=alternative.name,
            sentences=tuple(tell_alternative(alternative, found.recorded)),
            differing=places.of.get(alternative.name, {}),
        )
        alternatives.append(saved)
    payments = found.payments
    reproduction = found.reproduction
    return SavedReplay(
        format=_FORMAT,
        sizes=_measure_files(run, [fact.step for fact in found.facts]),
        about=tell_recording(found),
        reproduction="" if reproduction is None else tell_reproduction(reproduction),
        is_exact=reproduction is None or reproduction.is_exact,
        limits=NOT_THE_OTHER_RUN,
        columns=COLUMNS,
        rows=tuple(list_cells(found)),
        alternatives=tuple(alternatives),
        charts=tuple(_draw(found)),
        payments=() if payments is None else tuple(tell_payments(payments)),
        paid=None if payments is None else _draw_payments(payments),
        ways=() if payments is None else payments.ways,
        weak=tell_weak(found.weak_problems) if found.weak_problems else "",
        notes=found.notes,
    )


def _draw(found: Replay) -> list[SavedChart]:
    """Return the charts of the alternatives beside the recorded; of masks only if there are any."""
    num_groups = {fact.step: fact.num_groups for fact in found.facts}
    answers = {"recorded": found.recorded_steps}
    for alternative in found.alternatives:
        answers[alternative.name] = alternative.steps
    charts = []
    if any(answer.masked for steps in answers.values() for answer in steps):
        charts += [
            _chart("Masked responses", "count", answers, lambda row: sum(row.masked.values())),
            _chart("Credit taken by masks", "share", answers, lambda row: measure_mask(row).credit),
            _chart("Blame taken by masks", "share", answers, lambda row: measure_mask(row).blame),
        ]
    charts.append(
        _chart("Flat groups", "share", answers, lambda row: row.flat_groups / num_groups[row.step])
    )
    del answers["recorded"]
    cosine = _chart("Cosine with the recorded advantages", "count", answers, lambda row: row.cosine)
    if cosine.lines:
        charts.append(cosine)
    return charts


def _chart(
    title: str,
    unit: str,
    answers: Mapping[str, Sequence[StepAnswer]],
    measure: Callable[[StepAnswer], float | None],
) -> SavedChart:
    lines = []
    for label, rows in answers.items():
        steps = []
        values = []
        for row in rows:
            value = measure(row)
            if value is not None:
                steps.append(row.step)
                values.append(round(value, _DIGITS))
        if steps:
            lines.append(SavedLine(label=label, steps=tuple(steps), values=tuple(values)))
    return SavedChart(title=title, unit=unit, lines=tuple(lines))


def _draw_payments(curve: PaymentCurve) -> SavedChart | None:
    """Return the share of the paid that is wrong, with its intervals; None if nothing is."""
    if not any(step.wrong for step in curve.steps):
        return None
    known = [step for step in curve.steps if step.share is not None]
    line = SavedLine(
        label=f"{curve.judged_by} verdicts",
        steps=tuple(step.step for step in known),
        values=tuple(round(step.share or 0.0, _DIGITS) for step in known),
        low=tuple(round(step.low, _DIGITS) for step in known),
        high=tuple(round(step.high, _DIGITS) for step in known),
    )
    mark = None if curve.onset is None else curve.onset.step
    return SavedChart(title="Paid and wrong", unit="share", lines=(line,), mark=mark)
