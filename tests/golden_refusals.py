"""What users are answered to mistakes: the texts of the refusals in the tests' tables."""

from __future__ import annotations

import inspect
import io
import json
import re
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import pytest

from golden_values import ROOT, Values, shorten, steady
from microcoder.errors import MicroCoderError
from microcoder.evaluator import Judge

REFUSING = (
    *("test_config.py", "test_prompts.py", "test_rewards.py", "test_runs.py", "test_records.py"),
    *(
        "test_verdict_keys.py",
        "test_extensions.py",
        "test_extension_examples.py",
        "cli/test_train.py",
        "cli/test_start.py",
        "cli/test_init.py",
    ),
    *("cli/test_judge.py", "cli/test_packages.py", "cli/test_report.py", "training/test_recipe_keys.py"),
    *("training/test_problem_sources.py", "training/test_temperature.py", "training/test_engine_options.py"),
    *(
        "training/test_judging.py",
        "dataset/benchmarks/test_livecodebench.py",
        "dataset/collect/test_collect_columns.py",
    ),
    *("dataset/collect/test_collect_row_files.py", "dataset/audit/test_audit.py", "formats/test_rows.py"),
    *("evaluation/test_generation_files.py", "evaluator/test_submission.py", "evaluator/test_checkers.py"),
    *("evaluator/test_languages.py", "insights/test_study_files.py", "insights/test_page.py", "micro/test_problems.py"),
)
"""Tests with tables of mistakes."""


class Recorder:
    """A plug-in of pytest that keeps what users would read in tests of mistakes, and leaves out other tests."""

    def __init__(self, place: Path) -> None:
        self.place, self.found, self.now = place, dict[str, str](), ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep quick tests that look at a refusal."""
        looks = re.compile(r"pytest\.raises|\.err\b|expect=2|readouterr")
        items[:] = [
            item
            for item in items
            if looks.search(inspect.getsource(item.function))
            and not any(item.get_closest_marker(mark) for mark in ("slow", "long"))
            and not hasattr(item.function, "hypothesis")
        ]

    def pytest_runtest_setup(self, item: Any) -> None:
        """Remember whose texts follow."""
        self.now = item.name

    def keep(self, text: str) -> None:
        """Keep a text under the name of its test."""
        text = re.sub(rf"{re.escape(str(self.place))}/[\w-]+", "PLACE", text)
        number = sum(name.startswith(f"{self.now} #") for name in self.found) + 1
        self.found[f"{self.now} #{number}"] = shorten(steady(text, self.place))

    def listen(self, patch: pytest.MonkeyPatch) -> None:
        """Hear errors that tests expect, and what commands write to stderr."""
        leave, read = pytest.RaisesExc.__exit__, pytest.CaptureFixture.readouterr

        def hear_error(raises: Any, kind: Any, error: Any, trace: Any) -> bool:
            is_expected = leave(raises, kind, error, trace)
            if is_expected and isinstance(error, MicroCoderError):
                self.keep(str(error))
            return is_expected

        def hear_command(captured: Any) -> Any:
            shown = read(captured)
            for line in shown.err.splitlines() if isinstance(shown.err, str) else ():
                if line.startswith("microcoder: error:"):
                    self.keep(line)
            return shown

        patch.setattr(pytest.RaisesExc, "__exit__", hear_error)
        patch.setattr(pytest.CaptureFixture, "readouterr", hear_command)


def refuse(folder: Path) -> Values:
    """What users are answered to each mistake in the tests' tables, and the service's answers to hostile requests."""
    recorder = Recorder(folder / "tests")
    words = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out, chdir(ROOT):
        recorder.listen(patch)
        status = pytest.main([*words, *(f"tests/{name}" for name in REFUSING)], plugins=[recorder])
    if status:
        print(out.getvalue()[-3000:], file=sys.stderr)
    return {**recorder.found, "the tests of it pass": "yes" if status == 0 else "no", **refuse_requests()}


def refuse_requests() -> Values:
    """Return the service's answers to requests that it refuses."""
    from serving.conftest import serving  # pyrefly: ignore[missing-import]
    from serving.test_serving_requests import HOSTILE  # pyrefly: ignore[missing-import]

    found = {}
    with (
        Judge(workers=1, time_scale=1.0) as judge,
        serving(judge, max_tests=100, max_body_mib=1, max_batch=64, grace_seconds=0) as running,
    ):
        for name, (path, message, _status, _words) in HOSTILE.items():
            content = message if isinstance(message, bytes) else json.dumps(message).replace('"@"', "1e400").encode()
            header = {"Content-Type": "application/json"}
            answer = httpx.post(running.url + path, content=content, headers=header, timeout=60)
            found[f"request: {name}"] = f"{answer.status_code} {shorten(steady(answer.text))}"
    return found
