from __future__ import annotations

from microcoder.data.clean.sections import find_starter_code, strip_instruction
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.prompts import format_instruction


def test_prompts_that_sources_bake_in_go() -> None:
    found = (
        "Solve the following coding problem using the programming language python:\n\nAdd two numbers.\n\n"
        "The input will be stdin and you should print your solution to stdout\n\n\n"
        "Now solve the problem and return the code."
    )
    assert strip_instruction(found) == "Add two numbers.\n"
    nemotron = (
        "You are a helpful and harmless assistant. You should think step-by-step before responding to the instruction "
        "below.\n\nPlease use python programming language only.\n\nYou must use ```python for just the final solution "
        "code block with the following format:\n```python\n# Your code here\n```\n\nAdd two numbers.\n"
    )
    assert strip_instruction(nemotron) == "Add two numbers.\n"


def test_starter_code_at_the_end_goes_only_where_the_record_has_it() -> None:
    text = "Add.\n\nPlease complete the following python code precisely:\n```python\ndef add(a, b):\n    \n```\n"
    assert strip_instruction(text, "def add(a, b):\n") == "Add.\n"
    assert "def add" in strip_instruction(text, "def other(a):\n")


def test_each_style_is_asked_in_its_own_words() -> None:
    assert "standard input" in format_instruction("python", fn_name=None, starter_code=None)
    function = format_instruction("python", fn_name="add", starter_code="def add(a, b):\n    ")
    assert "`add`" in function
    assert "def add(a, b):" in function
    assert "C++" in format_instruction("cpp", fn_name=None, starter_code=None)


def test_a_signature_is_found_in_an_accepted_solution() -> None:
    wrong = Solution(code="def add(x): return 1", known="wrong_answer")
    right = Solution(code="class Solution:\n    def add(self, a: int, b=2) -> int:\n        return a + b\n")
    candidate = Candidate(id="a/1", dataset="a", fn_name="add", solutions=(wrong, right))
    assert find_starter_code(candidate) == "class Solution:\n    def add(self, a: int, b=2) -> int:\n        "
    assert find_starter_code(candidate.model_copy(update={"solutions": (wrong,)})) is None
