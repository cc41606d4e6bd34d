"""The overview of a report: model, problems, the effect of each idea, and next steps.

Hand-picked rollouts worth reading: illustrations, not a sample.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from types import MappingProxyType
from typing import Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.history import History, Row
from microcoder.train.run.probe import read_probe

_MAX_LEARNT = 3


@dataclass(frozen=True, slots=True)
class ShownRollout:
    """One rollout of an example."""

    label: str
    id: str
    """As the viewer names it: split, step and row of its file."""


@dataclass(frozen=True, slots=True)
class ExampleProblem:
    """One problem with one or two rollouts of it."""

    title: str
    problem_id: str
    why: str
    rollouts: tuple[ShownRollout, ...]


def choose_examples(history: History) -> list[ExampleProblem]:
    """Choose examples of gains, losses, remaining failures and masked rollouts; deterministic for the same files."""
    before, after = (_by_problem(history.heldout_samples(one)) for one in (history.before, history.after))
    both = sorted(before.keys() & after.keys())
    best: dict[str, tuple[float, str]] = {}
    for name in both:
        gain = _share_solved(after[name]) - _share_solved(before[name])
        tier = history.tier_of.get(name, "untiered")
        if _pick(before[name], False) and _pick(after[name], True) and gain > best.get(tier, (0.0, ""))[0]:
            best[tier] = (gain, name)
    learnt = [best[tier][1] for tier in history.tiers if tier in best][:_MAX_LEARNT]
    others = [name for name in both if name not in learnt]
    lost = [name for name in others if _share_solved(after[name]) < _share_solved(before[name])][:1]
    failing = [name for name in sorted(after) if name not in [*learnt, *lost]]
    failing = [name for name in failing if not _pick(after[name], True) and _pick(after[name], False)][:1]
    chosen = []
    for kind, names, rest, ends in (
        ("Learnt", learnt, ": the largest gain of its tier", (False, True)),
        ("Lost", lost, "", (True, False)),
        ("Still failing", failing, "", (None, False)),
    ):
        for name in names:
            sides = [("before", before.get(name, []), ends[0]), ("after", after[name], ends[1])]
            sides = [side for side in sides if side[2] is not None]
            why = ", ".join(f"{_tally(rows)} {label}" for label, rows, _ in sides)
            picked = [(label, _pick(rows, bool(wanted))) for label, rows, wanted in sides]
            shown = tuple(ShownRollout(label, row["id"]) for label, row in picked if row)
            chosen.append(ExampleProblem(f"{kind}: {name}", name, f"{why}{rest}.", shown))
    return [*chosen, *_masked(history)]


def _masked(history: History) -> Iterator[ExampleProblem]:
    """Yield the first masked rollout of the last step that has one; where none was masked, the first truncated one."""
    for kind, field, why in (
        ("Masked", "masked_why", "Kept out of the loss by the truncation mask: {}."),
        ("Truncated", "is_truncated", "Reached the length limit; not masked."),
    ):
        for step in (s for s in reversed(history.steps) if (s.masked_share if kind == "Masked" else s.truncated_share)):
            row = next((row for row in history.training_samples(step.step) if row[field]), None)
            if row:
                shown = ShownRollout(f"training step {step.step}", row["id"])
                name = row["problem_id"]
                yield ExampleProblem(f"{kind}: {name}", name, why.format(row[field]), (shown,))
                return


def _by_problem(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["problem_id"], row["sample_index"])):
        grouped[row["problem_id"]].append(row)
    return dict(grouped)


def _pick(rows: Sequence[Row], is_solved: bool) -> Row | None:
    return next((row for row in rows if row["reward"] is not None and _is_solved(row) == is_solved), None)


def _is_solved(row: Row) -> bool:
    return row["verdict"] == Outcome.ACCEPTED


def _share_solved(rows: Sequence[Row]) -> float:
    scored = [row for row in rows if row["reward"] is not None]
    return sum(map(_is_solved, scored)) / len(scored) if scored else 0.0


def _tally(rows: Sequence[Row]) -> str:
    scored = [row for row in rows if row["reward"] is not None]
    return f"{sum(map(_is_solved, scored))} of {len(scored)} samples solved"


@dataclass(frozen=True, slots=True)
class Overview:
    """Sentences of the overview, as far as the run's files have them."""

    rows: tuple[tuple[str, str], ...]
    """Topic and text."""
    next_commands: tuple[tuple[str, str], ...]
    """A command and its purpose."""
    subject: str = ""
    """What the run is, for its headline: algorithm, model and problems; empty where the files do not say."""


def describe_run(history: History) -> Overview:
    """Read the answers from a run's files."""
    config = history.manifest.get("config") or {}
    rows = (
        ("model", _model(config.get("model") or {})),
        ("problems", _problems(history, config.get("problems") or {})),
        ("algorithm", _algorithm(config.get("algorithm") or {})),
        ("truncation mask", _mask(history)),
        ("temperature", _temperature(history, config)),
        ("length", _ends(history, "length_mean", "mean response of {:.1f} tokens", "{:.1f}", _limit(history))),
        ("diversity", _ends(history, "diversity", "{:.2f} of all 4-grams unique", "{:.2f}", "")),
    )
    return Overview(
        rows=tuple((name, text) for name, text in rows if text),
        next_commands=(
            (f"microcoder view {_folder(history.manifest)}", "read every rollout with its tests"),
            ("microcoder study run --all --quick", "ask with more seeds, one factor at a time"),
        ),
        subject=_subject(config),
    )


def _subject(config: Mapping[str, Any]) -> str:
    algorithm = algorithm_name(config.get("algorithm") or {})
    model, problems = config.get("model") or {}, config.get("problems") or {}
    if not (algorithm and model and problems):
        return ""
    is_micro = model.get("kind") == "micro"
    size = (model.get("warm_start") or {}).get("num_layers") if is_micro else None
    name = (f"a tiny Qwen3 of {size} layers" if size else "a tiny Qwen3") if is_micro else _last_part(model.get("path"))
    asked = (
        f"the micro lab's {problems.get('world') or 'operations'}"
        if problems.get("kind") == "micro"
        else _last_part(problems.get("train"))
    )
    return f"{algorithm} on {name}: {asked}" if asked else f"{algorithm} on {name}"


def _last_part(path: object) -> str:
    """Return what a path or a hub id is called: its last part, and the one before a name that says nothing."""
    parts = [part for part in str(path or "").split("/") if part]
    return "/".join(parts[-2:])


def _folder(manifest: Mapping[str, Any]) -> str:
    """Return the run's folder as its command named it: where the page lies now must not change the page."""
    words = manifest.get("command")
    given = [str(word) for word in words] if isinstance(words, list) else []
    named = dict(pairwise(given)).get("--run-dir")
    return shlex.quote(named) if named else "RUN"


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


def _model(model: Mapping[str, Any]) -> str:
    if model.get("kind") != "micro":
        return str(model.get("path") or "")
    shape = model.get("warm_start")
    if not shape:
        return "the micro lab's Qwen3"
    world = shape.get("world") or "operations"
    return (
        f"a Qwen3 of {shape.get('num_layers')} layers of width {shape.get('hidden_size')}, warm-started on right and "
        f"wrong answers to the micro lab's {world}"
    )


def _problems(history: History, problems: Mapping[str, Any]) -> str:
    counted = history.manifest.get("problems") or {}
    numbers = f"{counted.get('num_train', '?')} to train on, {counted.get('num_heldout', '?')} held out"
    if problems.get("kind") != "micro":
        return f"{numbers}: {problems.get('train')}, {problems.get('heldout')}" if problems else ""
    asked = {
        "chains": "chains of two to seven steps on a digit, whose end is a constant of the program",
        "operations": "small operations on numbers and words",
    }[problems.get("world") or "operations"]
    return f"{numbers}, generated: {asked}"


def _algorithm(algorithm: Mapping[str, Any]) -> str:
    if not algorithm:
        return ""
    name = algorithm_name(algorithm)
    penalty = algorithm.get("kl_coefficient") or 0.0
    loss = algorithm.get("loss") or {}
    clip = f"clip {loss['clip_low']} / {loss['clip_high']}" if "clip_low" in loss else ""
    return ", ".join(part for part in (name, clip, f"KL {penalty:g}" if penalty else "no KL") if part)


def _mask(history: History) -> str:
    if not history.steps:
        return ""
    total, truncated, masked = count_masked(history)
    most = max(history.steps, key=lambda step: step.truncated_share)
    text = (
        f"{truncated:,} of {total:,} rollouts reached the limit ({truncated / total:.1%}; most at step {most.step}: "
        f"{most.truncated_share:.1%})"
    )
    reasons = {
        "truncated": "truncated",
        "truncated_incomplete": "cut off before the program ended",
        "truncated_correct": "right though cut off",
    }
    why = ", ".join(f"{count:,} {reasons.get(reason, reason)}" for reason, count in sorted(masked.items()) if count)
    num_masked = sum(masked.values())
    return f"{text}; of {num_masked:,} ({num_masked / total:.1%}) the advantage was set to 0" + (
        f": {why}" if why else ""
    )


def _temperature(history: History, config: Mapping[str, Any]) -> str:
    seen = list(dict.fromkeys(step.temperature for step in history.steps))
    if not seen:
        return ""
    values = " then ".join(f"{value:g}" for value in seen)
    kind = ((config.get("rollout") or {}).get("temperature") or {}).get("kind")
    if kind != "diversity":
        return f"{values}, given in the recipe"
    try:
        probe = read_probe(history.run)
    except DataError:
        return f"{values}, chosen by a probe whose file is missing"
    tried = ", ".join(f"{point.temperature:g}" for point in probe.points)
    # The reasons go through the temperatures one by one; the last one is the choice.
    return f"{values}, chosen by a probe of the untrained model at {tried}: {probe.choice.reasons[-1]}"


def _ends(history: History, name: str, first: str, second: str, rest: str) -> str:
    values = [value for step in history.steps if (value := getattr(step, name)) is not None]
    if len(values) < 2:
        return ""
    num = max(1, len(values) // 10)
    return f"{first.format(fmean(values[:num]))} at first, {second.format(fmean(values[-num:]))} in the end{rest}"


def _limit(history: History) -> str:
    limits = sorted({step.max_response_tokens for step in history.steps})
    return f"; at most {' then '.join(map(str, limits))} allowed" if limits else ""


LOSSES: Mapping[str, str] = MappingProxyType(
    {
        "dapo": "DAPO",
        "grpo": "GRPO",
        "dr_grpo": "Dr. GRPO",
        "bnpo": "BNPO",
        "gspo": "GSPO",
        "luspo": "LUSPO",
        "cispo": "CISPO",
        "sapo": "SAPO",
        "vespo": "VESPO",
        "gpg": "GPG",
        "geo_mean": "GMPO",
        "clip_cov": "Clip-Cov",
        "kl_cov": "KL-Cov",
        "dppo_tv": "DPPO (TV)",
        "dppo_kl": "DPPO (KL)",
        "dro": "DRO",
    }
)
ADVANTAGES: Mapping[str, str] = MappingProxyType(
    {"grpo": "", "dr_grpo": "Dr. GRPO's advantage", "rloo": "RLOO's advantage", "maxrl": "MaxRL's advantage"}
)
MASKS: Mapping[str, str] = MappingProxyType(
    {
        "none": "",
        "conditional": "conditional truncation mask",
        "all": "all truncated masked",
        "soft_penalty": "soft length penalty",
        "stop_properly": "stop-properly penalty",
    }
)


def algorithm_name(config: Mapping[str, Any]) -> str:
    """Return the published name of an algorithm's settings with their differences from it; empty for no settings.

    Args:
        config: the `algorithm` table of a run's manifest.
    """
    if not config:
        return ""
    loss, masking = _table(config.get("loss"), "dapo"), _table(config.get("masking"), "none")
    advantage, has_kl = str(config.get("advantage") or "grpo"), bool(config.get("kl_coefficient"))
    kind, mask = loss["kind"], _mask_name(masking)
    name = LOSSES.get(kind, kind)
    if name == "DAPO" and masking["kind"] == "conditional" and advantage == "grpo" and not has_kl:
        name, mask = "MicroCoder-GRPO", ""
    own_advantage = "" if kind == advantage == "dr_grpo" else ADVANTAGES.get(advantage, f"advantage {advantage}")
    is_symmetric = kind == "dapo" and loss.get("clip_high") is not None and loss["clip_high"] == loss.get("clip_low")
    # GRPO's own recipe has a KL term; the others have none.
    kl = ("" if has_kl else "no KL") if kind == "grpo" else ("KL" if has_kl else "")
    filtering = _table(config.get("group_filtering"), "none")["kind"]
    entropy = _table(config.get("entropy"), "none")["kind"]
    share = config.get("top_entropy_share") or 1.0
    departures = (
        own_advantage,
        mask,
        "symmetric clip" if is_symmetric else "",
        kl,
        "dynamic sampling" if filtering == "dynamic" else "",
        "" if entropy == "none" else f"entropy {entropy}",
        "" if share >= 1 else f"top {share:.0%} of tokens by entropy",
    )
    return ", ".join([name, *(text for text in departures if text)])


def _mask_name(masking: Mapping[str, Any]) -> str:
    kind = str(masking["kind"])
    if kind == "own":
        return f"mask {masking.get('name')}"
    out_of = masking.get("leave_out_of") or "gradient"
    return MASKS.get(kind, kind) + ("" if out_of == "gradient" else f" (out of the {out_of})")


def _table(value: object, default: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"kind": default, **value}
    return {"kind": value or default}
