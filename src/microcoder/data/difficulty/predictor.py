"""The offline predictor: a difficulty from 1 to 5 from the record itself, with no model behind an endpoint.

Two ridge regressions, one for problems with a Python reference and one for those without, over the measures of
`features` and the words of the statement. Their coefficients are in `predictor.json`, with the data they come from
and their quality on platform labels that they did not see; `benchmarks/difficulty.py` made it.

What a record says about its difficulty without being solved: bounds, wording, ideas, and the reference's measures.

McCabe's complexity and Halstead's measures are radon's. Every feature is a plain number; logarithms are of 1 + x.

Difficulty as a model sees it: five dimensions, each scored several times through a JSON schema, weighted.

The paper names two of its dimensions, Algorithmic Thinking and Implementation, and where it took them from (Bloom's
taxonomy, McCabe, Halstead). The other three, all weights, the scale and the prompt are our choice.
"""

from __future__ import annotations

import ast
import hashlib
import html
import importlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from pydantic import Field, model_validator

from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.formats.candidates import Candidate, Difficulty
from microcoder.data.formats.text import parse_python
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install
from microcoder.judge.core.types import Record

_POWER = re.compile(
    r"(?:(?<!\d)(\d+(?:\.\d+)?)\s*+(?:(?:\*|\\cdot|\\times|x|\u00d7)\s*+)?)?"
    r"\b10\s*+(?:\^|\*\*|<sup>)\s*+\{?\s*+(\d{1,2})"
)
_PLAIN = re.compile(r"(?:<|<=|≤|\\leq?|\\le|&lt;=?|up to|at most|exceed)\s*+\$?\s*+(\d[\d,_ ]{0,18})", re.IGNORECASE)
_LOST_POWER = re.compile(r"(?:10)(\d|1[0-8])")
"""LeetCode texts without their markup say 105 for ten to the fifth."""
_TAG = re.compile(r"<[^>]{1,200}>")
_WORD = re.compile(r"[a-z]{3,}")

_IDEAS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        # idea: pattern in tags, pattern in the reference
        "dynamic_programming": (r"dynamic programming|\bdp\b|memoi", r"\bdp\b|\bcache\b|lru_cache|\bmemo\b|\bf\[i\]"),
        "graph": (r"graph|shortest|tree|dfs|bfs|depth-first|breadth-first|union", r"\bdeque\b|\bdfs\b|\bbfs\b|\bindeg"),
        "search": (r"binary search|bisect|divide", r"bisect|\bmid\b"),
        "heap": (r"heap|priority", r"heappush|heapify|SortedList"),
        "range_query": (r"segment tree|fenwick|binary indexed|data structure", r"\bBIT\b|[Ff]enwick|[Ss]egment|lowbit"),
        "number_theory": (r"number theory|combinatori|\bmath", r"\bgcd\b|10\s*\*\*\s*9\s*\+\s*7|\bmod\b|\bcomb\b"),
        "bits": (r"bit manipulation|bitmask", r"<<|>>|\^="),
        "greedy": (r"greedy|constructive", r"sorted\(|\.sort\("),
        "text_matching": (r"string matching|suffix|hash function|trie", r"\bTrie\b|\bkmp\b|z_function"),
    }
)


def measure_text(candidate: Candidate) -> dict[str, float]:
    """Return the features of statement, constraints, signature and tests."""
    statement = candidate.statement or candidate.statement_found
    bounds = sorted(_bounds(statement))
    text = html.unescape(_TAG.sub(" ", statement)).lower()
    words = _WORD.findall(text)
    starter = candidate.starter_code or ""
    says = {
        "text_modulo": r"modulo|\bmod\b|10\s*+\^?\s*+9?\s*+\+\s*+7|998244353",
        "text_queries": r"\bquer(?:y|ies)\b",
        "text_optimum": r"\b(?:minimum|maximum|minimize|maximize|smallest|largest|shortest|longest|fewest)\b",
        "text_count_ways": r"number of (?:ways|distinct|different|pairs|sub|good|valid)",
        "text_subsets": r"\bsub(?:array|sequence|set|string|tree|matri\w+)s?\b|permutation|partition",
        "text_graph": r"\b(?:graph|tree|edges?|vertices|nodes?|path|grid|cit(?:y|ies)|roads?)\b",
        "text_operations": r"\boperations?\b",
    }
    longest = max((len(test.input) for test in candidate.tests), default=0)
    return {
        "bound_largest": bounds[-1] if bounds else 0.0,
        "bound_smallest": bounds[0] if bounds else 0.0,
        "bound_median": bounds[len(bounds) // 2] if bounds else 0.0,
        "bound_count": math.log1p(len(bounds)),
        "text_words": math.log1p(len(words)),
        "text_distinct_words": math.log1p(len(set(words))),
        "text_symbols": math.log1p(sum(character in "<>=≤≥+-*/^[]()$_{}" for character in text)),
        "text_examples": math.log1p(len(re.findall(r"example|sample input", text))),
        **{name: math.log1p(len(re.findall(pattern, text))) for name, pattern in says.items()},
        "signature_arguments": float(starter.count(":") - starter.count("class ") - 1) if "def " in starter else 0.0,
        "signature_nesting": float(starter.count("List[List")),
        "is_function": float(candidate.fn_name is not None),
        "tests_longest": math.log1p(longest),
    }


def measure_reference(candidate: Candidate) -> dict[str, float] | None:
    """Return the features of the shortest accepted Python program that can be measured; None if there is none.

    The candidate's tags count as ideas of the reference.

    Raises:
        ConfigError: radon is not installed.
    """
    programs = [s.code for s in candidate.solutions if s.known == "accepted" and s.language in ("python", "python3")]
    for code in sorted(programs, key=len):
        tree = parse_python(code)
        if tree is None:
            continue
        try:
            return _measure_program(code, tree, " ".join(candidate.tags).lower())
        except RecursionError:
            continue
    return None


def _measure_program(code: str, tree: ast.Module, tags: str) -> dict[str, float]:
    blocks = _radon("complexity").cc_visit_ast(tree)
    functions = [part for block in blocks for part in (getattr(block, "methods", None) or [block])]
    complexities = [part.complexity for part in functions] or [1]
    halstead = _radon("metrics").h_visit_ast(tree).total
    nodes = list(ast.walk(tree))
    loops = (ast.For, ast.While, ast.comprehension)
    found = {
        "reference_lines": math.log1p(len([line for line in code.splitlines() if line.strip()])),
        "reference_mccabe": math.log1p(sum(complexities)),
        "reference_mccabe_max": math.log1p(max(complexities)),
        "reference_halstead_volume": math.log1p(halstead.volume),
        "reference_halstead_difficulty": math.log1p(halstead.difficulty),
        "reference_halstead_effort": math.log1p(halstead.effort),
        "reference_depth": float(_depth(tree)),
        "reference_loops": math.log1p(sum(isinstance(node, loops) for node in nodes)),
        "reference_functions": math.log1p(sum(isinstance(node, ast.FunctionDef | ast.Lambda) for node in nodes)),
        "reference_names": math.log1p(len({node.id for node in nodes if isinstance(node, ast.Name)})),
    }
    for idea, (in_tags, in_code) in _IDEAS.items():
        found[f"reference_{idea}"] = float(bool(re.search(in_tags, tags) or re.search(in_code, code)))
    return found


def words_of(candidate: Candidate) -> frozenset[str]:
    """Return the distinct words of a statement, in lower case."""
    statement = candidate.statement or candidate.statement_found
    return frozenset(_WORD.findall(html.unescape(_TAG.sub(" ", statement)).lower()))


def _bounds(statement: str) -> list[float]:
    text = html.unescape(statement)
    found = [float(power) + math.log10(max(float(factor or 1), 1.0)) for factor, power in _POWER.findall(text)]
    for number in _PLAIN.findall(text):
        digits = re.sub(r"[,_ ]", "", number)
        lost = _LOST_POWER.fullmatch(digits)
        found.append(float(lost[1]) if lost else math.log10(max(int(digits), 1)))
    return [min(bound, 18.0) for bound in found]


def _depth(node: ast.AST, depth: int = 0) -> int:
    blocks = (ast.For, ast.While, ast.If, ast.FunctionDef, ast.With, ast.Try)
    inner = depth + isinstance(node, blocks)
    return max([inner, *(_depth(child, inner) for child in ast.iter_child_nodes(node))])


@cache
def _radon(module: str) -> ModuleType:
    try:
        return importlib.import_module(f"radon.{module}")
    except ImportError:
        raise ConfigError(f"measuring reference programs needs radon; {how_to_install('data')}") from None


STEP = "difficulty/1"
EASIEST, HARDEST = 1.0, 5.0
_FILE = Path(__file__).with_name("predictor.json")


class Weight(Record):
    """How one measure counts."""

    mean: float
    scale: float
    weight: float


class Ridge(Record):
    """One linear model."""

    intercept: float
    features: dict[str, Weight]
    words: dict[str, float]
    """Weight of each word that is in the statement; the words of a statement share one unit of length."""

    def predict(self, measures: Mapping[str, float], words: frozenset[str]) -> float:
        """Return a difficulty from 1 to 5."""
        known = sorted(words & self.words.keys())
        total = self.intercept + sum(
            weight.weight * (measures[name] - weight.mean) / weight.scale for name, weight in self.features.items()
        )
        if known:
            total += sum(self.words[word] for word in known) / math.sqrt(len(known))
        return min(max(total, EASIEST), HARDEST)


class Predictor(Record):
    """What `predictor.json` holds."""

    trained_on: str
    labels: str
    """What the numbers 1 to 5 stand for."""
    quality: dict[str, float]
    """Spearman's rank correlation with labels that were held out, by what was held out."""
    text: Ridge
    reference: Ridge


@cache
def load_predictor() -> Predictor:
    """Return the predictor of this package."""
    return Predictor.model_validate_json(_FILE.read_bytes())


@cache
def predictor_version() -> str:
    """Return the name of the predictor and a digest of its coefficients."""
    return f"offline/1+{hashlib.sha256(_FILE.read_bytes()).hexdigest()[:12]}"


def predict_difficulty(candidate: Candidate) -> Candidate:
    """Return a candidate with its predicted difficulty."""
    predictor, reference = load_predictor(), measure_reference(candidate)
    model = predictor.text if reference is None else predictor.reference
    predicted = model.predict({**measure_text(candidate), **(reference or {})}, words_of(candidate))
    name = f"{predictor_version()} {'text' if reference is None else 'reference'}"
    return with_difficulty(candidate, name, predicted=round(predicted, 4), predictor=name)


def with_difficulty(candidate: Candidate, detail: str, **fields: object) -> Candidate:
    """Return a candidate with these fields of its difficulty changed."""
    difficulty: Difficulty = candidate.difficulty.model_copy(update=fields)
    return candidate.change("filter", STEP, detail, difficulty=difficulty)


class Dimension(Config):
    """One side of difficulty."""

    name: str = Field(pattern=r"^[a-z][a-z_]*$")
    weight: float = Field(gt=0)
    question: str
    """What a score of this dimension answers."""


_DIMENSIONS = (
    Dimension(
        name="algorithmic_thinking",
        weight=0.35,
        question="How far is the idea of the solution from what the statement says? "
        "1: do what it says; 3: a standard algorithm; 5: several ideas that must be found and combined.",
    ),
    Dimension(
        name="implementation",
        weight=0.25,
        question="How long and how branched is a correct program? "
        "1: a few lines; 3: some functions or a data structure; 5: long, with many interlocking parts.",
    ),
    Dimension(
        name="comprehension",
        weight=0.1,
        question="How hard is it to understand what is asked? 1: one reading; 5: several readings and a sketch.",
    ),
    Dimension(
        name="efficiency",
        weight=0.2,
        question="How far do the limits push beyond the obvious program? "
        "1: any program will do; 3: one order of growth must be saved; 5: several, or constant factors too.",
    ),
    Dimension(
        name="edge_cases",
        weight=0.1,
        question="How easily is a program with the right idea still wrong? 1: hardly; 5: many cases break it.",
    ),
)

_MOST_CHARACTERS = 20_000
_ATTEMPTS = 3

_PROMPT = """You grade how difficult programming problems are for a student who has passed a first course.
Score the problem below on each dimension, with an integer from {lowest} (easiest) to {highest} (hardest).

{dimensions}

Answer with one JSON object and nothing else.

Problem:
{statement}
"""


class ScoringSettings(Config):
    """How a model is asked."""

    dimensions: tuple[Dimension, ...] = Field(default=_DIMENSIONS, min_length=1)
    times: int = Field(default=3, ge=1)
    """How often each problem is scored; the paper's number."""
    lowest: int = 1
    highest: int = 5
    prompt: str = _PROMPT
    """With the places `lowest`, `highest`, `dimensions` and `statement`."""
    temperature: float = Field(default=0.7, ge=0)
    """Above 0, so that scoring a problem three times says more than once (our choice)."""
    seed: int = 0
    """The seed of the first time; each time has its own."""

    @model_validator(mode="after")
    def _is_consistent(self) -> ScoringSettings:
        names = [dimension.name for dimension in self.dimensions]
        if len(set(names)) != len(names):
            raise ValueError(f"dimensions {', '.join(names)}; give each its own name")
        if self.lowest >= self.highest:
            raise ValueError(f"lowest = {self.lowest}, highest = {self.highest}; lowest must be less")
        try:
            _fill(self, "")
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(
                f"prompt cannot be filled in ({error}); its places are lowest, highest, dimensions, "
                "statement; write other braces twice"
            ) from None
        return self


def score_difficulty(candidate: Candidate, model: Endpoint, settings: ScoringSettings | None = None) -> Candidate:
    """Return a candidate with the difficulty that a model gives it, on a scale of 1 to 5.

    Where the model does not follow the schema, however often it is asked, the candidate stays without one.
    """
    settings = settings or ScoringSettings()
    chat, schema = [{"role": "user", "content": write_prompt(candidate, settings)}], answer_schema(settings)
    answers = []
    for time in range(settings.times):
        answer = _ask(model, chat, schema, settings, time=time)
        if answer is None:
            return candidate
        answers.append(answer)
    name = f"{model.settings.model} {settings_digest(settings)}"
    means = {d.name: sum(answer[d.name] for answer in answers) / len(answers) for d in settings.dimensions}
    detail = f"{name}: " + ", ".join(f"{key} {value:.2f}" for key, value in means.items())
    return with_difficulty(candidate, detail, predicted=round(weigh(answers, settings), 4), predictor=name)


def write_prompt(candidate: Candidate, settings: ScoringSettings) -> str:
    """Return what the model reads."""
    statement = candidate.statement or candidate.statement_found
    return _fill(settings, statement[:_MOST_CHARACTERS])


def answer_schema(settings: ScoringSettings) -> dict[str, Any]:
    """Return the JSON schema of an answer: one integer per dimension."""
    score = {"type": "integer", "minimum": settings.lowest, "maximum": settings.highest}
    names = [dimension.name for dimension in settings.dimensions]
    return {
        "type": "object",
        "properties": dict.fromkeys(names, score),
        "required": names,
        "additionalProperties": False,
    }


def _ask(
    model: Endpoint,
    chat: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    settings: ScoringSettings,
    *,
    time: int,
) -> dict[str, int] | None:
    """Return the scores of one answer; asked again under other seeds where it does not follow the schema."""
    for attempt in range(_ATTEMPTS):
        seed = settings.seed + time + attempt * settings.times
        try:
            return read_scores(model.ask(chat, schema, seed=seed, temperature=settings.temperature), settings)
        except BadReply:
            continue
    return None


def read_scores(scores: Mapping[str, Any], settings: ScoringSettings) -> dict[str, int]:
    """Return the scores of an answer by dimension."""
    names = {dimension.name for dimension in settings.dimensions}
    if set(scores) != names:
        raise BadReply(f"keys {', '.join(sorted(scores))}; wanted are {', '.join(sorted(names))}")
    for name, score in scores.items():
        if type(score) is not int or not settings.lowest <= score <= settings.highest:
            raise BadReply(f"{name} = {score!r}; wanted is {settings.lowest} to {settings.highest}")
    return dict(scores)


def weigh(answers: Sequence[dict[str, int]], settings: ScoringSettings) -> float:
    """Return the weighted mean of all answers, from 1 (easiest) to 5."""
    weights = {dimension.name: dimension.weight for dimension in settings.dimensions}
    total = sum(weights[name] * score for answer in answers for name, score in answer.items())
    mean = total / (len(answers) * sum(weights.values()))
    return EASIEST + (mean - settings.lowest) / (settings.highest - settings.lowest) * (HARDEST - EASIEST)


def settings_digest(settings: ScoringSettings) -> str:
    """Return a digest of all that shapes a score besides the model."""
    return hashlib.sha256(settings.model_dump_json().encode("utf-8")).hexdigest()[:12]


def _fill(settings: ScoringSettings, statement: str) -> str:
    dimensions = "\n".join(f"- {dimension.name}: {dimension.question}" for dimension in settings.dimensions)
    return settings.prompt.format(
        lowest=settings.lowest, highest=settings.highest, dimensions=dimensions, statement=statement
    )
