"""Packages of other systems than Kattis, whole and hostile; Kattis packages with statements in HTML."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.clean import process
from microcoder.data.clean.sections import split
from microcoder.data.filter import filter_row
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.format import Format
from microcoder.data.formats.row import Malformed
from microcoder.data.formats.rows import FORMATS, load_format
from microcoder.data.sources import list_shards, open_source
from microcoder.judge import judge
from microcoder.judge.core.types import Program

EXAMPLES = Path(__file__).parents[3] / "examples/extensions"


def find(name: str) -> Format:
    return FORMATS.get(name) or load_format(f"{EXAMPLES}/{name}.py:{name}")


def golden_row(golden: Path, name: str, number: int = 0) -> dict[str, Any]:
    return json.loads((golden / f"{name}.jsonl").read_text().splitlines()[number])


def changed(row: dict[str, Any], **files: Any) -> dict[str, Any]:
    kept = {name: text for name, text in row["files"].items() if files.get(name, "") is not None}
    return {**row, "files": {**kept, **{name: text for name, text in files.items() if text is not None}}}


@pytest.mark.parametrize("name", ["polygon", "dmoj", "cms"])
def test_a_package_becomes_a_problem_that_its_own_solution_solves(golden: Path, name: str) -> None:
    found = process(find(name).read_row(golden_row(golden, name), "1"))
    assert isinstance(found, Candidate), found
    assert isinstance(filter_row(found), Candidate)
    assert [(one.input, one.output) for one in split(found.statement).examples] == [("1 2", "3")]
    problem = found.to_problem()
    assert problem.reference is not None
    right, wrong = judge([Program(problem.reference), Program("print(7)")], [problem, problem])
    assert (right.is_accepted, wrong.is_accepted) == (True, False)


def test_an_html_package_is_kept_with_its_tolerance_and_limit(golden: Path) -> None:
    row = golden_row(golden, "kattis", -1)
    found = process(FORMATS["kattis"].read_row(row, "1"))
    assert isinstance(found, Candidate)
    assert isinstance(filter_row(found), Candidate)
    assert found.statement.startswith("# Elements: Part 1\n\nPrint **n** squared.")
    assert (found.checker.type, found.checker.absolute, found.time_limit_seconds) == ("float", 1e-6, 30)
    whole = row["files"]["problem_statement/problem.html"].replace(" Any answer with an error of at most", "")
    of_integers = changed(row, **{"problem_statement/problem.html": whole.replace("10<sup>-6</sup> is right.", "")})
    assert FORMATS["kattis"].read_row(of_integers, "1").checker.type == "tokens"


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        ("polygon", {"problem.xml": "<problem><names>"}, "bad_encoding"),
        ("polygon", {"problem.xml": '<!DOCTYPE a [<!ENTITY b "c">]><problem>&b;</problem>'}, "bad_encoding"),
        ("polygon", {"statements/english/problem-properties.json": None}, "no_statement"),
        ("polygon", {"statements/english/problem-properties.json": "[1]"}, "wrong_type"),
        ("dmoj", {"init.yml": "test_cases: {in: a}"}, "bad_tests"),
        ("dmoj", {"init.yml": "test_cases: [{in: a, out: b}]"}, "bad_tests"),
        ("dmoj", {"init.yml": "archive: tests.zip"}, "unreadable_file"),
        ("dmoj", {"init.yml": "archive: tests.zip", "tests.zip": b"PK no"}, "unreadable_file"),
        ("dmoj", {"statement.md": None}, "no_statement"),
        ("cms", {"task.yaml": "- a"}, "wrong_type"),
        ("cms", {"statement/english.md": " ", "statement/italian.md": None}, "no_statement"),
        ("dodona", {"config.json": "{}"}, "other_task"),
        ("dodona", {"evaluation/suite.yaml": "- tab: a\n  testcases: [{statement: 'x = 1'}]"}, "tests_not_convertible"),
        ("dodona", {"evaluation/suite.yaml": "- !x {}"}, "bad_tests"),
    ],
)
def test_what_a_package_lacks_is_said(golden: Path, name: str, files: dict[str, Any], reason: str) -> None:
    with pytest.raises(Malformed) as caught:
        find(name).read_row(changed(golden_row(golden, name), **files), "1")
    assert caught.value.reason == reason


def test_dmoj_reads_its_archive_and_no_bomb(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.in", "5\n")
        archive.writestr("1.out", "0" * 100_000)
    init = "archive: tests.zip\ntest_cases: [{in: 1.in, out: 1.out, points: 5}]"
    row = changed(golden_row(golden, "dmoj"), **{"init.yml": init, "tests.zip": packed.getvalue()})
    assert find("dmoj").read_row(row, "1").tests[0].input == "5\n"
    example: Any = find("dmoj").read
    monkeypatch.setitem(example.extension.function.__globals__, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(Malformed, match="unpacks to more than"):
        find("dmoj").read_row(row, "1")


def dmoj_archive(golden: Path, init: str, names: list[str]) -> dict[str, Any]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, f"{name}\n")
    return changed(
        golden_row(golden, "dmoj"), **{"init.yml": f"archive: tests.zip\n{init}", "tests.zip": packed.getvalue()}
    )


def test_dmoj_flags_what_is_not_compared_as_its_checker_does(golden: Path) -> None:
    init = "file_io: {input: a.in}\ntest_cases: [{batched: [{in: 1.in, out: 1.out, checker: floats}]}]"
    found = find("dmoj").read_row(dmoj_archive(golden, init, ["1.in", "1.out"]), "1")
    assert found.flags == ("needs_checker", "file_io")


def test_dodona_reads_the_scripts_of_units(golden: Path) -> None:
    suite = "units:\n- unit: a\n  cases:\n  - script:\n    - {expression: 'double(4)', return: 8}\n"
    row = changed(golden_row(golden, "dodona"), **{"evaluation/suite.yaml": suite})
    assert [one.output for one in find("dodona").read_row(row, "1").tests] == ["8"]


def test_a_checker_that_needs_testlib_is_said_to_and_one_of_its_own_is_known(golden: Path) -> None:
    row = golden_row(golden, "polygon")
    xml = row["files"]["problem.xml"].replace("std::wcmp.cpp", "check.cpp")
    unknown = find("polygon").read_row(changed(row, **{"problem.xml": xml}), "1")
    assert "needs_checker" in unknown.flags
    whole = {"problem.xml": xml, "files/testlib.h": "// the header\n"}
    assert find("polygon").read_row(changed(row, **whole), "1").flags == ()


@pytest.mark.parametrize(
    ("folder", "said", "known"),
    [
        ("rejected", "", "wrong_answer"), ("brute_force", "", "time_limit"), ("mixed", "", None),
        ("mixed", "@EXPECTED_RESULTS@: TIMELIMIT", "time_limit"),
        ("accepted", "@EXPECTED_RESULTS@: RUN-ERROR", "runtime_error"),
        ("mixed", "@EXPECTED_RESULTS@ WRONG-ANSWER, TIMELIMIT", "wrong_answer"),
        ("mixed", "@EXPECTED_RESULTS@: CORRECT, TIMELIMIT", None),
        ("wrong_answer", "@EXPECTED_RESULTS@: CHECK-MANUALLY", "wrong_answer"),
    ],
)  # fmt: skip
def test_a_submission_has_the_verdict_of_its_own_text_or_folder(
    golden: Path, folder: str, said: str, known: str | None
) -> None:
    path = f"submissions/{folder}/one.cpp"
    found = FORMATS["kattis"].read_row(
        changed(golden_row(golden, "kattis"), **{path: f"// {said}\nint main() {{}}\n"}), "1"
    )
    assert {one.name: one.known for one in found.solutions}.get(path) == known


def test_examples_of_tools_are_no_problems(tmp_path: Path) -> None:
    for folder in ("2024/problems/sum", "2024/testdata_tools/examples/sum"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "problem.yaml").write_text("name: Sum\n")
    (shard,) = list_shards(open_source(tmp_path, "kattis"), 9)
    assert [part.file for part in shard.parts] == ["2024/problems/sum"]
