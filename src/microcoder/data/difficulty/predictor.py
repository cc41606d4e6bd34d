"""The offline predictor: a difficulty from 1 to 5 from the record itself, with no model behind an endpoint.

Two ridge regressions, one for problems with a Python reference and one for those without, over the measures of
`features` and the words of the statement. Their coefficients are in `predictor.json`, with the data they come from
and their quality on platform labels that they did not see; `benchmarks/difficulty.py` made it.

What a record says about its difficulty without being solved: bounds, wording, ideas, and the reference's measures.

McCabe's complexity and Halstead's measures are radon's. Every feature is a plain number; logarithms are of 1 + x.
"""

from __future__ import annotations

import ast
import hashlib
import html
import importlib
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

from microcoder.data.formats.candidates import Candidate, Difficulty
from microcoder.data.formats.text import parse_python
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
