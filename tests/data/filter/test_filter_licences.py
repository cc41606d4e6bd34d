from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hub_server import Hub, serve_hub
from hypothesis import given
from hypothesis import strategies as st

from microcoder.data.filter import describe, find_duplicates, merge
from microcoder.data.filter.rules import (
    PERMISSIVE,
    SHARE_ALIKE,
    LicenceSettings,
    check_licence,
    normalise_licence,
    strictest_licence,
)
from microcoder.data.formats.candidates import Candidate
from microcoder.data.release.tables import copy_published, write_card, write_croissant, write_tables
from microcoder.data.sources import MARKER, collect_shard, list_shards, open_source
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import TestCase


def row(licence: str) -> Candidate:
    return Candidate(id="set/1", dataset="set", licence=licence)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("MIT", "MIT"), ("MIT License", "MIT"), ("The MIT licence", "MIT"), ("apache-2.0", "Apache-2.0"),
        ("Apache License 2.0", "Apache-2.0"), ("cc by-sa", "CC-BY-SA"), ("CC BY-SA 4.0", "CC-BY-SA"),
        ("cc-by-sa-3.0", "CC-BY-SA"), ("CC-BY-4.0", "CC-BY"), ("Creative Commons Attribution-ShareAlike", "CC-BY-SA"),
        ("Creative Commons Attribution 4.0 International", "CC-BY"), ("CC BY-NC-SA 4.0", "CC-BY-NC-SA"),
        ("cc-by-nc-4.0", "CC-BY-NC"), ("CC BY-ND", "CC-BY-ND"), ("cc0-1.0", "CC0-1.0"), ("CC0", "CC0-1.0"),
        ("public domain", "CC0-1.0"), ("odc-by", "ODC-BY"), ("GPL-3.0", "GPL"), ("AGPL-3.0", "GPL"),
        ("LGPL-2.1", "LGPL"),
        ("BSD 3-Clause", "BSD-3-Clause"), ("bsd-2-clause", "BSD-2-Clause"), ("", ""), ("  ", ""),
        ("CC-BY-4.0-NC", "CC-BY-NC"), ("CC BY 4.0, non-commercial use only", "CC-BY-NC"),
        ("creative commons - attribution - non commercial", "CC-BY-NC"), ("CC BY\u2011NC 4.0", "CC-BY-NC"),
        ("CC BY 4.0; commercial use is not allowed", "CC-BY-NC"), ("CC BY 4.0 (no derivatives)", "CC-BY-ND"),
        ("MIT (non-commercial)", "MIT (non-commercial)"), ("Apache-2.0, research only", "Apache-2.0, research only"),
        ("public domain, not for commercial use", "public domain, not for commercial use"),
        ("educational use only", "educational use only"), ("permission of the author", "permission of the author"),
    ],
)  # fmt: skip
def test_one_name_for_the_ways_of_writing(written: str, name: str) -> None:
    assert normalise_licence(written) == name


@pytest.mark.parametrize("name", [*PERMISSIVE, *SHARE_ALIKE])
def test_every_name_on_the_list_is_its_own(name: str) -> None:
    assert normalise_licence(name) == name
    assert check_licence(row(name)) is None


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_licence(text)
    assert normalise_licence(once) == once


@pytest.mark.parametrize("licence", ["CC BY-NC 4.0", "CC-BY-ND", "all rights reserved"])
def test_what_is_not_on_the_list_is_refused(licence: str) -> None:
    assert check_licence(row(licence)) == ("licence_refused", normalise_licence(licence))


def test_what_says_nothing_passes_unless_the_config_says_otherwise() -> None:
    assert check_licence(row("")) is None
    strict = LicenceSettings(unknown="reject")
    assert check_licence(row(""), strict) == ("licence_unknown", "the source says nothing")


@pytest.mark.parametrize(
    ("parts", "strictest"),
    [
        (["MIT"], "MIT"), (["MIT", "cc by-sa"], "cc by-sa"), (["CC-BY-4.0", "Apache-2.0", "CC0-1.0"], "CC-BY-4.0"),
        (["GPL-3.0", "CC BY-SA 4.0"], "GPL-3.0"), (["CC BY-NC 4.0", "GPL-3.0"], "CC BY-NC 4.0"), (["MIT", ""], ""),
        (["all rights reserved", "", "MIT"], ""),
    ],
)  # fmt: skip
def test_the_strictest_licence_is_that_of_the_whole(parts: list[str], strictest: str) -> None:
    assert strictest_licence(parts) == strictest_licence(parts[::-1]) == strictest


def problem(number: int, *, url: int | None = None, **fields: object) -> dict[str, object]:
    words = "".join(f"w{number}x{place} " for place in range(30))
    tests = {"inputs": [f"{number}\n"], "outputs": ["1\n"]}
    place = f"https://codeforces.com/problemset/problem/{number if url is None else url}/A"
    return {"question": f"Print {words}", "input_output": tests, "url": place, **fields}


def package(folder: Path, number: int, settings: str) -> None:
    files = {
        "problem.yaml": f"source_url: https://codeforces.com/problemset/problem/{number}/A\n{settings}",
        "problem_statement/problem.md": str(problem(number + 100)["question"]),
        "data/secret/1.in": f"{number} 1\n",
        "data/secret/1.ans": "1\n",
    }
    for name, text in files.items():
        path = folder / str(number) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_twenty_mixed_rows_have_the_licence_that_somebody_stated(tmp_path: Path) -> None:
    """Their own, the recipe's, or none, whatever the format; copies of one problem the strictest of the parts."""
    nothing = [problem(1), problem(2), problem(3, license=""), problem(4, license=None)]
    own = [problem(5, license="MIT"), problem(6, licence="CC BY-SA 4.0"), problem(7, license="CC BY-NC 4.0"),
           problem(8, license="all rights reserved")]  # fmt: skip
    merged = [problem(9, url=20, license="MIT"), problem(10, url=21, license="CC0-1.0"), problem(11, url=1)]
    stated = [problem(12), problem(13, license="GPL-3.0"), problem(14, url=5), problem(15, url=2)]
    for name, rows in (("plain", [*nothing, *own, *merged]), ("stated", stated)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    for number, settings in ((20, "license: cc by-sa\n"), (21, "license: unknown\n"), (22, "license: cc0\n")):
        package(tmp_path / "packages", number, settings)
    package(tmp_path / "archive", 23, "license: permission\n")
    package(tmp_path / "archive", 24, "name: Last\n")
    sources = [
        open_source(tmp_path / "plain.jsonl", "apps"),
        open_source(tmp_path / "stated.jsonl", "taco", licence="Apache-2.0"),
        open_source(tmp_path / "packages", "kattis"),
        open_source(tmp_path / "archive", "kattis", name="archive", licence="CC-BY-4.0"),
    ]
    rows = [row for source in sources for shard in list_shards(source, 64) for row in collect_shard(source, shard)]
    found = {row.id: row for row in rows if isinstance(row, Candidate)}
    assert len(found) == 20
    refused = {name for name, one in found.items() if check_licence(one)}
    assert refused == {"apps/plain.jsonl:7", "apps/plain.jsonl:8", "archive/23"}
    kept = {name: one for name, one in found.items() if name not in refused}
    groups = find_duplicates(describe(list(kept.values())))
    done = {**kept, **{one.kept: merge(kept[one.kept], [kept[name] for name in one.dropped]) for one in groups}}
    for name in (name for one in groups for name in one.dropped):
        del done[name]
    assert {name: one.licence for name, one in done.items()} == {
        "apps/plain.jsonl:3": "", "apps/plain.jsonl:4": "", "apps/plain.jsonl:6": "CC BY-SA 4.0",
        # An own licence and the recipe's; one of a package; one that is not stated; two that are not.
        "taco/stated.jsonl:3": "Apache-2.0", "kattis/20": "cc by-sa", "apps/plain.jsonl:10": "",
        "apps/plain.jsonl:11": "", "taco/stated.jsonl:4": "",
        "taco/stated.jsonl:1": "Apache-2.0", "taco/stated.jsonl:2": "GPL-3.0", "kattis/22": "cc0",
        "archive/24": "CC-BY-4.0",
    }  # fmt: skip
    origins = {one.source: one.licence for one in done["kattis/20"].origins}
    assert origins == {"apps/plain.jsonl:9": "MIT", "kattis/20": "cc by-sa"}
    tables, published = tmp_path / "corpus", tmp_path / "published"
    published.mkdir()
    tally = write_tables(tables, done.values(), [found[name].reject("filter", "licence_refused") for name in refused])
    sources_named = [{"name": "apps", "url": "a.jsonl", "version": "0" * 40, "sha256": "1" * 64, "license": ""}]
    write_card(tables, name="x", tally=tally, step_counts=[], figures={}, config={}, sources=sources_named)
    write_croissant(tables, name="x", licence="other", sources=sources_named)
    (tables / MARKER).write_text("{}")
    assert copy_published(tables, published) == (7, 5)
    whole = b"".join(path.read_bytes() for path in published.rglob("*") if path.is_file())
    content = (
        b"".join(pq.read_table(path).to_pandas().to_csv().encode() for path in published.glob("*.parquet")) + whole
    )
    assert b"w12x7" in content
    assert not [number for number in (1, 2, 3, 4, 7, 8, 10, 11, 123) if f"w{number}x".encode() in content]
    record = json.loads((published / "croissant.json").read_text())
    assert record["isBasedOn"] == [{"@type": "sc:Dataset", **sources_named[0]}]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in published.glob("*.parquet")}
    assert {one["name"]: one["sha256"] for one in record["distribution"]} == digests
    assert f"| {'0' * 40} | `{'1' * 64}` |" in (published / "README.md").read_text()


ON_THE_HUB = """
from pathlib import Path
import sys
from microcoder.cli import main
from microcoder.data.sources import collect_shard, list_shards, open_source
source = open_source("hf://datasets/codeparrot/apps/default/train", "apps")
print([row.licence for shard in list_shards(source, 9) for row in collect_shard(source, shard)])
main(["data", "push", sys.argv[1], "--repo", "me/mine"])
"""


def test_a_known_data_set_has_its_licence_and_what_is_refused_is_not_pushed(tmp_path: Path) -> None:
    rows = [problem(1), problem(2, license="ISC")]
    hub = Hub(files={"data/train.jsonl": "".join(json.dumps(one) + "\n" for one in rows).encode()})
    kept = [Candidate(id=f"set/{licence}", dataset="set", statement="Add.", licence=licence,
                      tests=(TestCase(input="1", output="1"),)) for licence in ("MIT", "")]  # fmt: skip
    tally = write_tables(
        tmp_path, kept, [kept[0].model_copy(update={"id": "x"}).reject("filter", "contaminated", "it")]
    )
    write_card(tmp_path, name="x", tally=tally, step_counts=[], figures={}, config={})
    write_croissant(tmp_path, name="x", licence="other", sources=[])
    (tmp_path / MARKER).write_text("{}")
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "secret.parquet").write_text("not this")
    with serve_hub(hub) as url:
        place = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "x"}
        command = [sys.executable, "-c", ON_THE_HUB, str(tmp_path)]
        done = subprocess.run(command, env={**os.environ, **place}, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("['MIT', 'ISC']\n1 problems pushed to "), done.stderr
    assert "1 left out: no licence is stated" in done.stderr
    ((_, files),) = hub.committed
    assert set(files) == {"README.md", "croissant.json", "funnel.json", "manifest.json", "lineage-00000.parquet",
                          "problems-00000.parquet", "rejected-00000.parquet"}  # fmt: skip
    rejected = pq.read_table(BytesIO(files["rejected-00000.parquet"])).to_pylist()
    assert rejected == [{"id": "x", "dataset": "set", "source_row": "", "stage": "filter", "reason": "contaminated"}]
    assert pq.read_table(BytesIO(files["problems-00000.parquet"]))["id"].to_pylist() == ["set/MIT"]


def test_without_any_licence_nothing_is_pushed(tmp_path: Path) -> None:
    write_tables(
        tmp_path, [Candidate(id="a", dataset="a", statement="Add.", tests=(TestCase(input="1", output="1"),))], []
    )
    with pytest.raises(DataError, match="no problem has a licence, so none may be passed on"):
        copy_published(tmp_path, tmp_path)
