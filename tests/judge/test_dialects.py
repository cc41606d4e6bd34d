"""Programs under LiveCodeBench's prelude, and the same ones without it."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program

from .conftest import make_problem, run  # pyrefly: ignore[missing-import]

NEEDS_THE_PRELUDE = {
    "star imports": "q = deque(map(int, input().split()))\nheappush(h := [], gcd(6, 3))\nprint(sum(q) * h[0] // 3)",
    "modules": "print(math.floor(3.5) + collections.Counter('a')['b'] + len(re.findall('x', string.digits)))",
    "typing last": "def f(x: List[int]) -> Optional[int]: return sum(x)\nprint(f([*map(int, input().split())]))",
    "deep recursion": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(40000) - 39997)",
    "many digits": "print(len(str(10 ** 40000)) - 39998)",
    "limits as they are told": "assert sys.getrecursionlimit() == sys.get_int_max_str_digits() == 50000\nprint(3)",
}
AS_EVER = {
    "builtins over math and operator": "print(pow(2, 5, 29) if open and sum(map(int, input().split())) == 3 else 0)",
    "own names over all": "deque = 3\nprint(deque)",
    "no more digits than that": "try: str(10 ** 60000)\nexcept ValueError: print(3)",
    "still the main module": "import inspect\nif __name__ == '__main__': print(2 + len(inspect.stack()))",
}


@pytest.mark.parametrize("name", [*NEEDS_THE_PRELUDE, *AS_EVER])
def test_livecodebench_prelude(judge_one: Judge, name: str) -> None:
    code = {**NEEDS_THE_PRELUDE, **AS_EVER}[name]
    verdict = run(judge_one, code, make_problem(("1 2\n", "3\n"), dialect="livecodebench"))
    assert verdict.is_accepted, verdict.detail
    plain = run(judge_one, code, make_problem(("1 2\n", "3\n")))
    assert plain.is_accepted == (name in AS_EVER), plain.detail


def test_functions_have_its_digits(judge_one: Judge) -> None:
    code = "def solve(n): return len(str(10 ** n)) + len(ascii_lowercase) - 26"
    call = ("40000", "40001")
    assert run(judge_one, code, make_problem(call, fn_name="solve", dialect="livecodebench")).is_accepted
    assert run(judge_one, code, make_problem(call, fn_name="solve")).outcome is Outcome.RUNTIME_ERROR


def test_a_built_language_has_no_dialect(judge_one: Judge) -> None:
    with pytest.raises(DataError, match='is in cpp, dialect "livecodebench" is a way to run Python programs; leave it'):
        judge_one.judge([Program("", "cpp")], [make_problem(("", ""), language="cpp", dialect="livecodebench")])
