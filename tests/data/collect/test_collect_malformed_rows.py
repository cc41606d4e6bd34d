"""Damaged rows: each is turned away with its reason and as it was found, none is lost,
and nothing of it is run.
"""

import base64
import copy
import json
import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.row import REASONS
from microcoder.data.formats.rows import FORMATS, load_format
from microcoder.data.rowfiles import RawRow
from microcoder.data.sources import Source, collect_row
from tests.data.golden_rows import EXAMPLES, GOLDEN, IN_FILES, collect, rows_of, write_row

HUGE = b"9" * 200_000

Damage = Callable[[bytes], bytes]


def after_first_colon(line: bytes, put: bytes) -> bytes:
    """Put bytes inside the first value that is a text."""
    at = line.index(b': "') + 3
    return line[:at] + put + line[at:]


DAMAGES: dict[str, tuple[Damage, str]] = {
    "truncated": (lambda line: line[: len(line) // 2], "not_json"),
    "two rows on one line": (lambda line: line + b" " + line, "not_json"),
    "invalid UTF-8": (lambda line: after_first_colon(line, b"\xff\xfe"), "not_utf8"),
    "half a character": (lambda line: line[:-2] + "å".encode()[:1], "not_utf8"),
    "null bytes in a text": (lambda line: after_first_colon(line, b"\0\0"), "not_json"),
    "nested without end": (
        lambda line: line[:-1] + b', "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "not_json",
    ),
    "a list": (lambda line: b"[" + line + b"]", "not_an_object"),
    "an empty object": (lambda line: b"{}", "missing_field"),
}

# What a row of each format must have: the field of its question, and the field around its tests.
MUST_HAVE = {
    "microcoder": ("statement", "tests"),
    "intellect": ("question", "info.tests"),
    "nemogym": ("responses_create_params.input", "verifier_metadata.unit_tests"),
    "dolci": ("prompt", "ground_truth"),
    "apps": ("question", "input_output"),
    "taco": ("question", "input_output"),
    "codecontests": ("description", "private_tests"),
    "livecodebench": ("question_content", "private_test_cases"),
    "deepcoder": ("problem", "tests"),
    "synthetic": ("prompt", "verification_info"),
    "openr1_codeforces": ("description", "official_tests"),
    "kodcode": ("question", "test"),
    "rstar": ("question", "inputs"),
    "hardtests": ("statement", "test_cases"),
    "leetcodedataset": ("problem_description", "test"),
    "deepseek_leetcode": ("prompt", "test"),
    "humaneval": ("prompt", "test"),
    "mbpp": ("text", "test_list"),
    "odex": ("intent", "test"),
    "verl": ("prompt", "reward_model.ground_truth"),
    "trl": ("prompt", "tests"),
}
IN_PYTHON = ("kodcode", "leetcodedataset", "deepseek_leetcode", "humaneval", "mbpp", "odex")


class Bomb:
    """Pickled, it is a program that makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


def put(row: dict[str, Any], place: str, value: object) -> None:
    """Set a field, `a.b` one inside an object."""
    *path, field = place.split(".")
    for outer in path:
        row = row[outer]
    row[field] = value


def bytes_of(raw: str) -> bytes:
    if raw.startswith("base64:"):
        return base64.b64decode(raw.removeprefix("base64:"))
    return raw.encode()


def read_one(name: str, values: dict[str, Any]) -> Candidate | Rejection:
    """Read a row as from a file; whatever it is,
    it is a candidate or a rejection that says all that it must.
    """
    row = RawRow("rows.jsonl:1", values, json.dumps(values).encode())
    found = collect_row(Source(Path(), FORMATS[name], name), row)
    if isinstance(found, Rejection):
        refused(found, *REASONS)
        assert found.raw == json.dumps(values)
    assert json.loads(found.model_dump_json())["id"] == found.id
    return found


def refused(found: Candidate | Rejection, *reasons: str) -> Rejection:
    assert isinstance(found, Rejection), "a damaged row was taken"
    assert found.reason in REASONS.keys() & set(reasons), f"{found.reason}: {found.detail}"
    assert found.reason != "adapter_fault", found.detail
    assert found.stage == "collect"
    assert 0 < len(found.detail) <= 300
    return found


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_turned_away_and_its_neighbours_are_not(
    tmp_path: Path, damage: str
) -> None:
    spoil, reason = DAMAGES[damage]
    # A line is read before its format has a word.
    good = (GOLDEN / "livecodebench.jsonl").read_bytes().split(b"\n")[0]
    bad = spoil(good)
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join([good, bad, good, bad]))
    found = collect(tmp_path, "livecodebench", 3)
    assert [type(row) for row in found] == [Candidate, Rejection, Candidate, Rejection]
    for row in found[1::2]:
        assert bytes_of(refused(row, reason).raw).rstrip(b"\n") == bad


@pytest.mark.parametrize("name", IN_FILES)
def test_a_question_or_tests_that_are_none_are_turned_away(name: str) -> None:
    question, tests = MUST_HAVE[name]
    for value in (None, " \n", 7, True, {"a": 1}, [7], "half \ud800"):
        row = rows_of(name)[0]
        put(row, question, value)
        if name == "leetcodedataset" and value is None:
            row["query"] = None
        refused(read_one(name, row), "missing_field", "no_statement", "wrong_type", "bad_unicode")
    row = rows_of(name)[0]
    for value in (
        7,
        {"a": 1},
        [[1], 2],
        [{"input": "1"}],
        "{'inputs': [1",
        "000",
        '{"inputs": ["1"], "outputs": []}',
    ):
        put(row, tests, value)
        refused(
            read_one(name, row),
            "wrong_type",
            "bad_encoding",
            "bad_tests",
            "tests_not_convertible",
        )
    if name in IN_PYTHON:
        # Where only the tests cannot be read, the problem is kept with the rejection.
        call = "assert open('x')"
        put(row, tests, [call] if isinstance(rows_of(name)[0][tests], list) else call)
        found = refused(read_one(name, row), "tests_not_convertible")
        assert found.candidate is not None
        assert found.candidate.statement


def spoil_fields(row: Any, wrong: list[Any]) -> Iterator[Any]:
    """Yield the row with one field, at any depth, changed for each wrong value, or gone."""
    for name in (
        list(row) if isinstance(row, dict) else range(len(row)) if isinstance(row, list) else ()
    ):
        for value in wrong:
            changed = copy.copy(row)
            changed[name] = value
            yield changed
        less = copy.copy(row)
        del less[name]
        yield less
        for inner in spoil_fields(row[name], wrong):
            changed = copy.copy(row)
            changed[name] = inner
            yield changed


@pytest.mark.parametrize("name", FORMATS)
def test_no_field_of_a_wrong_type_brings_an_adapter_down_and_nothing_in_one_is_run(
    tmp_path: Path, name: str
) -> None:
    """Also programs in every language that a reader could be fooled to run."""
    trap = tmp_path / "sprung"
    code = f"__import__('os').mkdir({str(trap)!r})"
    wrong = [
        *(None, True, -1, 1e308, float("nan"), 10**4299),
        *("", "[", "{}", "\0", "1" * 5000, "'" * 3, "a: [", "\ud800", "---\n&a [*a]\n---\n"),
        *(
            "{1: 2}",
            "{None: [1]}",
            "b'x'",
            "(1, 2)",
            "1j",
            "{1, 2}",
            "{'inputs': (1,), 'outputs': {2}}",
        ),
        '["\\ud800"]',
        *(
            [],
            [[]],
            [None],
            {},
            {"": None},
            {"input": 1, "output": []},
            ["assert f(" + "9" * 5000 + ") == 1"],
        ),
        *(
            code,
            f"assert {code} == 1",
            f"{{'inputs': [{code}], 'outputs': ['1']}}",
            f"```python\n{code}\n```",
        ),
        f"name: !!python/object/apply:os.mkdir [{str(trap)!r}]",
        f"def check(candidate):\n    assert candidate({code}) == f'{{{code}}}'\n",
        *(pack(pickle.dumps(Bomb(trap))), pickle.dumps(Bomb(trap), 0).decode("ascii")),
    ]
    results = [read_one(name, row) for row in spoil_fields(rows_of(name)[0], wrong)]
    assert any(isinstance(found, Rejection) for found in results)
    assert not trap.exists()


def pack(body: bytes) -> str:
    return base64.b64encode(zlib.compress(body)).decode()


ONCE: list[Any] = [{"input": "1", "output": "2"}]
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
BAD_PAYLOADS = {
    "no base64": "not base64!",
    "no padding": pack(pickle.dumps("[]"))[:-1],
    "no zlib": base64.b64encode(b"plain").decode(),
    "zlib cut off": base64.b64encode(zlib.compress(pickle.dumps("[]"))[:-3]).decode(),
    "no pickle": pack(b"plain"),
    "pickle cut off": pack(pickle.dumps("[]")[:-1]),
    "empty": pack(b""),
    "a list twice": pack(pickle.dumps([ONCE, ONCE])),
    "a list in itself": pack(pickle.dumps(ENDLESS)),
    "a text a million times": pack(pickle.dumps(["x" * 100_000] * 20_000)),
    "bytes": pack(pickle.dumps([b"1"], 3)),
    "two texts": pack(b"\x80\x04\x8c\x01a\x8c\x01b."),
    "no JSON": pack(pickle.dumps("not JSON")),
    "no list": pack(pickle.dumps('{"a": 1}')),
    "nested": pack(pickle.dumps("[" * 100_000)),
    "a memo of 64 GiB": pack(b"\x80\x04\x8c\x02[]r\xff\xff\xff\xff\x85."),
    "a text of 2 EiB": pack(b"\x80\x04\x8d" + (1 << 61).to_bytes(8, "little") + b"x."),
}


@pytest.mark.parametrize("payload", BAD_PAYLOADS)
def test_hidden_tests_that_are_not_what_they_should_be_are_turned_away(payload: str) -> None:
    row = rows_of("livecodebench")[0] | {"private_test_cases": BAD_PAYLOADS[payload]}
    # What is read, but holds no tests, was encoded well.
    refused(read_one("livecodebench", row), "bad_tests" if payload == "no list" else "bad_encoding")


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickled_program_is_turned_away_and_not_run(tmp_path: Path, protocol: int) -> None:
    trap = tmp_path / "sprung"
    bomb = pickle.dumps(Bomb(trap), protocol)
    for field in ("private_test_cases", "public_test_cases"):
        refused(
            read_one("livecodebench", rows_of("livecodebench")[0] | {field: pack(bomb)}),
            "bad_encoding",
        )
    assert not trap.exists()
    pickle.loads(bomb)
    assert trap.exists(), "the trap would have worked"


PACKAGE = {
    "problem.yaml": b"name: Sum",
    "statement/problem.en.md": b"Add.",
    "data/1.in": b"1",
    "data/1.ans": b"1",
}
BAD_FILES = [
    ("problem.yaml", b"a: [", "bad_encoding"),
    ("problem.yaml", b"- 1", "wrong_type"),
    ("problem.yaml", b"a: &a [1]\nb: *a", "bad_encoding"),
    ("data/1.in", b"\xff", "not_utf8"),
    ("problem.yaml", b"!!python/object/apply:os.mkdir [sprung]", "bad_encoding"),
    ("problem.yaml", b"validator_flags: float_tolerance much", "bad_checker"),
    ("problem.yaml", b"limits: {memory: " + HUGE + b"}", "bad_encoding"),
    ("statement/problem.en.md", b"\xff", "not_utf8"),
    ("data/1.ans", b"\0\xff", "not_utf8"),
    ("statement/problem.en.md", b"\n", "no_statement"),
]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    BAD_FILES,
    ids=lambda value: str(value)[:30],
)
def test_a_folder_with_a_damaged_file_is_turned_away_whole(
    tmp_path: Path,
    file: str,
    content: bytes,
    reason: str,
) -> None:
    write_row(tmp_path, {"name": "good", "files": PACKAGE})
    write_row(tmp_path, {"name": "bad", "files": {**PACKAGE, file: content}})
    bad, good = collect(tmp_path, "kattis")
    assert isinstance(good, Candidate)
    assert bytes_of(json.loads(refused(bad, reason).raw)["files"][file]) == content


LONG = 100_000
HEAD = b"<!-- description:start -->"
FOOT = b"<!-- description:end -->"
SOLUTION = b"class Solution:\n    def f(self, a):\n        return a\n"


@pytest.mark.parametrize(
    "text",
    [
        b"Input: a\n" * LONG,
        b"Input: a\nOutput:" + b" " * LONG,
        b"# [" + b"a](" * LONG,
        HEAD * LONG,
        b"---\n" * LONG,
    ],
    ids=lambda text: text[:20].decode(),
)
def test_a_statement_made_to_be_slow_is_read(text: bytes) -> None:
    """Each took minutes or more with an expression that looks back;
    the time limit of all tests is the bound.
    """
    files = {"README.md": HEAD + text + FOOT, "Solution.py": SOLUTION}
    row = RawRow("a", {"name": "a", "files": files})
    assert isinstance(
        collect_row(Source(Path(), load_format(f"{EXAMPLES}/doocs.py:doocs"), "doocs"), row),
        Candidate,
    )


@pytest.mark.parametrize(
    "code",
    [
        "```" + " " * LONG,
        "```a\n" * LONG,
        "except " + " " * LONG,
        "raw_input(\nimport " + " " * LONG,
        "\n \t" * LONG,
    ],
    ids=lambda code: code[:12],
)
def test_a_program_made_to_be_slow_is_read(code: str) -> None:
    assert isinstance(read_one("apps", {"question": "Add.", "solutions": [code]}), Candidate)
