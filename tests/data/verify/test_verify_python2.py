import contextlib
import io

import pytest

from microcoder.data import Solution
from microcoder.data.clean.python2 import convert_python2, is_python2

AVERAGE = """import sys
n = int(raw_input())
numbers = map(int, raw_input().split())
for i in xrange(n):
    print numbers[i] / 2,
print
print >>sys.stderr, 'done'
d = {1: 2L}
if d.has_key(1) and 3 <> 4:
    print sorted(d.iteritems())[0]
"""


def output_of(code: str, text: str) -> str:
    out = io.StringIO()
    lines = iter(text.splitlines())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(code, {"__name__": "__main__", "input": lambda: next(lines)})
    return out.getvalue()


def test_a_converted_program_divides_integers_as_before() -> None:
    floored, real = convert_python2(AVERAGE)
    assert output_of(floored, "3\n1 2 5\n") == "0 1 2 \n(1, 2)\n"
    assert output_of(real, "3\n1 2 5\n").startswith("0.5 1.0 2.5")


def test_division_is_left_where_the_program_asked_for_real_division() -> None:
    (only,) = convert_python2("from __future__ import division\nprint 1 / 2\n")
    assert output_of(only, "") == "0.5\n"


def test_slashes_in_strings_and_floor_divisions_stay() -> None:
    (only,) = convert_python2("print 'a/b', 7 // 2  # 1/2\n")
    assert output_of(only, "") == "a/b 3\n"


@pytest.mark.parametrize(
    ("code", "language", "expected"),
    [
        ("print 1", "python", True),
        ("print(1)", "python2", True),
        ("print(1)", "python", False),
        ("x = 1L", "python", True),
        ("try:\n    pass\nexcept ValueError, e:\n    pass", "python3", True),
        ("def broken(:", "python", False),
        ("print 1", "cpp", False),
    ],
)
def test_python2_is_known_by_its_label_or_its_grammar(code: str, language: str, expected: bool) -> None:
    assert is_python2(Solution(code=code, language=language)) is expected


def test_what_is_no_program_is_not_converted() -> None:
    assert convert_python2("def broken(:\n") == ()
