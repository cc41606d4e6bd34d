"""Quality, licence, and the stage of them."""

import hashlib
import json
import os
import random
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.corpus.barriers import DuplicateBarrier
from microcoder.data.filter.contamination import build_index
from microcoder.data.filter.duplicates import describe, find_duplicates
from microcoder.data.filter.licences import (
    PERMISSIVE,
    SHARE_ALIKE,
    normalise_licence,
    strictest_licence,
)
from microcoder.data.filter.merging import merge
from microcoder.data.filter.rules import (
    BLOCKING_FLAGS,
    LicenceSettings,
    check_licence,
    check_quality,
    filter_row,
)
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.values import read_licence
from microcoder.data.release.card import write_card
from microcoder.data.release.publishing import copy_published, write_croissant
from microcoder.data.release.tables import write_tables
from microcoder.data.sources import MARKER, collect_source, open_source
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import TestCase
from tests.data.clean.real_texts import ALL
from tests.data.hub_server import Hub, serve_hub

STORY = (
    "A baker walks from the first of n cities to the last one and buys bread wherever it "
    "is cheap. He may carry at "
    "most k loaves and eats one of them in every city that he enters. Find the least that "
    "he pays, and print it."
)
TESTS = (TestCase(input="1\n2\n", output="2\n"),)


def quality_reason(statement: str, **fields: object) -> str | None:
    given = {"id": "set/1", "dataset": "set", "statement": statement, "tests": TESTS, **fields}
    candidate = Candidate(**given)  # type: ignore[arg-type]
    found = check_quality(candidate)
    return found[0] if found else None


CHOICE = (
    "Which of the following is the complexity of sorting n numbers by comparing two of them at "
    "a time?"
)


@pytest.mark.parametrize(
    ("statement", "fields", "expected"),
    [
        (" \n", {}, "no_statement"),
        # A placeholder says as little as nothing.
        ("TBD", {}, "no_statement"),
        ("Add two numbers.", {}, "too_short"),
        (CHOICE, {}, "not_a_program"),
        # A mere remark stands in nobody's way.
        (STORY, {"flags": ("has_image", "samples_missing")}, None),
        # It is asked for tests later, or turned away then.
        (STORY, {"tests": ()}, None),
        *((STORY, {"flags": ("has_image", flag)}, flag) for flag in BLOCKING_FLAGS),
    ],
)
def test_each_rule_has_its_reason(
    statement: str,
    fields: dict[str, Any],
    expected: str | None,
) -> None:
    assert quality_reason(statement, **fields) == expected


@pytest.mark.parametrize(
    "name", ["livecodebench", "deepseek_en", "deepseek_zh", "kodsport", "codecontests"]
)
def test_real_problems_pass(name: str) -> None:
    rows = ALL[name]()
    found = {one.id: check_quality(one) for one in rows}
    refused = {}
    for row_id, why in found.items():
        if why:
            refused[row_id] = why
    # A few real statements are only a picture or a line; more would be a rule that is too strict.
    assert len(refused) <= 0.02 * len(rows), refused

    # Databases and shells go.
    rows = []
    for one in ALL["doocs_en"]():
        if "Column Name" in one.statement_found:
            rows.append(one)
    found = [check_quality(one) for one in rows]
    assert len(rows) >= 2
    assert sum(why is not None and why[0] == "not_a_program" for why in found) >= 0.95 * len(rows)


def row(licence: str) -> Candidate:
    return Candidate(id="set/1", dataset="set", licence=licence)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("The MIT licence", "MIT"),
        ("Apache License, 2.0", "Apache-2.0"),
        ("cc by-sa", "CC-BY-SA"),
        ("cc-by-sa-3.0", "CC-BY-SA"),
        ("Creative Commons Attribution-ShareAlike", "CC-BY-SA"),
        ("Creative Commons Attribution 4.0 International", "CC-BY"),
        ("CC BY-NC-SA 4.0", "CC-BY-NC-SA"),
        ("CC BY-ND", "CC-BY-ND"),
        ("CC0", "CC0-1.0"),
        # Of a list the strictest part counts.
        ("MIT, GPL-3.0", "GPL"),
        ("public domain", "CC0-1.0"),
        ("AGPL-3.0", "GPL"),
        ("LGPL-2.1", "LGPL"),
        ("BSD 3-Clause", "BSD-3-Clause"),
        ("BSD-4-Clause", "BSD-4-Clause"),
        ("  ", ""),
        ("odc-by", "ODC-BY"),
        ("The Unlicense", "Unlicense"),
        ("CC-BY-4.0-NC", "CC-BY-NC"),
        # With a hyphen that does not break.
        ("CC BY\u2011NC 4.0", "CC-BY-NC"),
        ("CC BY 4.0 (no derivatives)", "CC-BY-ND"),
        ("CC BY 4.0; commercial use is not allowed", "CC-BY-NC"),
        # MIT has no such form: the text is unknown, and so is not taken for MIT.
        ("MIT (non-commercial)", "MIT (non-commercial)"),
        ("Creative Commons Zero v1.0 Universal", "CC0-1.0"),
        ("https://creativecommons.org/licenses/by/4.0", "CC-BY"),
        ("MIT AND GPL-3.0", "GPL"),
        # The choice is MIT's, and Apache-2.0 asks for more than that.
        ("(GPL-3.0 OR MIT) AND Apache-2.0", "Apache-2.0"),
        ("CC-BY-NC-4.0 OR MIT", "MIT"),
        ("GPL-3.0 or later", "GPL"),
        ("MIT (code and tests)", "MIT"),
        (read_licence(["MIT", "CC BY-SA"]), "CC-BY-SA"),
        *(
            (name, name)
            for name in (
                *PERMISSIVE,
                *SHARE_ALIKE,
                "public domain, no commercial use",
                "Creative Commons",
                "MIT AND CC-BY-NC-4.0",
                "CC-BY-4.0 AND LicenseRef-X",
                "Apache-2.0 WITH Commons-Clause",
                "MIT (statements: all rights reserved)",
            )
        ),
    ],
)
def test_one_name_for_the_ways_of_writing(written: str, name: str) -> None:
    assert normalise_licence(written) == normalise_licence(name) == name
    assert (check_licence(row(written)) is None) == (name in ("", *PERMISSIVE, *SHARE_ALIKE))


def test_what_is_not_on_the_list_is_refused_and_silence_where_the_config_says_so() -> None:
    assert check_licence(row("CC BY-NC 4.0")) == ("licence_refused", "CC-BY-NC")
    assert check_licence(row("")) is None
    assert check_licence(row(""), LicenceSettings(unknown="reject")) == (
        "licence_unknown",
        "the source says nothing",
    )


def test_the_strictest_licence_is_that_of_the_whole() -> None:
    for strictest, *others in (
        ("MIT",),
        ("cc by-sa", "MIT"),
        ("CC-BY-4.0", "Apache-2.0", "CC0-1.0"),
        ("GPL-3.0", "CC BY-SA 4.0"),
        ("CC BY-NC 4.0", "GPL-3.0"),
        ("", "MIT"),
        # Silence is stricter than any licence, known or not.
        ("", "all rights reserved", "MIT"),
        ("MIT AND GPL-3.0", "CC BY-SA 4.0"),
        ("Apache-2.0", "GPL-3.0 OR MIT"),
        ("CC-BY-4.0, GPL-3.0", "CC-BY-SA"),
    ):
        assert (
            strictest_licence([strictest, *others])
            == strictest_licence([*others, strictest])
            == strictest
        )


def problem(number: int, *, url: int | None = None, **fields: object) -> dict[str, object]:
    words = "".join(f"w{number}x{place} " for place in range(30))
    tests = {"inputs": [f"{number}\n"], "outputs": ["1\n"]}
    place = f"https://codeforces.com/problemset/problem/{number if url is None else url}/A"
    return {"question": f"Print {words}", "input_output": tests, "url": place, **fields}


def package(folder: Path, number: int, settings: str) -> None:
    files = {
        "problem.yaml": (
            f"source_url: https://codeforces.com/problemset/problem/{number}/A\n{settings}"
        ),
        "problem_statement/problem.md": str(problem(number + 100)["question"]),
        "data/secret/1.in": f"{number} 1\n",
        "data/secret/1.ans": "1\n",
    }
    for name, text in files.items():
        path = folder / str(number) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def write_mixed_rows(folder: Path) -> list[Any]:
    """Write twenty rows in several formats; return their sources."""
    nothing = [problem(1), problem(2), problem(3, license="Unknown"), problem(4, license=[])]
    own = [
        problem(5, license="MIT"),
        problem(6, licence="CC BY-SA 4.0"),
        problem(7, license=["CC BY-NC 4.0"]),
        problem(8, license="all rights reserved"),
    ]
    # Duplicates by their address: of two packages, and of the first row.
    merged = [
        problem(9, url=20, license="MIT"),
        problem(10, url=21, license="CC0-1.0"),
        problem(11, url=1),
    ]
    stated = [problem(12), problem(13, license="GPL-3.0"), problem(14, url=5), problem(15, url=2)]
    for name, rows in (("plain", [*nothing, *own, *merged]), ("stated", stated)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    for number, licence in (
        (20, "license: cc by-sa\n"),
        (21, "license: unknown\n"),
        (22, "license: cc0\n"),
    ):
        package(folder / "packages", number, licence)
    package(folder / "archive", 23, "license: permission\n")
    package(folder / "archive", 24, "name: Last\n")
    return [
        open_source(folder / "plain.jsonl", "apps"),
        open_source(folder / "stated.jsonl", "taco", licence="Apache-2.0"),
        open_source(folder / "packages", "kattis"),
        open_source(folder / "archive", "kattis", name="archive", licence="CC-BY-4.0"),
    ]


def merge_duplicates(rows: dict[str, Candidate]) -> dict[str, Candidate]:
    """Return rows by id, each group of duplicates merged into its best."""
    merged = dict(rows)
    for best, rest in find_duplicates(describe(list(rows.values()))).items():
        merged[best] = merge(rows[best], [rows[name] for name in rest])
        for name in rest:
            del merged[name]
    return merged


def read_all_bytes(folder: Path) -> bytes:
    """Return what all files of a folder hold, tables as text before all as it is stored."""
    tables = []
    for path in folder.glob("*.parquet"):
        tables.append(pq.read_table(path).to_pandas().to_csv().encode())
    files = []
    for path in folder.rglob("*"):
        if path.is_file():
            files.append(path.read_bytes())
    return b"".join(tables) + b"".join(files)


def test_twenty_mixed_rows_have_the_licence_that_somebody_stated(tmp_path: Path) -> None:
    """Their own, the recipe's, or none, whatever the format;
    copies of one problem the strictest of the parts.
    """
    found = {}
    for source in write_mixed_rows(tmp_path):
        for row in collect_source(source):
            if isinstance(row, Candidate):
                found[row.id] = row
    assert len(found) == 20
    refused = set()
    for name, one in found.items():
        if check_licence(one):
            refused.add(name)
    assert refused == {"apps/plain.jsonl:7", "apps/plain.jsonl:8", "archive/23"}
    kept = {}
    for name, one in found.items():
        if name not in refused:
            kept[name] = one
    done = merge_duplicates(kept)
    assert {name: one.licence for name, one in done.items()} == {
        "apps/plain.jsonl:3": "",
        "apps/plain.jsonl:4": "",
        "apps/plain.jsonl:6": "CC BY-SA 4.0",
        # An own licence and the recipe's; one of a package; one that is not stated;
        # two that are not.
        "taco/stated.jsonl:3": "Apache-2.0",
        "kattis/20": "cc by-sa",
        "apps/plain.jsonl:10": "",
        "apps/plain.jsonl:11": "",
        "taco/stated.jsonl:4": "",
        "taco/stated.jsonl:1": "Apache-2.0",
        "taco/stated.jsonl:2": "GPL-3.0",
        "kattis/22": "cc0",
        "archive/24": "CC-BY-4.0",
    }
    origins = {one.source: one.licence for one in done["kattis/20"].origins}
    assert origins == {"apps/plain.jsonl:9": "MIT", "kattis/20": "cc by-sa"}
    tables = tmp_path / "corpus"
    published = tmp_path / "published"
    published.mkdir()
    tally = write_tables(
        tables,
        done.values(),
        [found[name].reject("filter", "licence_refused") for name in refused],
    )
    sources_named = [
        {"name": "apps", "url": "a.jsonl", "version": "0" * 40, "sha256": "1" * 64, "license": ""}
    ]
    write_card(
        tables,
        name="x",
        tally=tally,
        step_counts=[],
        figures={},
        config={},
        sources=sources_named,
    )
    write_croissant(tables, name="x", licence="other", sources=sources_named)
    (tables / MARKER).write_text("{}")
    assert copy_published(tables, published) == (7, 5)
    content = read_all_bytes(published)
    assert b"w12x7" in content
    for number in (1, 2, 3, 4, 7, 8, 10, 11, 123):
        assert f"w{number}x".encode() not in content
    record = json.loads((published / "croissant.json").read_text())
    assert record["isBasedOn"] == [{"@type": "sc:Dataset", **sources_named[0]}]
    digests = {}
    for path in published.glob("*.parquet"):
        digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert {one["name"]: one["sha256"] for one in record["distribution"]} == digests
    assert f"| {'0' * 40} | `{'1' * 64}` |" in (published / "README.md").read_text()


ON_THE_HUB = """
from pathlib import Path
import sys
from microcoder.cli import main
from microcoder.data.sources import collect_source, open_source
source = open_source("hf://datasets/codeparrot/apps/default/train", "apps")
print([row.licence for row in collect_source(source)])
main(["data", "push", sys.argv[1], "--repo", "me/mine"])
"""


def test_a_known_data_set_has_its_licence_and_what_is_refused_is_not_pushed(tmp_path: Path) -> None:
    rows = [problem(1), problem(2, license="ISC")]
    hub = Hub(files={"data/train.jsonl": "".join(json.dumps(one) + "\n" for one in rows).encode()})
    kept = []
    for licence in ("MIT", ""):
        kept.append(
            Candidate(
                id=f"set/{licence}",
                dataset="set",
                statement="Add.",
                licence=licence,
                tests=(TestCase(input="1", output="1"),),
            )
        )
    tally = write_tables(
        tmp_path,
        kept,
        [kept[0].model_copy(update={"id": "x"}).reject("filter", "contaminated", "it")],
    )
    write_card(tmp_path, name="x", tally=tally, step_counts=[], figures={}, config={})
    write_croissant(tmp_path, name="x", licence="other", sources=[])
    (tmp_path / MARKER).write_text("{}")
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "secret.parquet").write_text("not this")
    with serve_hub(hub) as url:
        place = {
            "HF_ENDPOINT": url,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_TOKEN": "x",
        }
        command = [sys.executable, "-c", ON_THE_HUB, str(tmp_path)]
        done = subprocess.run(
            command,
            env={**os.environ, **place},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.stdout.startswith("['MIT', 'ISC']\n1 problems pushed to "), done.stderr
    assert "1 left out: no licence is stated" in done.stderr
    (files,) = hub.committed
    assert set(files) == {
        "README.md",
        "croissant.json",
        "funnel.json",
        "manifest.json",
        "lineage-00000.parquet",
        "problems-00000.parquet",
        "rejected-00000.parquet",
    }
    rejected = pq.read_table(BytesIO(files["rejected-00000.parquet"])).to_pylist()
    assert rejected == [
        {"id": "x", "dataset": "set", "source_row": "", "stage": "filter", "reason": "contaminated"}
    ]
    assert pq.read_table(BytesIO(files["problems-00000.parquet"]))["id"].to_pylist() == ["set/MIT"]
    write_tables(tmp_path, kept[1:], [])
    with pytest.raises(DataError, match="no problem has a licence, so none may be passed on"):
        copy_published(tmp_path, tmp_path)


ROW = Candidate(
    id="set/1",
    dataset="set",
    title="Bread for the road",
    statement=STORY,
    date="2024-03-01",
    licence="MIT",
    tests=(TestCase(input="1 2\n", output="3\n"),),
)


def test_the_first_rule_that_fails_gives_the_reason() -> None:
    chosen = LicenceSettings(unknown="reject")
    index = build_index([ROW.model_copy(update={"id": "bench/1", "title": "Other"})])
    row = ROW.model_copy(update={"statement": "Add.", "licence": ""})
    for changed, reason in (
        ({}, "too_short"),
        ({"statement": STORY}, "licence_unknown"),
        ({"licence": "MIT"}, "contaminated"),
    ):
        row = row.model_copy(update=changed)
        done = filter_row(row, chosen, index)
        assert isinstance(done, Rejection)
        assert done.id == row.id
        assert done.stage == "filter"
        assert done.reason == reason
        assert done.candidate == row
    row = row.model_copy(update={"statement": STORY.replace("a", "o")})
    assert filter_row(row, chosen, index) == row


def deduplicate(rows: list[Candidate]) -> tuple[list[Candidate], list[Rejection]]:
    """Return what is kept and what is merged into it, each by id, as a build decides it."""
    barrier = DuplicateBarrier(Config())
    by_id = {row.id: row for row in sorted(rows, key=lambda row: row.id)}
    barrier.decide(barrier.look(rows))
    done = []
    for row in by_id.values():
        done.append(barrier.apply(row, {name: by_id[name] for name in barrier.needs(row.id)}))
    kept = []
    for one in done:
        if isinstance(one, Candidate):
            kept.append(one)
    rejected = []
    for one in done:
        if isinstance(one, Rejection):
            rejected.append(one)
    return kept, rejected


def test_a_rejection_names_the_problem_and_the_evidence() -> None:
    done = filter_row(
        ROW, index=build_index(ROW.model_copy(update={"id": f"bench/{n}"}) for n in range(5))
    )
    assert isinstance(done, Rejection)
    assert done.detail.count("bench/") == 3
    assert done.detail.startswith("bench/0 by words (")
    _, (gone,) = deduplicate(
        [ROW, ROW.model_copy(update={"id": "set/2", "tests": (*ROW.tests, *ROW.tests)})]
    )
    assert gone.reason == "duplicate_of"
    assert gone.detail.partition(" ")[2] == "by text"


ROWS = st.tuples(
    st.sampled_from([STORY, STORY.replace("baker", "miller"), STORY.replace("a", "o"), "Add."]),
    st.sampled_from(["", " 1 <= n <= 100", " 1 <= n <= 200"]),
    st.sampled_from(
        [
            "",
            "https://codeforces.com/contest/1/problem/A",
            "https://codeforces.com/contest/1/problem/B",
        ]
    ),
    st.lists(st.sampled_from("123"), max_size=3, unique=True),
    st.sampled_from("00001"),
    st.sampled_from([None, None, "f"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=7), st.randoms(use_true_random=False))
def test_rows_in_are_rows_out_in_any_order(
    drawn: list[tuple[str, str, str, list[str], str, str | None]], chance: random.Random
) -> None:
    rows = []
    for n, (text, bound, url, inputs, output, fn_name) in enumerate(drawn):
        fields = {
            "url": url,
            "tests": [{"input": one, "output": output} for one in inputs],
            "fn_name": fn_name,
        }
        rows.append(
            Candidate.model_validate(
                {"id": f"set/{n}", "dataset": "set", "statement": text + bound, **fields}
            )
        )
    kept, gone = deduplicate(rows)
    assert sorted([*(one.id for one in kept), *(one.id for one in gone)]) == sorted(
        one.id for one in rows
    )
    merged_ids = []
    for one in kept:
        merged_ids.extend(one.merged)
    assert sorted(merged_ids) == [one.id for one in gone]
    assert deduplicate(chance.sample(rows, len(rows))) == (kept, gone)
    by_id = {row.id: row for row in rows}
    for one in kept:
        alike = []
        for name in one.merged:
            if by_id[name].fn_name == one.fn_name:
                alike.append(by_id[name])
        inputs = [test.input for test in one.tests]
        assert one.tests[: len(by_id[one.id].tests)] == by_id[one.id].tests
        assert len(inputs) == len(set(inputs))
        all_inputs = set()
        for row in (by_id[one.id], *alike):
            for test in row.tests:
                all_inputs.add(test.input)
        assert set(inputs) == all_inputs
