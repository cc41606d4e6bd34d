"""An audit finds what was put into a set, says of how many rows, and goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from microcoder.cli import main
from microcoder.data.audit import AuditSettings, audit
from microcoder.data.build.config import SourceSettings
from microcoder.judge.core.errors import DataError

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
TEXT = (
    "Read two integers from one line and print their sum, which is never larger than a million.\n\n"
    "## Input\n\nOne line with a and b, $1 \\le a, b \\le 1000$.\n\n"
)


def row(name: str, text: str, tests: list[tuple[str, str]], *, right: list[str], wrong: list[str]) -> dict[str, Any]:
    none: dict[str, Any] = {"input": [], "output": []}
    return {
        "name": name,
        "description": text,
        "public_tests": none,
        "private_tests": {"input": [given for given, _ in tests], "output": [output for _, output in tests]},
        "generated_tests": none,
        "source": 1,
        "difficulty": 1,
        "solutions": {"language": [3] * len(right), "solution": right},
        "incorrect_solutions": {"language": [3] * len(wrong), "solution": wrong},
        "cf_tags": [],
    }


TESTS = [("1 2\n", "3\n"), ("3 4\n", "7\n"), ("5 6\n", "11\n"), ("9 9\n", "18\n"), ("20 1\n", "21\n")]
PRODUCT = TEXT.replace("sum", "product").replace("two integers", "a pair of small numbers")
ROWS = [
    row("Fine", TEXT, TESTS, right=[SUM], wrong=["print(3)"]),
    row("Same again", TEXT, TESTS, right=[SUM], wrong=[]),
    row("Wrong tests", PRODUCT, TESTS, right=["a, b = map(int, input().split())\nprint(a * b)"], wrong=[]),
    row(
        "Weak tests",
        "You are given an apple count and a pear count for one basket. How many fruits does it hold, at most n <= 105?",
        TESTS[:1],
        right=[SUM],
        wrong=["print(3)"],
    ),
    {"name": "Nothing"},
]


@pytest.fixture
def source(tmp_path: Path) -> SourceSettings:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in ROWS))
    return SourceSettings(path=str(tmp_path / "rows.jsonl"), format="codecontests")


def test_an_audit_finds_what_is_wrong_and_a_stopped_one_comes_to_the_same(
    source: SourceSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("microcoder.data.audit.session._BATCH_ROWS", 2)
    whole = AuditSettings(source=source, output=tmp_path / "whole", workers=1)
    found = audit(whole)
    kinds = {found.rows[n].title or "Nothing": {one.kind for one in found.rows[n].findings} for n in range(5)}
    assert kinds["Nothing"] == {"unreadable"}
    assert "near_duplicate" in kinds["Fine"] | kinds["Same again"]
    assert "reference_fails" in kinds["Wrong tests"]
    assert {"wrong_bounds", "wrong_passes", "trivial_passes", "few_tests"} <= kinds["Weak tests"]
    assert not kinds["Fine"] & {"reference_fails", "wrong_passes", "trivial_passes", "wrong_bounds", "few_tests"}
    shares = {one["kind"]: (one["num"], one["of"]) for one in read(tmp_path / "whole" / "summary.json")["findings"]}
    assert shares["wrong_passes"] == (1, 2)
    assert shares["unreadable"] == (1, 5)
    assert "1 of 2 known-wrong programs pass" in found.report.read_text()
    listed = (tmp_path / "whole" / "lists" / "wrong_passes.jsonl").read_text()
    assert json.loads(listed)["number"] == 3

    stopped = AuditSettings(source=source, output=tmp_path / "stopped", workers=1)
    with pytest.raises(KeyboardInterrupt):
        audit(stopped, on_progress=stop_after(2))
    with (stopped.output / "rows.jsonl").open("a") as file:
        file.write('{"number": 3, "cut off')
    looked_at: list[int] = []
    assert audit(stopped, on_progress=lambda done, total: looked_at.append(done)).rows == found.rows
    assert looked_at[0] == 2
    assert (stopped.output / "report.md").read_text() == found.report.read_text()
    with pytest.raises(DataError, match="holds another audit"):
        audit(stopped.model_copy(update={"seed": 1}))


def test_copies_of_a_benchmark_are_found_by_what_they_do(source: SourceSettings, tmp_path: Path) -> None:
    tests = ["assert add(2, 3) == 5", "assert add(40, 2) == 42", "assert add(100, 11) == 111"]
    task = {"task_id": 1, "text": "Write a function.", "code": "def add(x, y):\n    return x + y", "test_list": tests}
    (tmp_path / "mbpp.jsonl").write_text(json.dumps(task))
    settings = AuditSettings(
        source=source,
        benchmarks=(SourceSettings(path=str(tmp_path / "mbpp.jsonl"), format="mbpp"),),
        output=tmp_path / "audit",
        workers=1,
    )
    details = {one.title: f.detail for one in audit(settings).rows for f in one.findings if f.kind == "benchmark_copy"}
    # The tests of the fourth are those of a sum as well, but its program is another.
    assert set(details) == {"Fine", "Same again", "Weak tests"}
    assert all("mbpp/mbpp.jsonl:1 by behaviour" in detail for detail in details.values())


def test_a_source_of_a_builds_config_is_audited_with_its_columns_and_benchmarks(
    source: SourceSettings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = [{**one, "text": one.pop("description", "Nothing.")} for one in map(dict, ROWS)]
    Path(source.path).write_text("".join(f"{json.dumps(one)}\n" for one in renamed))
    (tmp_path / "copy.jsonl").write_text(
        json.dumps({"task_id": 1, "text": TEXT, "code": "def f():\n  pass", "test_list": []})
    )
    (tmp_path / "corpus.toml").write_text(
        f"""
name = "a"
output = "{tmp_path}/corpus"
sources = [{{path = "{source.path}", format = "codecontests", name = "mine", columns = {{description = "text"}}}}]
benchmarks = [{{path = "{tmp_path}/copy.jsonl", format = "mbpp"}}]
"""
    )
    recipe = str(tmp_path / "corpus.toml")
    main(["data", "audit", "mine", "-c", recipe, "--static", "-o", str(tmp_path / "audit"), "--json"])
    shares = {one["kind"]: one["num"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert (shares["no_tests"], shares["benchmark_copy"]) == (1, 2)
    with pytest.raises(SystemExit):
        main(["data", "audit", "yours", "-c", recipe])
    assert "corpus.toml has no source called 'yours'; use one of mine" in capsys.readouterr().err


def test_an_audit_without_a_format_says_which_it_looks_like(
    source: SourceSettings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "packages" / "sum").mkdir(parents=True)
    (tmp_path / "packages" / "sum" / "problem.yaml").touch()
    for path, said in [
        (source.path, f"looks like codecontests. Type: microcoder data audit {source.path} --format codecontests"),
        (str(tmp_path / "packages"), "looks like kattis"),
        (str(tmp_path / "gone"), "use one of apps, apps_folder, "),
    ]:
        with pytest.raises(SystemExit):
            main(["data", "audit", path])
        assert said in capsys.readouterr().err


def test_a_smaller_draw_is_part_of_a_larger_one(source: SourceSettings, tmp_path: Path) -> None:
    # In one folder: the rows that are known already are not looked at again.
    drawn = [{row.number for row in audit(_static(source, tmp_path / "one", limit)).rows} for limit in (1, 3, None)]
    assert len((tmp_path / "one" / "rows.jsonl").read_text().splitlines()) == 5
    assert [len(numbers) for numbers in drawn] == [1, 3, 5]
    assert drawn[0] < drawn[1] < drawn[2]


def _static(source: SourceSettings, output: Path, limit: int | None) -> AuditSettings:
    return AuditSettings(source=source, output=output, limit=limit, runs_programs=False)


def stop_after(num: int) -> Any:
    def stop(done: int, total: int) -> None:
        if done >= num:
            raise KeyboardInterrupt

    return stop


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_a_source_without_rows_is_an_error_not_a_report(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    source = SourceSettings(path=str(tmp_path / "empty.jsonl"), format="codecontests")
    with pytest.raises(DataError, match=r"empty.jsonl holds no rows; check that the file is whole"):
        audit(AuditSettings(source=source, output=tmp_path / "audit", runs_programs=False))
    assert not (tmp_path / "audit" / "report.md").exists()
