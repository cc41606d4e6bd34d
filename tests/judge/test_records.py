"""Record files: all lines or none, and one clear line for what is wrong."""

import gzip
from pathlib import Path

import pytest

from microcoder.data import read_problems, write_problems
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Checker, Problem, TestCase

GOOD = '{"id": "a", "statement": "s", "tests": [{"input": "1", "output": "2"}]}'


ANOTHER = GOOD.replace('"a"', '"b"')
BROKEN = {
    '{"id": "b", ': "line 2 is not JSON",
    '{"id": "b", "tests": []}': "line 2: tests",
    '{"id": "b"}': "key tests is missing",
    '{"id": "b", "test": []}': "line 2: unknown key test; did you mean tests?.",
    '{"id": "b", "tests": [{"input": 1, "output": ""}]}': "line 2: tests.0.input = 1: must be text.",
    '{"id": "b", "tests": [{"imput": "1", "output": ""}]}': "unknown key tests.0.imput; did you mean input?",
    GOOD: "id 'a' was already used on line 1",
    ANOTHER.replace('"s"', '" "'): "no statement",
    ANOTHER.replace('"b"', '"b", "language": "cobol"'): "language = 'cobol'",
    ANOTHER.replace('"b"', '"b", "checker": {"type": "exact", "code": "x"}'): 'checker type "exact" takes no code',
}


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    for line, message in BROKEN.items():
        file.write_text(f"{GOOD}\n{line}\n")
        with pytest.raises(DataError) as caught:
            read_problems(file)
        assert message in f"{caught.value}."
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_missing_empty_and_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(GOOD.encode() * 100)[:-20])
    for name, message in {"no": "does not exist", "empty": "holds no record", "cut": "cannot be read"}.items():
        with pytest.raises(DataError, match=message):
            read_problems(tmp_path / f"{name}.jsonl{'.gz' * (name == 'cut')}")


def test_what_is_written_is_read_again_gzipped_or_not(tmp_path: Path) -> None:
    checker = Checker(type="float", tolerance=1e-3)
    tests = (TestCase(input="1\n", output="2\n"),)
    problems = [Problem(id=f"p{n}", statement="Ångström\u2028", tests=tests, checker=checker) for n in range(3)]
    plain, packed = tmp_path / "p.jsonl", tmp_path / "p.jsonl.gz"
    write_problems(plain, problems)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_problems(plain) == read_problems(packed) == problems
