"""Rows and packages of every format: golden ones become what is expected, real ones come out,
hostile ones go.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet
import pytest

from microcoder.data.clean.sections import split
from microcoder.data.clean.stage import process
from microcoder.data.filter.rules import filter_row
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.format import Format, recognise
from microcoder.data.formats.row import REASONS, Malformed
from microcoder.data.formats.rows import FORMATS, load_format, load_reader
from microcoder.data.rowfiles import unpack
from microcoder.data.sources import collect_shard, list_shards, open_source, read_shard
from microcoder.judge import check_problem, judge
from microcoder.judge.core.types import Interactor, Outcome, Program
from tests.data.golden_rows import (
    EXAMPLES,
    GOLDEN,
    IN_FILES,
    IN_FOLDERS,
    collect,
    rows_of,
    write_row,
)
from tests.data.published import find_archive
from tests.judge.interactive_problems import BISECT, COUNT, GUESS, KATTIS_GUESS

OF_EXAMPLES = ("cms", "dmoj", "dodona", "doocs")
PLACE = {"id", "source_row"}


def expected_of(name: str) -> list[Candidate]:
    candidates = []
    for row in json.loads((GOLDEN / "expected" / f"{name}.json").read_text()):
        candidates.append(Candidate.model_validate(row))
    return candidates


def show(found: list[Any], *, without: set[str] | None = None) -> list[dict[str, Any]]:
    return [row.model_dump(mode="json", exclude_defaults=True, exclude=without) for row in found]


@pytest.mark.parametrize("name", IN_FILES)
def test_golden_files_become_what_is_expected(name: str) -> None:
    assert collect(GOLDEN / f"{name}.jsonl", name) == expected_of(name)


@pytest.mark.parametrize("name", [*IN_FOLDERS, *OF_EXAMPLES])
def test_golden_folders_become_what_is_expected(name: str, tmp_path: Path) -> None:
    for row in rows_of(name):
        write_row(tmp_path, row)
    expected = sorted(show(expected_of(name), without=PLACE), key=lambda row: row["title"])
    found = collect(tmp_path, f"{EXAMPLES}/{name}.py:{name}" if name in OF_EXAMPLES else name, 1)
    assert sorted(show(found, without=PLACE), key=lambda row: row["title"]) == expected
    assert {row.source_row for row in found} == {row["name"] for row in rows_of(name)}


@pytest.mark.parametrize("name", ["verl", "livecodebench", "codecontests", "synthetic"])
def test_rows_in_parquet_are_read_as_those_in_lines(name: str, tmp_path: Path) -> None:
    """Parquet gives every row every field, empty where it has none."""
    rows = []
    for row in rows_of(name):
        if not isinstance(row.get("metadata"), list):
            rows.append(row)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    expected = show(expected_of(name)[: len(rows)], without=PLACE)
    assert show(collect(tmp_path, name, 1), without=PLACE) == expected


@pytest.mark.parametrize("name", FORMATS)
def test_golden_candidates_are_read_again_unchanged_and_those_with_tests_can_be_judged(
    name: str,
) -> None:
    for candidate in expected_of(name):
        assert Candidate.model_validate_json(candidate.model_dump_json()) == candidate
        assert not candidate.groups or len(candidate.groups) == len(candidate.tests)
        if (
            candidate.tests
            and candidate.programming_language != "rust"
            and "needs_checker" not in candidate.flags
        ):
            check_problem(candidate.to_problem())


@pytest.mark.parametrize("name", ["openr1_codeforces", "hardtests"])
def test_a_checker_in_python_takes_any_right_answer_and_no_other(name: str) -> None:
    """Also where the checker itself fails on what was printed: that is a wrong answer,
    not a fault of the machine.
    """
    problem = expected_of(name)[0].to_problem()
    programs = []
    for printed in ("0, n", "n, 0", "0, n + 1", "'x'", "''"):
        programs.append(f"n = int(input())\nprint({printed})")
    verdicts = judge([Program(program) for program in programs], [problem] * len(programs))
    right = [verdict.outcome is Outcome.ACCEPTED for verdict in verdicts]
    assert right == [True, True, False, False, False]
    assert Outcome.SANDBOX_FAULT not in {verdict.outcome for verdict in verdicts}


def find(name: str) -> Format:
    return FORMATS.get(name) or load_format(f"{EXAMPLES}/{name}.py:{name}")


def changed(row: dict[str, Any], **files: Any) -> dict[str, Any]:
    kept = {}
    for name, text in row["files"].items():
        if files.get(name, "") is not None:
            kept[name] = text
    there = {}
    for name, text in files.items():
        if text is not None:
            there[name] = text
    return {
        **row,
        "files": {**kept, **there},
    }


@pytest.mark.parametrize("name", ["polygon", "dmoj", "cms"])
def test_a_package_becomes_a_problem_that_its_own_solution_solves(name: str) -> None:
    row = changed(rows_of(name)[0], **{"statements/russian/problem.tex": b"\xcd"})
    found = process(find(name).read_row(row, "1"))
    assert isinstance(found, Candidate), found
    assert isinstance(filter_row(found), Candidate)
    assert [(one.input, one.output) for one in split(found.statement).examples] == [("1 2", "3")]
    problem = found.to_problem()
    assert problem.reference is not None
    right, wrong = judge([Program(problem.reference), Program("print(7)")], [problem, problem])
    assert right.is_accepted
    assert not wrong.is_accepted


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        (
            "polygon",
            {"problem.xml": '<!DOCTYPE a [<!ENTITY b "c">]><problem>&b;</problem>'},
            "bad_encoding",
        ),
        ("polygon", {"statements/english/problem-properties.json": None}, "no_statement"),
        ("polygon", {"statements/english/problem-properties.json": "[1]"}, "wrong_type"),
        ("dmoj", {"init.yml": "test_cases: [{in: a, out: b}]"}, "bad_tests"),
        ("dmoj", {"init.yml": "archive: tests.zip", "tests.zip": b"PK no"}, "unreadable_file"),
        ("cms", {"statement/english.md": " ", "statement/italian.md": None}, "no_statement"),
        ("dodona", {"config.json": "{}"}, "other_task"),
        ("dodona", {"evaluation/suite.yaml": "- !x {}"}, "bad_tests"),
    ],
)
def test_what_a_package_lacks_is_said(name: str, files: dict[str, Any], reason: str) -> None:
    with pytest.raises(Malformed) as caught:
        find(name).read_row(changed(rows_of(name)[0], **files), "1")
    assert caught.value.reason == reason


def test_dmoj_reads_its_archive_and_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.in", "5\n")
        archive.writestr("1.out", "0" * 100_000)
    init = "archive: tests.zip\ntest_cases: [{in: 1.in, out: 1.out, points: 5}]"
    row = changed(rows_of("dmoj")[0], **{"init.yml": init, "tests.zip": packed.getvalue()})
    assert find("dmoj").read_row(row, "1").tests[0].input == "5\n"
    example = load_reader(f"{EXAMPLES}/dmoj.py:dmoj").function
    monkeypatch.setitem(example.__globals__, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(Malformed, match="unpacks to more than"):
        find("dmoj").read_row(row, "1")


def test_a_checker_that_needs_testlib_is_said_to_and_one_of_its_own_is_known() -> None:
    row = rows_of("polygon")[0]
    xml = row["files"]["problem.xml"].replace("std::wcmp.cpp", "check.cpp")
    unknown = find("polygon").read_row(changed(row, **{"problem.xml": xml}), "1")
    assert "needs_checker" in unknown.flags
    whole = {"problem.xml": xml, "files/testlib.h": "// the header\n"}
    assert find("polygon").read_row(changed(row, **whole), "1").flags == ()


@pytest.mark.parametrize(
    ("folder", "said", "known"),
    [
        ("rejected", "", "wrong_answer"),
        ("brute_force", "", "time_limit"),
        ("mixed", "", None),
        ("accepted", "@EXPECTED_RESULTS@: RUN-ERROR", "runtime_error"),
        ("mixed", "@EXPECTED_RESULTS@ Wrong-answer, timelimit", "wrong_answer"),
        ("mixed", "@EXPECTED_RESULTS@: CORRECT, TIMELIMIT", None),
    ],
)
def test_a_submission_has_the_verdict_of_its_own_text_or_folder(
    folder: str,
    said: str,
    known: str | None,
) -> None:
    path = f"submissions/{folder}/one.cpp"
    code = f"// {said}\nint main() {{}}\n"
    found = FORMATS["kattis"].read_row(changed(rows_of("kattis")[0], **{path: code}), "1")
    assert {one.name: one.known for one in found.solutions}.get(path) == known


def test_spaces_are_compared_only_where_a_packages_flags_allow_nothing_else() -> None:
    for flags, kind in (
        ("case_sensitive", "exact"),
        ("", "tokens"),
        ("float_tolerance 1e-6", "float"),
    ):
        settings = f"validator_flags: {flags} space_change_sensitive"
        files = {"problem.yaml": settings, "data/secret/9.in": "1", "data/secret/9.ans": "0.5"}
        found = FORMATS["kattis"].read_row(changed(rows_of("kattis")[0], **files), "1")
        assert found.checker.type == kind
        assert any("spaces" in one.detail for one in found.lineage) == (kind != "exact")


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ("validation: custom interactive", "output_validators/guess/validate.py"),
        ("type: interactive", "output_validator/validate.py"),
    ],
)
def test_a_packages_interactor_talks_with_answers(settings: str, path: str) -> None:
    files = {
        "problem.yaml": f"{settings}\nvalidator_flags: quick",
        path: KATTIS_GUESS,
        "data/sample/1.in": "37\n",
        "data/sample/1.ans": "37\n",
    }
    row = {"name": "guess", "files": {**rows_of("kattis")[0]["files"], **files}}
    for name in list(row["files"]):
        if name.startswith("data/") and name not in files:
            del row["files"][name]
    found = FORMATS["kattis"].read_row(row, "1")
    assert found.flags == ()
    assert found.interactor is not None
    assert found.interactor.arguments == ("quick",)
    problem = found.to_problem()
    right, wrong = judge([Program(BISECT), Program(COUNT)], [problem, problem])
    assert right.is_accepted, right.detail
    assert wrong.outcome is Outcome.WRONG_ANSWER


def test_a_package_of_several_passes_is_turned_away() -> None:
    settings = "type: [interactive, multi-pass]"
    files = {"problem.yaml": settings, "output_validator/validate.py": KATTIS_GUESS}
    found = FORMATS["kattis"].read_row(changed(rows_of("kattis")[0], **files), "1")
    assert found.interactor is None
    assert "interactive" in found.flags


def test_polygons_interactor_comes_along() -> None:
    row = rows_of("polygon")[0]
    asset = '<interactor><source path="files/interactor.py" type="python.3"/></interactor>'
    xml = row["files"]["problem.xml"].replace("<assets>", f"<assets>{asset}")
    files = {"problem.xml": xml, "files/interactor.py": GUESS}
    found = find("polygon").read_row(changed(row, **files), "1")
    assert found.interactor == Interactor(code=GUESS)
    # What it writes is compared by the package's checker.
    assert found.checker.type == "tokens"
    missing = find("polygon").read_row(changed(row, **{"problem.xml": xml}), "1")
    assert "interactive" in missing.flags


class Real(NamedTuple):
    format_name: str
    num_rows: int
    """As the notes on the data count them."""
    candidates: float
    """Share of the rows, as measured; the others have tests that are no literals."""
    with_tests: float
    """Share of the candidates."""
    one_in: int = 1
    """So many rows are counted for one that is read: to read all takes half a minute."""


ARCHIVES = {
    "codecontests_test": Real("humaneval", 165, 1, 0),
    "deepseek_leetcode": Real("deepseek_leetcode", 2 * 180, 1, 1, 9),
    "doocs": Real(f"{EXAMPLES}/doocs.py:doocs", 486, 1, 0.6, 10),
    "humaneval": Real("humaneval", 164, 0.9, 1),
    "humaneval_xl": Real("humaneval", 560, 0.9, 1, 4),
    "kodsport": Real("kattis", 277, 1, 1, 14),
    "lcb_eval": Real("livecodebench", 2 * 880, 1, 0, 16),
    "leetcodedataset": Real("leetcodedataset", 228 + 1890, 1, 1, 20),
    "mbpp": Real("mbpp", 974, 0.75, 1, 4),
    "odex": Real("odex", 945, 0.4, 1, 4),
}

ROWS_OF = ("humaneval", "mbpp", "leetcodedataset", "deepseek_leetcode", "odex")
"""Formats that a row alone is recognised as, as `read_problem` does."""


def count_rows(shards: list[Any]) -> int:
    """Return the number of rows of all parts of some shards."""
    return sum(part.num_rows for shard in shards for part in shard)


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_row_of_real_data_comes_out(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    unpack(find_archive(name), folder, aside=tmp_path)
    real = ARCHIVES[name]
    source = open_source(folder / name, real.format_name)
    shards = list_shards(source, 5)
    assert count_rows(shards) == real.num_rows
    sampled = shards[:: real.one_in]
    found = []
    for shard in sampled:
        found.extend(collect_shard(source, shard))
    candidates = [row for row in found if isinstance(row, Candidate)]
    rejections = [row for row in found if isinstance(row, Rejection)]
    assert len(found) == count_rows(sampled)
    assert len(candidates) >= real.candidates * len(found)
    assert sum(bool(row.tests) for row in candidates) >= real.with_tests * len(candidates)
    if real.format_name in ROWS_OF:
        recognised = set()
        for shard in sampled:
            for row in read_shard(source, shard):
                form = recognise(row.values or {}, FORMATS.values())
                recognised.add(form and form.name)
        assert recognised == {real.format_name}
    for row in rejections:
        assert row.reason in REASONS.keys() - {"adapter_fault"}, f"{row.id}: {row.detail}"
        assert row.detail
        assert row.raw
        if row.reason == "tests_not_convertible":
            assert row.candidate
