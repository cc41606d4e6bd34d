"""A LiveCodeBench evaluation in LiveCodeBench's own form, for its tools (compute_scores.py) and its leaderboard.

A list with an item a problem: its fields as published, `output_list`, `code_list`, `graded_list` and `pass@1`. Samples
that the sandbox failed on are in no list; a problem without any other is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from microcoder.dataset.benchmarks import Question
from microcoder.evaluation.folder import EvaluationFolder
from microcoder.files import write_text
from microcoder.types import Outcome


def write_eval_all(folder: EvaluationFolder, questions: Sequence[Question]) -> None:
    """Write eval_all.json from the folder's samples and verdicts."""
    samples, verdicts = folder.read_samples(), folder.read_verdicts()
    items = []
    for question in questions:
        keys = sorted(
            key
            for key, row in verdicts.items()
            if key[0] == question.id and row["verdict"] != Outcome.SANDBOX_FAULT and key in samples
        )
        if keys:
            graded = [verdicts[key]["verdict"] == Outcome.ACCEPTED for key in keys]
            chosen = [samples[key] for key in keys]
            items.append(
                {
                    **_published(question),
                    "output_list": [sample.completion or sample.program or "" for sample in chosen],
                    "code_list": [sample.program or "" for sample in chosen],
                    "graded_list": graded,
                    "pass@1": fmean(graded),
                    "metadata": [json.dumps({"verdict": verdicts[key]["verdict"]}) for key in keys],
                }
            )
    write_text(folder.eval_all, json.dumps(items, indent=2, ensure_ascii=False) + "\n")


def _published(question: Question) -> dict[str, Any]:
    return {
        "question_title": question.title,
        "question_content": question.statement,
        "platform": question.platform,
        "question_id": question.id,
        "contest_date": question.date.isoformat() if question.date else None,
        "starter_code": question.starter_code,
        "difficulty": question.difficulty,
    }
