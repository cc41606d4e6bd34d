"""The local server: what it answers, and to whom it does not; searches in texts;
the folder that needs no server.
"""

import base64
import hashlib
import http.client
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.view import ViewerServer, bundle, open_collection, write_bundle, write_report
from microcoder.view.index import IndexPart, Needle, find_texts
from tests.view.parts.viewer_runs import (
    HOSTILE,
    edit_rollouts,
    make_hostile,
    piece,
    records_of,
    serving,
    write_training,
)


@pytest.fixture(scope="module")
def server(shelf: Path) -> Iterator[ViewerServer]:
    with serving(open_collection([shelf / "one", shelf / "eval"])) as server:
        yield server


def ask(
    server: ViewerServer,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    **headers: str,
) -> tuple[int, Any, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request(
        method,
        path,
        body,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    kind = answer.headers.get_content_type()
    return (
        answer.status,
        json.loads(text) if kind == "application/json" and text else text,
        str(answer.headers),
    )


def test_the_page_and_its_files_are_served_with_a_policy(server: ViewerServer) -> None:
    status, body, headers = ask(server, "/")
    assert status == 200
    assert "MicroCoder viewer" in body
    assert "default-src 'none'" in headers
    assert "nosniff" in headers
    assert ask(server, "/main.js")[0] == ask(server, "/page.css")[0] == 200


def test_libraries_are_as_published_and_their_licences_go_with_every_page(
    server: ViewerServer, tmp_path: Path
) -> None:
    status, told, _ = ask(server, "/vendor/LICENSES.txt")
    assert status == 200
    folder = write_bundle(server.collection, tmp_path / "out").page.parent / "vendor"
    assert (folder / "LICENSES.txt").read_text() == told
    rows = [line.split("  ") for line in told.split("=====")[0].splitlines() if "  " in line]
    digests = {row[0]: row[3] for row in rows}
    for path in folder.iterdir():
        if path.suffix != ".txt":
            assert digests.pop(path.name) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert digests == {}
    for row in rows:
        assert f"===== {row[1]} =====" in told


def test_no_script_of_the_page_makes_markup_of_text() -> None:
    for name, body in bundle.read_static().items():
        if name.endswith(".js") and "/" not in name:
            assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write", body)


def test_texts_are_found_and_what_matches_is_told(server: ViewerServer) -> None:
    status, found, _ = ask(server, "/api/search?run=one&text=both%3E%20numbers")
    bits = np.unpackbits(
        np.frombuffer(base64.b64decode(found["bits"]), np.uint8), bitorder="little"
    )
    assert status == 200
    assert found["num"] == 264
    assert bits.sum() == 264
    _, none, _ = ask(server, "/api/search?run=one&text=nowhere")
    assert not any(base64.b64decode(none["bits"]))
    _, shown, _ = ask(server, "/api/rollout?run=one&id=train/1/0&text=n%5Bmu%5D&regex=yes")
    assert shown["matches"] == ["nu"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/index?run=nobody",
        "/api/search?run=one&text=(&regex=yes",
        "/api/search?run=one&text=x&field=nothing",
        "/api/search?run=one&text=" + "x" * 600,
        "/api/test?run=one&problem=train/001&test=-1",
        "/api/rollout?run=one&id=train/1/999",
        "/api/rollout?run=one&id=../../x",
        "/api/runs?" + "&".join(f"a{n}=1" for n in range(100)),
    ],
)
def test_a_question_that_makes_no_sense_is_told_in_a_sentence(
    server: ViewerServer, path: str
) -> None:
    status, answer, _ = ask(server, path)
    assert status == 400
    assert answer["error"]


def test_no_other_path_is_there_and_no_other_host_site_or_method_is_answered(
    server: ViewerServer,
) -> None:
    for path in (
        "/../pyproject.toml",
        "/%2e%2e/x",
        "/etc/passwd",
        "/api",
        "/api/",
        "/static/main.js",
    ):
        assert ask(server, path)[0] == 404, path
    for host in ("evil.example", "evil.example:80", "", "127.0.0.1.evil.example"):
        assert ask(server, "/api/runs", Host=host)[0] == 421, host
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
        assert ask(server, "/api/runs", Sec_Fetch_Site=site)[0] == status, site
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert ask(server, "/api/runs", method)[0] == 501, method
    assert ask(server, "/api/runs", "POST")[0] == 405
    with pytest.raises(ConfigError, match="choose another with --port"):
        ViewerServer(open_collection([]), port=server.server_address[1])


def send_note(
    server: ViewerServer, note: dict[str, Any] | bytes, **changes: str | None
) -> tuple[int, Any]:
    """Send a note as the page does, but for some headers; None leaves one out."""
    headers: dict[str, str | None] = {
        "Origin": server.url.rstrip("/"),
        "Sec_Fetch_Site": "same-origin",
        "Content_Type": "application/json",
    }
    sent = {name: value for name, value in (headers | changes).items() if value is not None}
    body = note if isinstance(note, bytes) else json.dumps(note).encode()
    status, told, _ = ask(server, "/api/note", "POST", body, **sent)
    return status, told


def test_notes_are_kept_in_the_runs_folder_and_travel_with_it(tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    collection = open_collection([run])
    note = {"run": "demo", "id": "train/1/0", "text": "Why? <b>\n\u202e"}
    with serving(collection) as server:
        pulse = ask(server, "/api/pulse")[1]
        status, told = send_note(server, note)
        assert status == 200
        assert told["notes"]["train/1/0"]["text"] == note["text"]
        assert ask(server, "/api/pulse")[1] != pulse
        send_note(server, note | {"id": "train/1/1"})
        send_note(server, note | {"id": "train/1/1", "text": ""})
        (shown,) = ask(server, "/api/runs")[1]
    assert list(shown["notes"]) == ["train/1/0"]
    assert len((run / "notes.jsonl").read_text().splitlines()) == 3
    (bundled,) = piece(write_bundle(open_collection([run]), tmp_path / "out").page.parent, "runs")
    assert bundled["notes"] == shown["notes"]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": None}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "none"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": "999999"}, 413),
    ],
)
def test_no_other_page_and_no_form_writes_a_note(
    tmp_path: Path, changes: dict[str, str | None], status: int
) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    with serving(open_collection([run])) as server:
        note = {"run": "demo", "id": "train/1/0", "text": "x"}
        assert send_note(server, note, **changes)[0] == status
    assert not (run / "notes.jsonl").exists()


def test_a_note_that_cannot_be_kept_is_refused_in_a_sentence(shelf: Path, tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    note = {"run": "demo", "id": "train/1/0", "text": "x"}
    (tmp_path / "elsewhere").write_text("mine")
    with serving(open_collection([run, shelf / "judged.jsonl"])) as server:
        for wrong in (
            note | {"id": "train/1/999"},
            note | {"run": "nobody"},
            note | {"run": "judged", "id": "judged/0/0"},
            note | {"text": "x" * 10_001},
            note | {"text": 1},
            b"[]",
            b"{",
        ):
            status, told = send_note(server, wrong)
            assert status == 400, wrong
            assert told["error"]
        assert not (run / "notes.jsonl").exists()
        (run / "notes.jsonl").symlink_to(tmp_path / "elsewhere")
        status, told = send_note(server, note)
    assert status == 400
    assert "is a link" in told["error"]
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_hostile_text_travels_as_a_json_string(tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    edit_rollouts(run, 1, make_hostile)
    with serving(open_collection([run])) as server:
        status, answer, headers = ask(server, "/api/rollout?run=demo&id=train/1/0")
    assert status == 200
    assert answer["completion"] == HOSTILE
    assert answer["problem_id"] == HOSTILE
    assert "Content-Type: application/json" in headers


TEXTS: list[dict[str, str | None]] = [
    {
        "prompt": "Add two Numbers",
        "response": ("def f(self):\n    return 1"),
        "program": None,
        "errors": "",
    },
    {
        "prompt": "Add two Numbers",
        "response": "naïve café 🙂 (a+b)",
        "program": "x = 1",
        "errors": "expected '3'",
    },
    {"prompt": "other", "response": None, "program": "", "errors": "expected 3"},
]


def part(rows: list[dict[str, str | None]]) -> IndexPart:
    texts = {}
    for name in rows[0]:
        texts[name] = pa.array([row[name] for row in rows], pa.string())
    texts["prompt"] = texts["prompt"].dictionary_encode()
    return IndexPart(len(rows), lambda: texts)


@pytest.mark.parametrize(
    ("needle", "found"),
    [
        (Needle("add two"), [0, 1]),
        (Needle("ADD"), [0, 1]),
        (Needle("numbers", field="response"), []),
        (Needle("(a+b)"), [1]),
        (Needle("café"), [1]),
        (Needle(r"expected '?3", is_regex=True), [1, 2]),
        (Needle(r"expected '?3", is_regex=True, field="errors"), [1, 2]),
        (Needle(r"def \w+\(self\):\s+return", is_regex=True), [0]),
        (Needle(r"^x = \d$", is_regex=True, field="program"), [1]),
        (Needle(r"(?-i)\SDD", is_regex=True), []),
    ],
)
def test_a_needle_is_found_where_it_stands(needle: Needle, found: list[int]) -> None:
    mask = find_texts([part(TEXTS[:2]), part(TEXTS[2:])], needle)
    assert list(np.flatnonzero(mask)) == found


def test_a_run_that_changes_under_a_search_is_an_error() -> None:
    with pytest.raises(DataError, match="changed while it was searched"):
        find_texts([IndexPart(2, lambda: {"response": pa.array(["x"])})], Needle("x"))


def test_errors_and_programs_of_a_run_are_searched(shelf: Path) -> None:
    collection = open_collection([shelf / "one", shelf / "eval"])
    records = records_of(collection, "one")
    for text, verdicts in (
        ("got '<2>'", {"wrong_answer", "runtime_error"}),
        ("map(int, input()", {"accepted"}),
    ):
        mask = find_texts(collection["one"].parts(collection["one"].index()), Needle(text))
        assert {
            record["verdict"] for record, hit in zip(records, mask, strict=True) if hit
        } == verdicts
    mask = find_texts(
        collection["eval"].parts(collection["eval"].index()), Needle("got 1", field="errors")
    )
    assert list(mask) == [False, True, False, True]


def test_a_bundle_is_replaced_but_nothing_else_is(shelf: Path, tmp_path: Path) -> None:
    collection = open_collection([shelf / "eval"])
    write_bundle(collection, tmp_path / "out")
    write_bundle(collection, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    for place in ("mine", "mine/thesis.tex"):
        with pytest.raises(DataError, match="is not a bundle"):
            write_bundle(collection, tmp_path / place)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def files_of(folder: Path) -> dict[str, bytes]:
    files = {}
    for path in folder.rglob("*"):
        if path.is_file():
            files[str(path.relative_to(folder))] = path.read_bytes()
    return files


def test_a_report_is_a_bundle_and_is_the_same_wherever_the_run_lies(tmp_path: Path) -> None:
    run = write_training(tmp_path / "one", num_steps=4)
    other = write_training(tmp_path / "two", num_steps=4, seed=1, manifest={"name": "other"})
    (run / "report").mkdir()
    (run / "report" / "accuracy.svg").write_text("of an earlier version")
    page = write_report(run, against=[other])
    assert page == run / "report" / "index.html"
    told = piece(page.parent, "demo/overview")
    assert [row[0] for row in told["tables"][0]["rows"]] == ["demo", "other"]
    assert [(one["key"], one["has_tests"]) for one in piece(page.parent, "runs")] == [
        ("demo", False),
        ("other", False),
    ]
    facts = dict(piece(page.parent, "runs")[0]["facts"])
    for name in (
        "config.masking.probability",
        "isolation.level",
        "packages.torch",
        "machine.cpu",
        "seed",
        "digest",
    ):
        assert name in facts
    copied = Path(shutil.copytree(run, tmp_path / "elsewhere" / "one"))
    assert files_of(write_report(copied, against=[other]).parent) == files_of(page.parent)


def test_a_large_report_leaves_the_texts_of_its_rollouts_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_training(tmp_path / "run", num_steps=8)
    monkeypatch.setattr(bundle, "_MOST_IN_REPORT", 0)
    folder = write_report(run).parent
    assert not list((folder / "data/demo").glob("rows-*.js"))
    assert (folder / "data/demo/index.js").exists()


def test_what_is_no_training_run_has_no_report(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is an evaluation, not a training run"):
        write_report(shelf / "eval")
    run = write_training(tmp_path / "run", num_steps=1, manifest={"problems": {"digest": "aa"}})
    with pytest.raises(DataError, match="asked other problems"):
        write_report(run, against=[shelf / "one"])
    (tmp_path / "manifest.json").write_text('{"icons": []}')
    with pytest.raises(DataError, match="is no run: its manifest"):
        write_report(tmp_path)
    assert not (run / "report").exists()
