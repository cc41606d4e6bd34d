"""The page on a real model tells what its records hold."""

import re

import real_training
from real_model import describe

from microcoder.judge.core.files import read_rows
from tests.doc_pages import DOCS, ROOT


def test_every_count_of_the_report_is_on_the_page() -> None:
    report = describe(list(read_rows(ROOT / "records" / "real_model.jsonl")))
    counts = re.findall(r"\d+ of \d+", report)
    page = (DOCS / "insights" / "real-model.md").read_text(encoding="utf-8")
    missing = set(counts) - set(re.findall(r"\d+ of \d+", page))
    assert len(counts) == 8
    assert missing == set()


def test_every_count_of_the_training_is_on_the_page() -> None:
    report = real_training.describe(read_rows(ROOT / "records" / "real_training.jsonl"))
    counts = re.findall(r"\d+ of \d+", report)
    page = (DOCS / "insights" / "real-model.md").read_text(encoding="utf-8")
    missing = set(counts) - set(re.findall(r"\d+ of \d+", page))
    assert len(counts) >= 6
    assert missing == set()
