"""Parsing source in many threads at once."""

import ast
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from microcoder.judge.core.digits import dump_json, parse_int, parse_json, spell_int
from microcoder.judge.core.syntax import (
    attribute_docstrings,
    dump_meaning,
    evaluate_literal,
    parse_source,
)
from microcoder.judge.core.types import Verdict

SOURCE = "def solve(a, b):\n" + "\n".join(
    f"    x{n} = [(a + {n}) * (b - {n}), {{{n}: 'x'}}]" for n in range(60)
)
DEEP = "x = " + "[" * 60 + "]" * 60


class Parses:
    """Garbage that parses when it is collected, as generated code does; it is its own cycle."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        parse_source(DEEP)


def test_many_threads_parse_while_garbage_is_collected() -> None:
    wanted = ast.dump(ast.parse(SOURCE))
    seen: list[object] = []

    def parse_often() -> None:
        try:
            for _ in range(20):
                Parses()
                seen.append(
                    attribute_docstrings.__wrapped__(Verdict)
                    and ast.dump(parse_source(SOURCE)) == wanted
                )
        except BaseException as error:
            seen.append(error)
            raise

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(parse_often)
    assert seen == [True] * 80


def test_a_literal_is_what_python_says_without_its_warnings() -> None:
    for text in ("[1, 'a', {2: 3}]", "  -1.5", "(None, True)"):
        assert evaluate_literal(text) == ast.literal_eval(text)
    for text in ("f(1)", "1 +", "a", ""):
        with pytest.raises((ValueError, SyntaxError)):
            evaluate_literal(text)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        parse_source(r"x = '\d'")
        assert evaluate_literal(r"'\d'") == r"\d"
    assert said == []


def test_code_is_digested_by_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "code.py"

    def digest(text: str) -> str:
        path.write_text(text)
        return dump_meaning(path)

    written = digest("class A:\n    x: int = 1\ndef f(a): return a + 1\n")
    documented = (
        '"""Text."""\n'
        "class A:\n"
        "    x: int = 1  # why\n"
        '    """Of x."""\n\n\n'
        "def f(a):\n"
        "    return (a + 1)\n"
    )
    assert digest(documented) == written
    assert digest("class A:\n    x: int = 1\ndef f(a): return a + 2\n") != written


@pytest.mark.parametrize("num_digits", [1, 4299, 4300, 4301, 12_345])
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_any_size_are_read_and_written(num_digits: int, sign: str) -> None:
    text = sign + "1234567890"[:num_digits] * (num_digits // 10 + 1)
    value = parse_int(text[: num_digits + len(sign)])
    assert spell_int(value) == text[: num_digits + len(sign)]
    assert dump_json({"a": [value]}) == f'{{"a": [{spell_int(value)}]}}'
    assert parse_json(dump_json([value])) == [value]
    assert evaluate_literal(f"({spell_int(value)}, '{spell_int(value)}')") == (
        value,
        spell_int(value),
    )
