"""An audit finds what was put into a set, says of how many rows, and resumes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from microcoder.cli import main
from microcoder.data.corpus.build import audit
from microcoder.data.corpus.settings import BuildConfig, SourceSettings
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.judge.core.errors import DataError
from tests.data.published import find_archive

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
TEXT = (
    "Read two integers from one line and print their sum, which is never larger than a million.\n\n"
    "## Input\n\nOne line with a and b, $1 \\le a, b \\le 1000$.\n\n"
)


NONE: dict[str, Any] = {"input": [], "output": []}


def row(
    name: str,
    text: str,
    tests: list[tuple[str, str]],
    *,
    right: str,
    wrong: str = "",
) -> dict[str, Any]:
    wrongs = [wrong] if wrong else []
    return {
        "name": name,
        "description": text,
        "public_tests": NONE,
        "private_tests": {
            "input": [given for given, _ in tests],
            "output": [output for _, output in tests],
        },
        "generated_tests": NONE,
        "solutions": {"language": [3], "solution": [right]},
        "incorrect_solutions": {"language": [3] * len(wrongs), "solution": wrongs},
    }


TESTS = [
    ("1 2\n", "3\n"),
    ("3 4\n", "7\n"),
    ("5 6\n", "11\n"),
    ("9 9\n", "18\n"),
    ("20 1\n", "21\n"),
]
PRODUCT = TEXT.replace("sum", "product").replace("two integers", "a pair of small numbers")
BASKET = (
    "You are given an apple count and a pear count for one basket. How many fruits does it "
    "hold, at most n <= 105?"
)
ROWS = [
    row("Fine", TEXT, TESTS, right=SUM, wrong="print(3)"),
    row("Same again", TEXT, TESTS, right=SUM),
    row("Wrong tests", PRODUCT, TESTS, right="a, b = map(int, input().split())\nprint(a * b)"),
    row("Weak tests", BASKET, TESTS[:1], right=SUM, wrong="print(3)"),
    {"name": "Nothing"},
]


@pytest.fixture
def source(tmp_path: Path) -> SourceSettings:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in ROWS))
    return SourceSettings(
        path=str(tmp_path / "rows.jsonl"),
        format="codecontests",
        licence="CC-BY-4.0",
    )


def config(source: SourceSettings, output: Path, **fields: Any) -> BuildConfig:
    return BuildConfig(
        name="audit",
        output=output,
        sources=(source,),
        workers=1,
        generate=GenerateSettings(mode="off"),
        **fields,
    )


def kinds_of(folder: Path) -> dict[str, set[str]]:
    """Return the kinds of findings by the place of their row."""
    kinds: dict[str, set[str]] = {str(place): set() for place in range(1, 6)}
    for line in map(json.loads, (folder / "findings.jsonl").read_text().splitlines()):
        kinds[line["source_row"].rpartition(":")[2]].add(line["kind"])
    return kinds


def test_an_audit_finds_what_a_build_would_turn_away_and_a_stopped_one_ends_the_same(
    source: SourceSettings, tmp_path: Path
) -> None:
    tests = ["assert add(2, 3) == 5", "assert add(40, 2) == 42", "assert add(100, 11) == 111"]
    task = {
        "task_id": 1,
        "text": "Write a function.",
        "code": "def add(x, y):\n    return x + y",
        "test_list": tests,
    }
    (tmp_path / "mbpp.jsonl").write_text(json.dumps(task))
    benchmark = SourceSettings(path=str(tmp_path / "mbpp.jsonl"), format="mbpp")
    found = audit(config(source, tmp_path / "whole", benchmarks=(benchmark,)))
    kinds = kinds_of(tmp_path / "whole")
    assert kinds["5"] == {"missing_field"}
    # Copies of a benchmark are found by what they do; the third's tests are those of a sum,
    # but its program is another.
    assert kinds["1"] | kinds["2"] == {"duplicate_of", "contaminated"}
    assert kinds["3"] == {"reference_fails"}
    # What one step would turn away is looked at by the next ones too.
    assert kinds["4"] == {"trivial_passes", "few_tests", "contaminated"}
    assert found.num_rows == 5
    assert {one.kind: one.num for one in found.findings}["missing_field"] == 1
    assert "| verify | reference_fails | 1 | 20.0% |" in found.report.read_text()

    stopped = config(source, tmp_path / "stopped", benchmarks=(benchmark,))
    with pytest.raises(KeyboardInterrupt):
        audit(stopped, on_progress=stop_at("verify"))
    assert audit(stopped).findings == found.findings
    for name in ("report.md", "findings.jsonl", "summary.json"):
        assert (tmp_path / "stopped" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()


def test_a_source_of_a_builds_config_is_audited_with_its_benchmarks(
    source: SourceSettings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "copy.jsonl").write_text(
        json.dumps({"task_id": 1, "text": TEXT, "code": "def f():\n  pass", "test_list": []})
    )
    (tmp_path / "corpus.toml").write_text(
        f"""name = "a"
output = "{tmp_path}/corpus"
sources = [{{path = "{source.path}", format = "codecontests", name = "mine"}}]
benchmarks = [{{path = "{tmp_path}/copy.jsonl", format = "mbpp"}}]
"""
    )
    recipe = str(tmp_path / "corpus.toml")
    main(["data", "audit", "mine", "-c", recipe, "--static", "-o", str(tmp_path / "audit")])
    summary = json.loads((tmp_path / "audit" / "summary.json").read_text())
    shares = {one["kind"]: one["num"] for one in summary["findings"]}
    assert shares["contaminated"] == 2
    with pytest.raises(SystemExit):
        main(["data", "audit", "yours", "-c", recipe])
    assert "corpus.toml has no source called 'yours'; use one of mine" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["data", "audit", source.path])
    assert "--format is missing; `microcoder data audit` alone lists" in capsys.readouterr().err


def test_a_smaller_draw_is_part_of_a_larger_one(source: SourceSettings, tmp_path: Path) -> None:
    drawn = []
    for limit in (1, 3, 5):
        found = audit(config(source, tmp_path / "audit"), limit=limit, runs_programs=False)
        assert found.num_rows == limit
        kinds = kinds_of(tmp_path / "audit")
        places = set()
        for place in kinds:
            for kind in kinds[place]:
                if kind != "duplicate_of":
                    places.add((place, kind))
        drawn.append(places)
    assert drawn[0] <= drawn[1] <= drawn[2]


def stop_at(name: str) -> Any:
    def stop(step: str, done: int, total: int) -> None:
        if step == name:
            raise KeyboardInterrupt

    return stop


def test_a_source_without_rows_is_an_error_not_a_report(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    source = SourceSettings(path=str(tmp_path / "empty.jsonl"), format="codecontests")
    with pytest.raises(DataError, match=r"empty.jsonl holds no rows; check that the file is whole"):
        audit(config(source, tmp_path / "audit"), runs_programs=False)
    assert not (tmp_path / "audit" / "report.md").exists()


LOST = (
    "Read two integers from one line and print their sum.\n\n## Input\n\nOne line with a and b.\n\n"
    "## Constraints\n\n- 1 <= a, b <= 105\n- the sum is taken modulo 109 + 7\n"
)
SHOWN = (
    "Read two integers from one line and print the larger one of the two.\n\n"
    "Example 1:\n\nInput:\n1 2\n\nOutput:\n7\n\nExample 2:\n\nInput:\n3 4\n\nOutput:\n4\n"
)
LARGER = "a, b = map(int, input().split())\nprint(max(a, b))\n"


def patches_of(folder: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return proposed changes by the place of their row and their kind."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in map(json.loads, (folder / "patch.jsonl").read_text().splitlines()):
        place = line["source_row"].rpartition(":")[2]
        found.setdefault((place, line["kind"]), []).append(line)
    return found


def write_rows_of(tmp_path: Path, rows: list[dict[str, Any]]) -> SourceSettings:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return SourceSettings(path=str(tmp_path / "rows.jsonl"), format="codecontests")


def test_an_audit_proposes_changes_with_their_evidence(tmp_path: Path) -> None:
    larger = [("1 2\n", "2\n"), ("3 4\n", "4\n"), ("9 5\n", "9\n"), ("6 6\n", "6\n")]
    wrong_test = row("Wrong test", PRODUCT, [*TESTS, ("5 5\n", "11\n")], right=SUM)
    wrong_test["solutions"] = {"language": [3, 3], "solution": [SUM, f"{SUM}\n# again"]}
    differing = row("One of three", BASKET, [*TESTS, ("7 -7\n", "0\n")], right=SUM)
    negative = "a, b = map(int, input().split())\nprint(abs(a) + abs(b))"
    differing["solutions"] = {"language": [3] * 3, "solution": [SUM, negative, f"{SUM}\n# again"]}
    rows = [
        wrong_test,
        differing,
        row("Lost powers", LOST, TESTS, right=SUM),
        row("Wrong example", SHOWN, larger, right=LARGER),
    ]
    settings = config(write_rows_of(tmp_path, rows), tmp_path / "audit")
    done = audit(settings, patch_folder=tmp_path / "patch")
    patches = patches_of(tmp_path / "patch")
    (output,) = patches["1", "test_no_reference_passes"]
    assert output["change"] == {"action": "replace_output", "test": 5, "output": "10"}
    assert output["evidence"]["expected"] == "11\n"
    assert output["evidence"]["failing_solutions"] == {"0": "10\n", "1": "10\n"}
    (solution,) = patches["2", "references_disagree"]
    assert solution["change"] == {"action": "mark_solution_wrong", "solutions": [1]}
    assert solution["evidence"]["passing_solutions"] == [0, 2]
    (power,) = patches["3", "lost_power"]
    assert power["change"]["replacements"] == [["105", "10^5"], ["109", "10^9"]]
    (example,) = patches["4", "statement_contradicts_test"]
    assert example["change"]["replacements"] == [["7", "2"]]
    assert len(done.patches) == sum(map(len, patches.values()))


def test_where_nothing_ran_or_one_program_is_there_twice_maintainers_decide(
    tmp_path: Path,
) -> None:
    larger = [("1 2\n", "2\n"), ("3 4\n", "4\n"), ("9 5\n", "9\n"), ("6 6\n", "6\n")]
    wrong_test = row("Wrong test", PRODUCT, [*TESTS, ("5 5\n", "11\n")], right=SUM)
    wrong_test["solutions"] = {"language": [3, 3], "solution": [SUM, f"{SUM}\n"]}
    rows = [
        wrong_test,
        row("Lost powers", f"{LOST}- 105 is no limit\n", TESTS, right=SUM),
        row("Wrong example", SHOWN, larger, right=LARGER),
    ]
    source = write_rows_of(tmp_path, rows)
    audit(config(source, tmp_path / "run"), patch_folder=tmp_path / "patch")
    (output,) = patches_of(tmp_path / "patch")["1", "test_no_reference_passes"]
    assert output["change"] == {"action": "decide", "test": 5}
    assert output["evidence"]["input_sha256"] == hashlib.sha256(b"5 5\n").hexdigest()
    settings = config(source, tmp_path / "static")
    audit(settings, runs_programs=False, patch_folder=tmp_path / "patch")
    static = patches_of(tmp_path / "patch")
    (example,) = static["3", "statement_contradicts_test"]
    assert example["change"]["action"] == "decide"
    assert example["evidence"]["references"] == "do not decide"
    (power,) = static["2", "lost_power"]
    assert power["change"]["action"] == "decide"


def test_no_change_is_proposed_for_a_number_in_another_notation_nor_for_prose(
    tmp_path: Path,
) -> None:
    halved = SHOWN.replace("7\n", "1.50000\n").replace("4\n", "3.5\nExplanaton: by hand\n")
    half = "a, b = map(int, input().split())\nprint((a + b) / 2)\n"
    tests = [("1 2\n", "1.5\n"), ("3 3.5\n", "3.5\n"), ("3 4\n", "3.5\n")]
    rows = [row("Half", halved.replace("larger one", "mean"), tests, right=half)]
    settings = config(write_rows_of(tmp_path, rows), tmp_path / "audit")
    audit(settings, runs_programs=False, patch_folder=tmp_path / "patch")
    assert patches_of(tmp_path / "patch") == {}


def test_of_published_rows_lost_powers_are_proposed(tmp_path: Path) -> None:
    archive = find_archive("leetcodedataset")
    settings = BuildConfig(
        name="audit",
        output=tmp_path / "audit",
        sources=(
            SourceSettings(
                path=str(archive),
                format="leetcodedataset",
                inside="leetcodedataset/LeetCodeDataset-v0.3.1-test.jsonl.gz",
            ),
        ),
        workers=1,
        generate=GenerateSettings(mode="off"),
    )
    audit(settings, limit=40, runs_programs=False, patch_folder=tmp_path / "patch")
    patches = patches_of(tmp_path / "patch")
    replaced = set()
    for (_, kind), changes in patches.items():
        assert kind == "lost_power"
        for change in changes:
            replaced.update(map(tuple, change["change"]["replacements"]))
    assert {("105", "10^5"), ("109", "10^9")} <= replaced
    for lost, power in replaced:
        assert power.replace("^", "") == lost
