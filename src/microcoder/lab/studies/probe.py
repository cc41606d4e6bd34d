"""The probe as a figure: accuracy and diversity against temperature, with the bounds and the choice."""

from __future__ import annotations

from pathlib import Path

from microcoder.judge.core.files import write_text
from microcoder.lab.studies.figures import BLACK, BLUE, GREEN, VERMILION, Chart, new_figure, render
from microcoder.lab.studies.history import missing_extra
from microcoder.train.run.probe import Probe, read_probe
from microcoder.train.runs import RunDirectory


def write_probe_figure(run_directory: Path) -> Path:
    """Draw the recorded probe of a run directory into it, and return the path."""
    run = RunDirectory(run_directory)
    probe = read_probe(run)
    try:
        write_text(run.probe_figure, draw_probe(probe).svg)
    except ImportError as error:
        raise missing_extra(error) from None
    return run.probe_figure


def draw_probe(probe: Probe) -> Chart:
    """Draw accuracy above, diversity below; the converged diversity and the bounds as lines."""
    figure, (top, bottom) = new_figure(2)
    temperatures = [point.temperature for point in probe.points]
    best = max((point.accuracy or 0.0 for point in probe.points), default=0.0)
    for axes, values, colour, name in (
        (top, [point.accuracy for point in probe.points], BLUE, "accuracy"),
        (bottom, [point.diversity for point in probe.points], GREEN, "diversity"),
    ):
        known = [(t, value) for t, value in zip(temperatures, values, strict=True) if value is not None]
        axes.plot([t for t, _ in known], [value for _, value in known], "o-", color=colour, label=name)
        axes.axvline(probe.choice.temperature, color=BLACK, linestyle="--", label="chosen" if axes is top else "")
        axes.set_ylabel(name)
    top.axhline(probe.min_accuracy_share * best, color=VERMILION, linewidth=1, label="unstable below")
    bottom.axhline(probe.max_diversity, color=VERMILION, linewidth=1, label="unstable above")
    bottom.axhline(probe.converged_diversity, color=GREEN, linewidth=1, linestyle=":", label="converged")
    top.set_ylim(bottom=0)
    bottom.set_ylim(0, 1.03)
    bottom.set_xlabel("temperature")
    for axes in (top, bottom):
        axes.legend(loc="best", fontsize=8, frameon=False)
    return render(
        figure,
        "probe",
        "Accuracy and diversity of the untrained model by temperature",
        f"Temperature {probe.choice.temperature:g} was chosen. {'; '.join(probe.choice.reasons)}.",
    )
