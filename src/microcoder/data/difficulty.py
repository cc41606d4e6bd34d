"""Difficulty of problems, and selection by it: a model's scores, or pass rates.

See docs/dataset.md.

A model scores five dimensions, several times each. The paper's companion on data (arXiv 2603.07779,
which we know second-hand) names two of them, Algorithmic Thinking and Implementation, and their
sources (Bloom's taxonomy, McCabe, Halstead). The other three, all weights, the scale and the prompt
are our choice. The companion gives two boundaries, 2.5 and 2.75, and their effect: the easy share
fell from 40 % to 20 % and the size from 100 to 70. Our reading is that only problems below 2.5 are
dropped, the easiest first; the other boundary decides nothing here.

A pass rate is the share of a model's attempts that passed: judged by our evaluator, or published
with the problem.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from microcoder.data.completions import Endpoint
from microcoder.data.formats.candidates import Candidate, Difficulty
from microcoder.data.formats.row import Malformed
from microcoder.data.rowfiles import placed, read_file
from microcoder.judge import Judge
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Record

LOWEST = 1
"""Score of the easiest problems."""
HIGHEST = 5
"""Score of the hardest problems."""
TIMES = 3
"""How often the model scores each problem; the number of arXiv 2603.07779."""
_ATTEMPTS = 3
"""At most so many attempts per score, while replies do not follow the schema."""
_TEMPERATURE = 0.7
"""Sampling temperature of scores: above 0, so that three scores of a problem tell more than one."""
_MOST_CHARACTERS = 20_000
"""Characters of a statement that the model is shown."""
_DIGEST_CHARACTERS = 12
"""Hexadecimal digits of the prompt's digest."""
DIMENSIONS: Mapping[str, tuple[float, str]] = {
    "algorithmic_thinking": (
        0.35,
        "How far is the idea of the solution from what the statement says? "
        "1: do what it says; 3: a standard algorithm; "
        "5: several ideas that must be found and combined.",
    ),
    "implementation": (
        0.25,
        "How long and how branched is a correct program? "
        "1: a few lines; 3: some functions or a data structure; "
        "5: long, with many interlocking parts.",
    ),
    "comprehension": (
        0.1,
        "How hard is it to understand what is asked? "
        "1: one reading; 5: several readings and a sketch.",
    ),
    "efficiency": (
        0.2,
        "How far do the limits push beyond the obvious program? "
        "1: any program will do; 3: one order of growth must be saved; "
        "5: several, or constant factors too.",
    ),
    "edge_cases": (
        0.1,
        "How easily is a program with the right idea still wrong? "
        "1: hardly; 5: many cases break it.",
    ),
}
"""By dimension: its weight (they add up to 1), and the question that the model scores."""
_SCALE = "\n".join(f"- {name}: {question}" for name, (_, question) in DIMENSIONS.items())
_PROMPT = f"""\
You grade how difficult programming problems are for a student who has passed a first course.
Score the problem below on each dimension, with an integer from {LOWEST} (easiest) \
to {HIGHEST} (hardest).

{_SCALE}

Answer with one JSON object and nothing else.

Problem:
"""
_SCORE = Annotated[int, Field(ge=LOWEST, le=HIGHEST)]
"""A score of one dimension."""
_SCORES: dict[str, Any] = dict.fromkeys(DIMENSIONS, _SCORE)
Scores = create_model("Scores", __base__=Record, **_SCORES)
"""A model's reply: a score for each dimension."""


def score_difficulty(candidate: Candidate, model: Endpoint) -> Candidate:
    """Return a candidate with the difficulty that a model gives it, on a scale of 1 to 5.

    It is returned unchanged if the model does not follow the schema in three attempts for a score.
    """
    statement = candidate.statement[:_MOST_CHARACTERS]
    answers: list[dict[str, int]] = []
    for time in range(TIMES):
        # Asked again under other seeds where it does not follow the schema.
        # No two scores share a seed: one reply would count twice.
        seeds = range(time, TIMES * _ATTEMPTS, TIMES)
        scores = model.ask_again(
            f"{_PROMPT}{statement}\n",
            Scores,
            seeds=seeds,
            temperature=_TEMPERATURE,
        )
        if scores is None:
            return candidate
        answers.append(scores.model_dump())
    score = 0.0
    shown = []
    for name, (weight, _) in DIMENSIONS.items():
        mean = sum(answer[name] for answer in answers) / TIMES
        score += weight * mean
        shown.append(f"{name} {mean:.2f}")
    # Scores of another prompt are no measure of the same thing, so it is named with the model.
    digest = hashlib.sha256(_PROMPT.encode()).hexdigest()
    prompt_digest = digest[:_DIGEST_CHARACTERS]
    predictor = f"{model.settings.model} {prompt_digest}"
    detail = f"{predictor}: {', '.join(shown)}"
    difficulty = candidate.difficulty.model_copy(
        update={"predicted": round(score, 4), "predictor": predictor}
    )
    return candidate.change("filter", "score_difficulty/1", detail, difficulty=difficulty)


class SelectionSettings(Config):
    """Which problems are kept by their difficulty: all but easy ones, and a share of these."""

    by: Literal["predicted", "pass_rate"] = "predicted"
    """Value compared with `easy_below`: a model's score of difficulty, or the share of attempts
    that failed, 0 to 1."""
    easy_below: float = 2.5
    """Problems below this value are easy. The lower boundary of arXiv 2603.07779, on its own
    scale."""
    easy_share: float = Field(default=0.2, ge=0, lt=1)
    """Largest share of easy problems; further ones are dropped, the easiest first; the share of
    arXiv 2603.07779."""

    def _contradictions(self) -> Iterator[str]:
        if self.by == "pass_rate" and not 0 < self.easy_below < 1:
            yield (
                f"easy_below = {self.easy_below} of a share of wrong answers; "
                "give a number between 0 and 1"
            )


def read_responses(path: Path) -> dict[str, list[str]]:
    """Return a model's attempts by problem id, from JSON lines with `id` and `responses`.

    Raises:
        DataError: a line is not such.
    """
    responses: dict[str, list[str]] = {}
    for row in read_file(path, "responses"):
        with placed(row.where, 'write {"id": "...", "responses": ["...", ...]}'):
            if not row.fields.has("responses"):
                raise Malformed("missing_field", "responses")
            name = row.fields.name("id")
            if not name:
                raise Malformed("missing_field", "id")
            of_problem = responses.setdefault(name, [])
            of_problem.extend(row.fields.texts("responses"))
    return responses


def judge_attempts(
    candidates: Sequence[Candidate],
    responses: Mapping[str, Sequence[str]],
    judge: Judge,
) -> dict[str, tuple[int, int]]:
    """Judge a model's responses, and return by candidate id how many passed and were judged.

    Attempts that the sandbox could not score are left out; so are candidates without an attempt.

    Args:
        responses: by candidate id.
    """
    programs = []
    problems = []
    for candidate in candidates:
        texts = responses.get(candidate.id)
        if not texts:
            continue
        problem = candidate.to_problem()
        for text in texts:
            programs.append(extract_program(text, language=candidate.programming_language))
            problems.append(problem)
    num_passed = Counter[str]()
    num_judged = Counter[str]()
    verdicts = judge.judge(programs, problems)
    for problem, verdict in zip(problems, verdicts, strict=True):
        num_passed[problem.id] += verdict.is_accepted
        num_judged[problem.id] += verdict.is_scorable
    return {name: (num_passed[name], num) for name, num in num_judged.items() if num}


def with_pass_rate(candidate: Candidate, model: str, measured_on: str) -> Candidate:
    """Return a candidate with a model's pass rate, read from its `pass_rates`.

    It is returned unchanged if they do not name the model. If the entry counts attempts, a 95 %
    interval (Wilson 1927) is added.

    Raises:
        DataError: the entry is malformed.
    """
    for entry in candidate.pass_rates:
        name, _, text = entry.rpartition("=")
        if name != model:
            continue
        # A published rate says nothing of its attempts.
        passed, _, attempts = text.partition("/")
        try:
            rate = float(passed) / int(attempts or 1)
            num_attempts = int(attempts or 0)
        except (ValueError, ZeroDivisionError):
            # Not a number fails every comparison, so it is refused below like a rate out of range.
            rate = math.nan
            num_attempts = 0
        if not 0 <= rate <= 1:
            raise DataError(
                f"pass rate {entry!r}; "
                "write model=rate with a rate of 0 to 1, or model=passed/attempts"
            )
        fields: dict[str, float] = {"pass_rate": round(rate, 4)}
        if num_attempts:
            # Here, since it takes a second to import.
            from scipy.stats import binomtest

            test = binomtest(round(rate * num_attempts), num_attempts)
            interval = test.proportion_ci(method="wilson")
            fields["pass_rate_low"] = round(interval.low, 4)
            fields["pass_rate_high"] = round(interval.high, 4)
        difficulty = candidate.difficulty.model_copy(update={**fields, "measured_on": measured_on})
        return candidate.change("filter", "with_pass_rate/1", measured_on, difficulty=difficulty)
    return candidate


def select(
    problems: Mapping[str, Difficulty], settings: SelectionSettings
) -> dict[str, tuple[str, str]]:
    """Return the ids of the problems that are rejected, each with reason and detail.

    The reason is `no_difficulty` or `too_easy`.
    """
    known: dict[str, float] = {}
    rejected: dict[str, tuple[str, str]] = {}
    for name, difficulty in problems.items():
        value = _value_of(difficulty, settings)
        if value is None:
            rejected[name] = ("no_difficulty", f"no {settings.by}")
        else:
            known[name] = value
    easy = {name: value for name, value in known.items() if value < settings.easy_below}
    # That many easy ones beside the others are their share of both; the last term is for rounding.
    ratio = settings.easy_share / (1 - settings.easy_share)
    num_hard = len(known) - len(easy)
    num_allowed = math.floor(ratio * num_hard + 1e-9)
    # A digest of the id decides among equals: by the ids themselves, one source would go first.
    hardest_first = sorted(easy, key=lambda name: (-easy[name], _digest(name)))
    for name in hardest_first[num_allowed:]:
        rejected[name] = ("too_easy", f"{settings.by} {easy[name]:.3g}")
    return rejected


def _value_of(difficulty: Difficulty, settings: SelectionSettings) -> float | None:
    """Return the value by which problems are selected, higher for harder ones; None if unknown."""
    if settings.by == "predicted":
        return difficulty.predicted
    return None if difficulty.pass_rate is None else 1 - difficulty.pass_rate


def _digest(name: str) -> str:
    """Return the rank of a problem among those of one difficulty; it depends only on the id."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
