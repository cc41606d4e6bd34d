"""What users are answered to mistakes: the texts of the refusals in the tests' tables."""

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
from microcoder.judge import Judge
from microcoder.judge.core.errors import MicroCoderError

REFUSING = (
    *("judge/test_config.py", "judge/test_prompts.py", "judge/test_rewards.py", "train/test_runs.py"),
    *("judge/test_records.py", "test_verdict_keys.py", "judge/test_extensions.py", "test_extension_examples.py"),
    *("cli/test_train.py", "cli/test_start.py", "cli/test_init.py", "cli/test_judge.py", "cli/test_packages.py"),
    *("train/test_recipe_keys.py", "train/test_problem_sources.py", "train/test_temperature.py"),
    *("train/test_judging.py", "data/benchmarks/test_livecodebench.py", "data/collect/test_collect_row_files.py"),
    *("data/test_audit.py", "data/formats/test_rows.py", "eval/test_generation_files.py", "judge/test_submission.py"),
    *("judge/test_checkers.py", "judge/test_languages.py", "lab/test_studies.py", "lab/test_report.py"),
    *("data/micro/test_chains.py",),
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
    from judge.serve.conftest import serving  # pyrefly: ignore[missing-import]
    from judge.serve.test_serving_requests import HOSTILE  # pyrefly: ignore[missing-import]

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
