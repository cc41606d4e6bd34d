"""The offline predictor of difficulty: trained on platform labels, measured on labels that it did not see.

    for name in leetcodedataset doocs lcb_eval; do tar xf $name.tar.xz; done
    python benchmarks/difficulty.py . [--write]

Trained on the problems of LeetCodeDataset v0.2.0, whose labels count as easy 1, medium 3, hard 5. Held out are later
problems of the same platform (LeetCodeDataset v0.3.1 test; doocs, as far as they are in neither, with their contest
ratings too) and AtCoder's of LiveCodeBench, which is never trained on. Quality is Spearman's rank correlation.
`--write` writes `src/microcoder/data/difficulty/predictor.json`; without it the package's own is measured.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge as LinearModel
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from microcoder.data import Candidate, Solution
from microcoder.data.difficulty import predictor

LEVELS = {"easy": 1.0, "medium": 3.0, "hard": 5.0}
ALPHA, WORD_WEIGHT, MIN_PROBLEMS_PER_WORD = 100.0, 3.0, 15
FILE = Path(predictor.__file__).with_name("predictor.json")


@dataclass(frozen=True)
class Labelled:
    """A problem and what its platform says."""

    candidate: Candidate
    level: float
    rating: float | None = None


def read_leetcode(path: Path) -> list[Labelled]:
    """Read a file of LeetCodeDataset."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            meta = row.get("meta", {})
            statement = row.get("problem_description") or row["query"].split("Please complete the following")[0]
            starter = row.get("starter_code") or meta["lang_code"]
            level = LEVELS[(row.get("difficulty") or meta["difficulty"]).lower()]
            made = make(row["task_id"], statement, row["completion"], starter, row.get("tags", ()))
            found.append(Labelled(made, level))
    return found


def read_doocs(folder: Path) -> list[Labelled]:
    """Read the English texts of doocs/leetcode that have a Python solution."""
    found = []
    for path in sorted(folder.glob("solution/*/*/README_EN.md")):
        text, program = path.read_text(encoding="utf-8"), path.with_name("Solution.py")
        level = re.search(r"^difficulty: (\w+)", text, re.MULTILINE)
        slug = re.search(r"leetcode\.com/problems/([\w-]+)", text)
        if level is None or slug is None or not program.exists():
            continue
        rating = re.search(r"^rating: (\d+)", text, re.MULTILINE)
        tags = re.findall(r"^    - (.+)$", text.partition("<!-- problem:start -->")[0], re.MULTILINE)
        statement = text.partition("<!-- description:start -->")[2].partition("<!-- description:end -->")[0]
        code = program.read_text(encoding="utf-8")
        starter = "\n".join(code.splitlines()[:2]) if code.startswith("class Solution") else ""
        made = make(slug[1], statement, code, starter, tags)
        found.append(Labelled(made, LEVELS[level[1].lower()], float(rating[1]) if rating else None))
    return found


def read_livecodebench(folder: Path, platform: str) -> list[Labelled]:
    """Read the texts of LiveCodeBench; it has no references. The id is the title as LeetCode writes it in a URL."""
    with gzip.open(folder / "O1-Mini-2024-09-12.json.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in json.load(file) if row["platform"] == platform]
    found = []
    for row in rows:
        made = make(
            slug_of(row["question_title"]) or row["question_id"], row["question_content"], "", row["starter_code"]
        )
        found.append(Labelled(made, LEVELS[row["difficulty"]]))
    return found


def slug_of(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def make(name: str, statement: str, code: str, starter: str, tags: Sequence[str] = ()) -> Candidate:
    """Return a candidate with what predicts."""
    return Candidate(
        id=name,
        dataset="labelled",
        statement=statement,
        solutions=(Solution(code=code),) if code else (),
        starter_code=starter or None,
        fn_name="solve" if starter else None,
        tags=tuple(tags),
    )


def measure(problem: Labelled, has_reference: bool) -> dict[str, float]:
    found = predictor.measure_text(problem.candidate)
    return {**found, **(predictor.measure_reference(problem.candidate) or {})} if has_reference else found


def fit(problems: Sequence[Labelled], has_reference: bool) -> predictor.Ridge:
    """Fit one ridge regression."""
    usable = [p for p in problems if not has_reference or predictor.measure_reference(p.candidate) is not None]
    measures = [measure(problem, has_reference) for problem in usable]
    words = [predictor.words_of(problem.candidate) for problem in usable]
    counts = Counter(word for known in words for word in known)
    vocabulary = sorted(word for word, count in counts.items() if count >= MIN_PROBLEMS_PER_WORD)
    column = {word: number for number, word in enumerate(vocabulary)}
    names = list(measures[0])
    scaler: Any = StandardScaler().fit(np.array([[row[name] for name in names] for row in measures]))
    rows = np.zeros((len(usable), len(vocabulary)))
    for number, known in enumerate(words):
        here = [column[word] for word in known if word in column]
        rows[number, here] = WORD_WEIGHT / max(len(here), 1) ** 0.5
    dense = scaler.transform(np.array([[row[name] for name in names] for row in measures]))
    model = LinearModel(alpha=ALPHA).fit(np.hstack([dense, rows]), [problem.level for problem in usable])
    weights: Any = {
        name: {"mean": round(float(mean), 6), "scale": round(float(scale), 6), "weight": round(float(weight), 6)}
        for name, mean, scale, weight in zip(names, scaler.mean_, scaler.scale_, model.coef_, strict=False)
    }
    of_words = {word: round(float(WORD_WEIGHT * model.coef_[len(names) + n]), 5) for word, n in column.items()}
    return predictor.Ridge(intercept=round(float(model.intercept_), 6), features=weights, words=of_words)


def predict(model: predictor.Ridge, problems: Sequence[Labelled], has_reference: bool) -> list[float]:
    return [model.predict(measure(p, has_reference), predictor.words_of(p.candidate)) for p in problems]


def rank_correlation(predicted: Sequence[float], labels: Sequence[float]) -> float:
    return round(float(spearmanr(predicted, labels).statistic), 3)


def cross_validate(problems: Sequence[Labelled], has_reference: bool) -> float:
    """Return the rank correlation over five folds."""
    predicted = np.zeros(len(problems))
    for train, test in KFold(5, shuffle=True, random_state=0).split(np.arange(len(problems))):
        model = fit([problems[number] for number in train], has_reference)
        predicted[test] = predict(model, [problems[number] for number in test], has_reference)
    return rank_correlation(list(predicted), [problem.level for problem in problems])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    train = read_leetcode(folder / "leetcodedataset/LeetCodeDataset-v0.2.0-train.jsonl.gz")
    later = read_leetcode(folder / "leetcodedataset/LeetCodeDataset-v0.3.1-test.jsonl.gz")
    seen = {problem.candidate.id for problem in train}
    known = seen | {problem.candidate.id for problem in later}
    held_out = {
        "leetcode_later": later,
        "doocs": [problem for problem in read_doocs(folder / "doocs") if problem.candidate.id not in known],
        "livecodebench_leetcode": [
            p for p in read_livecodebench(folder / "lcb_eval", "leetcode") if p.candidate.id not in seen
        ],
        "livecodebench_atcoder": read_livecodebench(folder / "lcb_eval", "atcoder"),
    }
    if arguments.write:
        models = {has_reference: fit(train, has_reference) for has_reference in (False, True)}
    else:
        models = {False: predictor.load_predictor().text, True: predictor.load_predictor().reference}
    quality = {}
    for has_reference, model in models.items():
        kind = "reference" if has_reference else "text"
        if arguments.write:
            quality[f"{kind}/cross_validation"] = cross_validate(train, has_reference)
        for name, problems in held_out.items():
            if has_reference and not all(problem.candidate.solutions for problem in problems):
                continue
            predicted = predict(model, problems, has_reference)
            quality[f"{kind}/{name}"] = rank_correlation(predicted, [problem.level for problem in problems])
            rated = [(p, problem.rating) for p, problem in zip(predicted, problems, strict=True) if problem.rating]
            if rated:
                quality[f"{kind}/{name}_rating"] = rank_correlation(*map(list, zip(*rated, strict=True)))
    sizes = {"train": len(train), **{name: len(problems) for name, problems in held_out.items()}}
    print(json.dumps({"problems": sizes, "rank_correlation": quality}, indent=1))
    if arguments.write:
        made = predictor.Predictor(
            trained_on=f"newfacade/LeetCodeDataset v0.2.0 train, {len(train)} problems",
            labels="LeetCode's easy = 1, medium = 3, hard = 5",
            quality=quality,
            text=models[False],
            reference=models[True],
        )
        FILE.write_text(json.dumps(made.model_dump(), indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
