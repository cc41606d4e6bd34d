"""Measurements of the published studies, for `function = "measures.py:NAME"` in a study file.

A run's programs judged again with another comparison of outputs. The same rollouts under several
rules: the effect of one step each on held-out responses. Models sampled over a grid of
temperatures, by the probe that chooses one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Program
from microcoder.judge.fleet.judge import BatchJudge
from microcoder.lab.studies.work import MeasuredValue, Work
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.judging import open_judge
from microcoder.train.run.probe import Probe, read_probe
from microcoder.train.run.tasks import Task, load_tasks
from microcoder.train.run.training import run_training
from microcoder.train.runs import RunDirectory, read_rollouts, steps_in

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ACCEPTED = "accepted"


def judge_both_ways(work: Work, *, share: float = 1 / 3) -> Iterator[MeasuredValue]:
    """Yield the share of a run's training rollouts that are accepted by the robust and by the
    strict comparison.

    Metrics: `accepted`, problem by problem, of what the untrained model wrote in the first step,
    levels `robust` and `strict`; `gap`, robust less strict over all rollouts of a run's steps,
    levels `early` and `late`.

    Args:
        work: uses one level, trained with the robust comparison.
        share: of the steps, the first are early and as many at the end late; at least one.
    """
    run = RunDirectory(next(iter(work.runs.values())))
    if work.config.evaluator.comparison != "robust":
        raise DataError(
            f"{run.root} was trained with comparison = "
            f"{work.config.evaluator.comparison!r}, not robust"
        )
    evaluator = work.config.evaluator.model_copy(update={"comparison": "strict"})
    tasks = {}
    for t in load_tasks(work.config.model_copy(update={"evaluator": evaluator})).train:
        tasks[t.problem.id] = t
    steps = steps_in(run.rollouts)
    gaps: dict[int, float] = {}
    with open_judge(evaluator) as (judge, _):
        for step in steps:
            rows = []
            for row in read_rollouts(run.rollout_file(step)):
                if row["reward"] is not None:
                    rows.append(row)
            both = _judge_accepted(rows, tasks, judge)
            gaps[step] = fmean(robust - strict for robust, strict in both)
            if step == steps[0]:
                yield from _by_problem(rows, both, seed=work.seed)
    num = max(1, round(share * len(steps)))
    yield MeasuredValue(
        "gap",
        "early",
        f"seed{work.seed}",
        fmean(gaps[step] for step in steps[:num]),
    )
    yield MeasuredValue(
        "gap",
        "late",
        f"seed{work.seed}",
        fmean(gaps[step] for step in steps[-num:]),
    )


def _judge_accepted(
    rows: Sequence[Mapping[str, Any]],
    tasks: Mapping[str, Task],
    judge: BatchJudge,
) -> list[tuple[float, float]]:
    """Return for each rollout whether the robust and whether the strict comparison accepts it."""
    wanted = []
    for row in rows:
        if row["verdict"] == ACCEPTED:
            wanted.append(row)
    problems = [tasks[row["problem_id"]].problem for row in wanted]
    programs = []
    for row, problem in zip(wanted, problems, strict=True):
        programs.append(Program(code=row["program"], language=problem.language))
    verdicts = judge.judge(programs, problems)
    if faults := [verdict for verdict in verdicts if not verdict.is_scorable]:
        raise EvaluatorFault(
            f"{len(faults)} of {len(verdicts)} programs could not be judged anew: "
            f"{faults[0].detail}"
        )
    anew = iter(verdicts)
    judged = []
    for row in rows:
        is_right = row["verdict"] == ACCEPTED
        judged.append((float(is_right), float(is_right and next(anew).is_accepted)))
    return judged


def _by_problem(
    rows: Sequence[Mapping[str, Any]],
    both: Sequence[tuple[float, float]],
    *,
    seed: int,
) -> Iterator[MeasuredValue]:
    of: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row, pair in zip(rows, both, strict=True):
        of[row["problem_id"]].append(pair)
    for problem, pairs in of.items():
        for level, place in (("robust", 0), ("strict", 1)):
            yield MeasuredValue(
                "accepted",
                level,
                f"seed{seed}/{problem}",
                fmean(pair[place] for pair in pairs),
            )


def step_under_rules(
    work: Work,
    *,
    rules: dict[str, dict[str, Any]],
    repeat_window_tokens: int = 10,
) -> Iterator[MeasuredValue]:
    """Take one step under each rule, and yield its effect on held-out responses of the untrained
    model.

    Metrics, a value a seed: `length_shift`, the mean change of log-probability of truncated
    responses less that of whole ones; `repeat_shift`, of truncated responses that repeat themselves
    less that of the other truncated ones; `right_shift`, of the right ones; `masked_effective`, the
    share of rollouts whose advantage the rule changed.

    Args:
        work: a recipe of one step.
        rules: level -> recipe keys over the work's.
        repeat_window_tokens: longest period that counts as repeating.
    """

    first: RunDirectory | None = None
    # Held-out problems are sampled under one seed in all runs;
    # here each seed is to have its own responses.
    one_step = {"num_steps": 1, "evaluation.seed": work.config.evaluation.seed + 1000 * work.seed}
    for level, keys in rules.items():
        config = load_config(
            TrainConfig, layers=[work.config.model_dump(mode="json"), keys, one_step]
        )
        run = RunDirectory(work.folder / re.sub(r"\W+", "_", level))
        run_training(config, run_directory=run.root, observer=Observer())
        first = first or run
        _check_alike(first, run, level)
        for metric, value in _measure(config, run, repeat_window_tokens).items():
            if value is not None:
                yield MeasuredValue(metric, level, f"seed{work.seed}", value)


def _check_alike(first: RunDirectory, other: RunDirectory, level: str) -> None:
    ours, theirs = (
        [
            (row["problem_id"], row["completion"])
            for path in (run.rollout_file(1), run.evaluation_file(0))
            for row in read_rollouts(path)
        ]
        for run in (first, other)
    )
    if ours != theirs:
        raise DataError(
            f"the rollouts under rule {level!r} are not those under the first: sampling is "
            "not reproducible here"
        )


def _measure(
    config: TrainConfig,
    run: RunDirectory,
    repeat_window_tokens: int,
) -> dict[str, float | None]:
    from microcoder.train.run.warm import find_model

    before = Path(find_model(config, Observer()))
    shifts = measure_shifts(before, run.model, read_rollouts(run.evaluation_file(0)))
    right: list[float] = []
    for shift in shifts:
        if shift.response.is_accepted:
            right.append(shift.change)
    return {
        "length_shift": contrast_length(shifts),
        "repeat_shift": contrast_repeats(shifts, window_tokens=repeat_window_tokens),
        "right_shift": fmean(right) if right else None,
        "masked_effective": run.read_metrics()[0]["masked_effective_share"],
    }


# ----- The change of held-out responses' log-probability by training, response by response.
# They are those of the untrained model, so that two runs from one model are compared on the same.

_ROWS_AT_ONCE = 64
_LEAST_READ_SHARE = 0.5
"""Least share of responses whose text encodes to as many tokens as were sampled;
the rest are left out.
"""


@dataclass(frozen=True, slots=True)
class TokenizedResponse:
    """A response as token ids, with its prompt's."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    is_truncated: bool
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class Shift:
    """The change of one response."""

    response: TokenizedResponse
    change: float
    """Change of its log-probability at temperature 1, summed over its tokens."""


def measure_shifts(before: Path, after: Path, rows: Sequence[dict[str, Any]]) -> list[Shift]:
    """Return how the log-probability of responses differs between two checkpoints of one model.

    Args:
        before: folder of the model that wrote the responses.
        after: folder of the same model, trained.
        rows: rollout rows with `prompt`, `completion`, `num_tokens`, `is_truncated` and `verdict`.
    """
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(before)
    responses = read_responses(tokenizer, rows)
    if len(responses) < _LEAST_READ_SHARE * len(rows):
        raise DataError(
            f"{len(rows) - len(responses)} of {len(rows)} responses read otherwise than "
            "they were sampled: the "
            f"tokenizer in {before} writes one text in several ways, so their "
            "log-probability cannot be computed"
        )
    old = _log_probabilities(before, responses)
    new = _log_probabilities(after, responses)
    return [Shift(response, b - a) for response, a, b in zip(responses, old, new, strict=True)]


def read_responses(
    tokenizer: "PreTrainedTokenizerBase", rows: Sequence[dict[str, Any]]
) -> list[TokenizedResponse]:
    """Return the responses whose text is read back as equally many tokens;
    whole ones end with the tokenizer's end.
    """
    from microcoder.train.rollouts import render_chat

    responses = []
    for row in rows:
        ids = tokenizer(row["completion"], add_special_tokens=False)["input_ids"]
        ids = ids if row["is_truncated"] else [*ids, tokenizer.eos_token_id]
        if len(ids) == row["num_tokens"]:
            asked = render_chat(tokenizer, [{"role": "user", "content": row["prompt"]}], {})
            prompt = tokenizer(asked, add_special_tokens=False)["input_ids"]
            accepted = row["verdict"] == "accepted"
            responses.append(
                TokenizedResponse(tuple(prompt), tuple(ids), row["is_truncated"], accepted)
            )
    return responses


def contrast_length(shifts: Sequence[Shift]) -> float | None:
    """Return the mean change of truncated responses less that of whole ones;
    None if there are none of either.
    """
    cut = []
    for shift in shifts:
        if shift.response.is_truncated:
            cut.append(shift.change)
    whole = []
    for shift in shifts:
        if not shift.response.is_truncated:
            whole.append(shift.change)
    if cut and whole:
        return fmean(cut) - fmean(whole)
    return None


def contrast_repeats(shifts: Sequence[Shift], *, window_tokens: int) -> float | None:
    """Return the mean change of truncated responses that repeat themselves less that of the other
    truncated ones.
    """
    cut = []
    for shift in shifts:
        if shift.response.is_truncated:
            cut.append(shift)
    loops = [_loops(s.response.token_ids, window_tokens) for s in cut]
    looping = []
    for shift, is_loop in zip(cut, loops, strict=True):
        if is_loop:
            looping.append(shift.change)
    others = []
    for shift, is_loop in zip(cut, loops, strict=True):
        if not is_loop:
            others.append(shift.change)
    if looping and others:
        return fmean(looping) - fmean(others)
    return None


def _loops(ids: Sequence[int], window: int) -> bool:
    """Return whether the last tokens equal those that stand p before,
    for a p of at most the window.
    """
    last = ids[-window:]
    return any(
        len(ids) >= window + p and ids[-window - p : -p] == last for p in range(1, window + 1)
    )


def _log_probabilities(folder: Path, responses: Sequence[TokenizedResponse]) -> list[float]:
    """Return the log-probability of each response under a model."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    found = [0.0] * len(responses)
    order = sorted(
        range(len(responses)),
        key=lambda row: len(responses[row].prompt_ids + responses[row].token_ids),
    )
    for start in range(0, len(order), _ROWS_AT_ONCE):
        rows = order[start : start + _ROWS_AT_ONCE]
        texts = [torch.tensor(responses[row].prompt_ids + responses[row].token_ids) for row in rows]
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence(
            [torch.ones_like(text) for text in texts], batch_first=True
        )
        with torch.no_grad():
            logps = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
        each = logps.gather(-1, ids[:, 1:, None])[..., 0]
        for place, row in enumerate(rows):
            first = len(responses[row].prompt_ids) - 1
            found[row] = (
                each[place, first : first + len(responses[row].token_ids)].double().sum().item()
            )
    return found


# ----- Temperatures.


HOLDING_SHARE = 0.8
"""A temperature holds if it keeps this share of the best accuracy among those tried."""


def holding_temperature(sweep: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the highest temperature at which accuracy holds, interpolated between those tried;
    None without a sweep.

    It holds where it keeps `HOLDING_SHARE` of the best accuracy among the temperatures tried.
    """
    known = []
    for p in sweep:
        if p["accuracy"] is not None:
            known.append((p["temperature"], p["accuracy"]))
    points = sorted(known)
    best = max((accuracy for _, accuracy in points), default=0.0)
    if not best:
        return None
    bound = HOLDING_SHARE * best
    reached = []
    for index, (_, accuracy) in enumerate(points):
        if accuracy >= bound:
            reached.append(index)
    last = max(reached)
    if last == len(points) - 1:
        return points[-1][0]
    (low, above), (high, below) = points[last], points[last + 1]
    return low + (high - low) * (above - bound) / (above - below)


def sweep_temperatures(
    work: Work,
    *,
    grid: tuple[float, ...],
    num_problems: int = 64,
    converged_diversity: float = 0.7,
) -> Iterator[MeasuredValue]:
    """Sample training problems with the untrained model, and with a trained one,
    at each temperature.

    Metrics, a value a seed: `diversity` of the untrained model, a level a temperature (`T 0.6`);
    `chosen`, level `rule`, the temperature that the rule on diversity takes; `holding_temperature`,
    levels `untrained` and `trained`, the highest at which accuracy keeps 80 % of its best.

    Args:
        work: uses one level, whose final model is the trained one.
        grid: temperatures, ascending.
        num_problems: sampled at each temperature.
        converged_diversity: what the rule compares with, see `DiversityTemperature`.
    """
    untrained, trained = (
        _probe(work, label, keys, grid, num_problems, converged_diversity)
        for label, keys in (
            ("untrained", {}),
            ("trained", _as_model(next(iter(work.runs.values())) / "model")),
        )
    )
    unit = f"seed{work.seed}"
    yield MeasuredValue("chosen", "rule", unit, untrained.choice.temperature)
    for point in untrained.points:
        if point.diversity is not None:
            yield MeasuredValue("diversity", f"T {point.temperature:g}", unit, point.diversity)
    for label, probe in (("untrained", untrained), ("trained", trained)):
        if (held := holding_temperature([asdict(point) for point in probe.points])) is not None:
            yield MeasuredValue("holding_temperature", label, unit, held)


def _as_model(folder: Path) -> dict[str, Any]:
    return {
        "model": {
            "kind": "hugging_face",
            "path": str(folder.absolute()),
            "compute_dtype": "float32",
            "gradient_checkpointing": False,
        }
    }


class _ProbeMade(Exception):
    """Ends a run after its probe is recorded."""


class _AfterProbe(Observer):
    def probe(self, probe: Probe) -> None:
        raise _ProbeMade


def _probe(
    work: Work,
    label: str,
    keys: dict[str, Any],
    grid: Sequence[float],
    num_problems: int,
    converged_diversity: float,
) -> Probe:

    temperature = {
        "kind": "diversity",
        "grid": list(grid),
        "num_problems": num_problems,
        "converged_diversity": converged_diversity,
    }
    # The probe samples under the seed of evaluation, which is one for all runs:
    # here each seed is to sample its own.
    seed = work.config.evaluation.seed + 1000 * work.seed
    layers = [
        work.config.model_dump(mode="json"),
        {**keys, "rollout.temperature": temperature, "evaluation.seed": seed},
    ]
    run = RunDirectory(work.folder / f"probe-{label}")
    if not run.probe.exists():
        with suppress(_ProbeMade):
            run_training(
                load_config(TrainConfig, layers=layers),
                run_directory=run.root,
                observer=_AfterProbe(),
            )
    return read_probe(run)
