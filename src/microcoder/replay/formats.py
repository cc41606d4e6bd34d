"""Recorded rollouts of other trainers: a table of where each writes what.

A format says by which keys its rows are recognised, and where a row has each field. What no row of
a recording has is a `Lack`: it is said, and nothing is guessed in its place.

| format | written by | tested on |
|---|---|---|
| trl | `log_completions` of TRL: `completions/completions_00001.parquet` | files of TRL |
| verl | `trainer.rollout_data_dir` of verl: `1.jsonl`; its validation dumps | files of verl |
| verifiers | `traces.jsonl` of verifiers 0.4 | files of verifiers |
| verifiers_results | `results.jsonl` of earlier versions | its published code |
| prime_rl | `rollouts/step_1/train_rollouts.jsonl` of prime-rl | its published code |
| nemo_gym | rollouts that NeMo-Gym collects | its published code |
| slime | `--save-debug-rollout-data` of slime: `rollout_1.pt` | its published code |
| skyrl | `dumped_evals/*.jsonl` of SkyRL | its published code |
| rows | your own: step, prompt or problem_id, response, reward | rows |

A row of any format may also have the fields of `rows` beside its own, such as `is_truncated`.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microcoder.data.formats.values import text_of
from microcoder.data.rowfiles import read_file
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome
from microcoder.replay.torch_files import read_saved

_WHAT = "rollout file"
"""What messages call a file."""
_NUMBER = re.compile(r"(?:global_step|step|rollout|completions|^)[-_]?0*(\d+)")
"""The step in a file's or folder's name: `completions_00012`, `step_12`, `12`."""


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """A row of a trainer's file, in our words; None for what it does not have."""

    where: str
    step: int
    prompt: str
    response: str
    reward: float | None
    rewards: Mapping[str, float | None]
    """Each of several rewards."""
    problem_id: str | None
    group: str | None
    """What the samples of one problem in one step share."""
    advantage: float | None
    is_truncated: bool | None
    num_tokens: int | None
    token_ids: Sequence[int] | None
    verdict: Outcome | None
    """The outcome of the program, where it has one of our names."""


@dataclass(frozen=True, slots=True)
class Format:
    """Where the rows of a trainer's files have what."""

    name: str
    marks: tuple[str, ...]
    """Keys by which its rows are recognised: a row has all of them."""
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field of `ForeignRow` -> where it may stand, dots between keys; those of `rows` come after
    them."""
    truncated_if: tuple[str, ...] = ()
    """Values of `is_truncated`'s place that mean so, where it is no boolean."""


_OWN_PLACES: Mapping[str, tuple[str, ...]] = {
    "step": ("step",),
    "prompt": ("prompt", "input"),
    "response": ("response", "completion", "output"),
    "reward": ("reward", "score"),
    "problem_id": ("problem_id", "task_id", "question_id"),
    "group": ("group_id", "group"),
    "advantage": ("advantage",),
    "is_truncated": ("is_truncated", "truncated"),
    "num_tokens": ("num_tokens", "response_length", "completion_length"),
    "token_ids": ("token_ids", "completion_ids", "response_ids"),
    # The second is what `integrations.trl` logs.
    "verdict": ("verdict", "outcome"),
}
"""Where rows of the user's own have each field, and those of a trainer may have it, too."""

FORMATS: tuple[Format, ...] = (
    Format(
        "slime",
        ("response", "status", "tokens", "response_length"),
        {
            "group": ("group_index",),
            "is_truncated": ("status",),
            "num_tokens": ("response_length",),
        },
        truncated_if=("truncated",),
    ),
    Format(
        "nemo_gym",
        ("responses_create_params", "response", "reward"),
        {
            "prompt": ("responses_create_params.input",),
            "response": ("response.output",),
            "problem_id": ("_ng_task_index", "task_id"),
            "is_truncated": ("response.incomplete_details.reason",),
            "num_tokens": ("response.usage.output_tokens",),
        },
        truncated_if=("max_output_tokens",),
    ),
    Format(
        "prime_rl",
        ("example_id", "completion", "reward", "trajectory"),
        {"problem_id": ("example_id",), "token_ids": ("trajectory.-1.tokens.completion_ids",)},
    ),
    Format(
        "verifiers",
        ("task", "traces"),
        {
            "prompt": ("task.data.prompt",),
            "response": ("traces.-1.root_reply", "traces.-1.nodes.-1.message"),
            "problem_id": ("task.data.id", "task.key"),
            # What `integrations.verifiers` notes.
            "verdict": ("traces.-1.info.microcoder.outcome",),
        },
    ),
    Format(
        "verifiers_results",
        ("example_id", "completion", "reward"),
        {"problem_id": ("example_id",)},
    ),
    Format(
        "skyrl",
        ("input_prompt", "output_response", "score"),
        {
            "prompt": ("input_prompt",),
            "response": ("output_response",),
            "is_truncated": ("stop_reason",),
        },
        truncated_if=("length",),
    ),
    Format("verl", ("input", "output", "score", "step")),
    Format("trl", ("step", "prompt", "completion", "advantage")),
    Format("rows", ()),
)
"""All formats, in the order in which a row is tried."""

NAMES = tuple(form.name for form in FORMATS)


def recognise(row: Mapping[str, Any]) -> Format:
    """Return the first format whose marks a row has."""
    for form in FORMATS:
        if all(mark in row for mark in form.marks):
            return form
    raise AssertionError("rows has no marks")


def find_format(name: str) -> Format:
    """Return a format by its name; DataError if there is none."""
    for form in FORMATS:
        if form.name == name:
            return form
    raise DataError(f"no format of rollouts is called {name!r}; use one of {', '.join(NAMES)}")


def order_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files of some paths by step; of a folder those of rows in it, at any depth.

    Raises:
        DataError: a path does not exist, or a folder holds no such file.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [file for file in path.rglob("*") if _is_rows(file)]
            if not found:
                raise DataError(
                    f"{path} holds no file of rollouts (.parquet, .jsonl, .jsonl.gz, .json, .pt)"
                )
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise DataError(f"{_WHAT} {path} does not exist; check the path")
    return sorted(files, key=lambda file: (step_of(file) or 0, str(file)))


def _is_rows(file: Path) -> bool:
    return file.name.endswith((".parquet", ".jsonl", ".jsonl.gz", ".json", ".pt"))


def step_of(file: Path) -> int | None:
    """Return the step in a file's name, or in its folder's; None if there is none."""
    for name in (file.name.partition(".")[0], file.parent.name):
        match = _NUMBER.search(name)
        if match is not None:
            return int(match[1])
    return None


def read_rows(file: Path, form: Format | None) -> Iterator[ForeignRow]:
    """Yield the rows of a file.

    Args:
        file: of a trainer, or of the user's own.
        form: its format; None: that which its first row is recognised by.

    Raises:
        DataError: a row lacks its response, or has a field of another type.
    """
    for where, values in _raw_rows(file):
        if form is None:
            form = recognise(values)
        yield _read_row(values, form, where, step_of(file))


def peek(file: Path) -> Mapping[str, Any]:
    """Return the first row of a file; DataError if it has none."""
    for _, values in _raw_rows(file):
        return values
    raise DataError(f"{_WHAT} {file} is empty")


def _raw_rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if file.suffix == ".pt":
        saved = read_saved(file)
        samples = saved.get("samples") if isinstance(saved, Mapping) else None
        if not isinstance(samples, list):
            raise DataError(f"{_WHAT} {file} holds no list of samples, as slime saves them")
        for number, sample in enumerate(samples, 1):
            yield f"{_WHAT} {file} sample {number}", {"step": saved.get("rollout_id"), **sample}
        return
    for row in read_file(file, _WHAT):
        yield row.where, row.values


def _read_row(
    values: Mapping[str, Any], form: Format, where: str, step_of_file: int | None
) -> ForeignRow:
    response = _find(values, form, "response")
    if response is None:
        raise DataError(
            f"{where} has no response; a row needs step, prompt or problem_id, response and "
            f"reward, or the fields of one of {', '.join(NAMES)}"
        )
    problem_id = _find(values, form, "problem_id")
    group = _find(values, form, "group")
    rewards = _find_rewards(values, form)
    reward = _number(_find(values, form, "reward"), where, "reward")
    if len(rewards) > 1:
        reward = _add(rewards)
    elif rewards:
        (reward,) = rewards.values()
        rewards = {}
    token_ids = _find(values, form, "token_ids")
    num_tokens = _number(_find(values, form, "num_tokens"), where, "num_tokens")
    if token_ids is not None:
        num_tokens = len(token_ids)
    step = _number(_find(values, form, "step"), where, "step")
    # A trainer's own count is in its files' names, where its rows have none.
    if step is None:
        step = step_of_file
    return ForeignRow(
        where=where,
        step=int(step or 0),
        prompt=_text(_find(values, form, "prompt")),
        response=_text(response),
        reward=reward,
        rewards=rewards,
        problem_id=None if problem_id is None else str(problem_id),
        group=None if group is None else str(group),
        advantage=_number(_find(values, form, "advantage"), where, "advantage"),
        is_truncated=_find_truncation(values, form),
        num_tokens=None if num_tokens is None else int(num_tokens),
        token_ids=None if token_ids is None else tuple(token_ids),
        verdict=_outcome(_find(values, form, "verdict")),
    )


def _find(values: Mapping[str, Any], form: Format, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a field of a row; None if it is nowhere."""
    for place in (*form.places.get(name, ()), *_OWN_PLACES[name]):
        found = _follow(values, place)
        if found is not None:
            return found
    return None


def _follow(values: object, place: str) -> Any:  # noqa: ANN401 - any JSON
    """Return what stands at a place, such as `response.usage.output_tokens`; None if nothing."""
    for key in place.split("."):
        if isinstance(values, Mapping):
            values = values.get(key)
        elif isinstance(values, list) and values and key == "-1":
            values = values[-1]
        else:
            return None
    return values


def _find_rewards(values: Mapping[str, Any], form: Format) -> dict[str, float | None]:
    """Return the rewards of a row that has several, by name; empty if it has one reward."""
    match form.name:
        case "trl":
            return _find_columns(values)
        case "verifiers":
            return _weigh_scores(_follow(values, "traces.-1.rewards") or {})
    return {}


def _weigh_scores(scores: Mapping[str, Mapping[str, float] | None]) -> dict[str, float | None]:
    """Return verifiers' rewards, each times its weight; None where scoring did not run."""
    rewards: dict[str, float | None] = {}
    for name, score in scores.items():
        rewards[name] = None
        if score is not None:
            rewards[name] = score["score"] * score.get("weight", 1.0)
    return rewards


def _find_columns(values: Mapping[str, Any]) -> dict[str, float | None]:
    """Return TRL's rewards: the columns of numbers between completion and advantage.

    Further columns that a reward function logged stand there too; numbers among them that are no
    rewards have a name of ours (`_OWN_PLACES`).
    """
    known = {place for places in _OWN_PLACES.values() for place in places}
    names = list(values)
    between = names[names.index("completion") + 1 : names.index("advantage")]
    rewards: dict[str, float | None] = {}
    for name in between:
        value = values[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name not in known and (value is None or is_number):
            rewards[name] = None if value is None or math.isnan(value) else float(value)
    return rewards


def _add(rewards: Mapping[str, float | None]) -> float | None:
    """Return the sum of the rewards that there are, as TRL adds them; None without any."""
    known = [value for value in rewards.values() if value is not None]
    return sum(known) if known else None


def _find_truncation(values: Mapping[str, Any], form: Format) -> bool | None:
    own = form.places.get("is_truncated", ())
    for place in own:
        found = _follow(values, place)
        if found is not None:
            return str(found).lower() in form.truncated_if
        # A format that says why a response ended says nothing where it ended by itself.
        if _follow(values, place.split(".")[0]) is not None:
            return False
    found = _find(values, Format("rows", ()), "is_truncated")
    return None if found is None else bool(found)


def _outcome(value: object) -> Outcome | None:
    """Return the outcome of a name; None for any other value."""
    for outcome in Outcome:
        if outcome == value:
            return outcome
    return None


def _number(value: object, where: str, name: str) -> float | None:
    if value is None:
        return None
    # SkyRL gives a reward for each token, of which the last ones count.
    if isinstance(value, list) and all(isinstance(item, int | float) for item in value):
        value = float(sum(value))
    if not isinstance(value, int | float):
        raise DataError(f"{where}: {name} is {value!r:.60}, not a number")
    return None if math.isnan(value) else float(value)


def _text(value: object) -> str:
    """Return a text: itself, or that of a chat's turns or a response's parts, joined."""
    if value is None or isinstance(value, str):
        return value or ""
    texts = []
    # A single turn.
    if isinstance(value, Mapping):
        return text_of([value])
    if isinstance(value, Sequence):
        for turn in value:
            if isinstance(turn, Mapping):
                texts.append(text_of([turn]))
    return "\n\n".join(text for text in texts if text)


def digest_prompt(prompt: str) -> str:
    """Return a name for a problem that has none: a digest of its prompt."""
    return "prompt-" + hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:12]
