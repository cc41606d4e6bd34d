"""A row of each public format, with every field as it is published, and what is right and wrong for it."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any, NamedTuple

STDIN = "a, b = map(int, input().split())\nprint(a + b)\n"
STDIN_WRONG = "a, b = map(int, input().split())\nprint(a - b)\n"
CALL = "class Solution:\n    def addPair(self, a, b):\n        return a + b\n"
CALL_WRONG = "def addPair(a, b):\n    return a - b\n"
TOTAL = "class Solution:\n    def total(self, nums, k):\n        return sum(nums) + k\n"
TOTAL_WRONG = "class Solution:\n    def total(self, nums, k):\n        return [sum(nums) + k]\n"
PAIR = "def add_pair(a, b):\n    return a + b\n"
PAIR_WRONG = "def add_pair(a, b):\n    return a\n"
EVEN = "def is_even(n):\n    return n % 2 == 0\n"
EVEN_WRONG = "def is_even(n):\n    return [n % 2 == 0]\n"
SWAP = "def swap(p):\n    return p[1:] + p[:1]\n"
HALF = "def half(x):\n    return x / 2\n"

_PARALLEL = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
_LISTED = [{"input": "1 2\n", "output": "3\n"}, {"input": "3 4\n", "output": "7\n"}]
_CALLS = {"fn_name": "addPair", "inputs": [[1, 2], [3, 4]], "outputs": [3, 7]}
_ASKED = "Read two integers and print their sum."
_PROMPT = [{"role": "user", "content": _ASKED}]


class Published(NamedTuple):
    """One row."""

    format: str
    """What it is recognised as."""
    row: dict[str, Any]
    right: str
    wrong: str


def pack(value: object) -> str:
    """Return a value as hidden tests are published."""
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def verl_row(truth: object, source: str = "taco", extra: object = None) -> dict[str, Any]:
    """Return a row of verl's parquet."""
    return {
        "data_source": source,
        "prompt": _PROMPT,
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": "train", "index": 3} if extra is None else extra,
    }


def livecodebench_row(
    kind: str, tests: list[tuple[str, str]], metadata: str = "{}", starter: str = ""
) -> dict[str, Any]:
    """Return a row of code_generation_lite; the first test is public."""
    shown, *hidden = ({"input": given, "output": said, "testtype": kind} for given, said in tests)
    return {
        "question_title": "Sum",
        "question_content": _ASKED,
        "platform": "leetcode" if kind == "functional" else "atcoder",
        "question_id": "3001",
        "contest_id": "c",
        "contest_date": "2024-05-01T00:00:00",
        "starter_code": starter,
        "difficulty": "easy",
        "public_test_cases": json.dumps([shown]),
        "private_test_cases": pack(json.dumps(hidden)),
        "metadata": metadata,
    }


def codecontests_row() -> dict[str, Any]:
    """Return a row of CodeContests."""
    none: dict[str, list[Any]] = {"input": [], "output": []}
    return {
        "name": "1_A. Sum",
        "description": _ASKED,
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": none,
        "generated_tests": {"input": ["3 4\n"], "output": ["7\n"]},
        "source": 2,
        "difficulty": 7,
        "solutions": {"language": [3], "solution": [STDIN]},
        "incorrect_solutions": {"language": [], "solution": []},
        "cf_contest_id": 1,
        "cf_index": "A",
        "cf_points": 0.0,
        "cf_rating": 800,
        "cf_tags": ["math"],
        "is_description_translated": False,
        "untranslated_description": "",
        "time_limit": {"seconds": 2, "nanos": 0},
        "memory_limit_bytes": 256000000,
        "input_file": "",
        "output_file": "",
    }


_SYNTHETIC = {
    "source": "apps",
    "task_type": "verifiable_code",
    "in_source_id": "17",
    "prompt": _ASKED,
    "gold_standard_solution": f"```python\n{STDIN}```",
    "metadata": "{'difficulty': 'introductory', 'time_limit': '1.0 seconds'}",
    "problem_id": "vfc_1",
}
_APPS = {
    "problem_id": 1,
    "question": _ASKED,
    "solutions": json.dumps([STDIN]),
    "difficulty": "introductory",
    "url": "",
    "starter_code": "",
}
_KODCODE_TEST = (
    "import pytest\nfrom solution import add_pair\n\n\ndef test_small():\n    assert add_pair(1, b=2) == 3\n\n\n"
    "def test_named():\n    nums = [3, 4]\n    assert add_pair(*nums) == 7\n"
)
_LIST_TEST = (
    "def check(candidate):\n    assert is_same_list(candidate(head = list_node([1, 2])), list_node([2, 1]))\n"
    "    assert is_same_list(candidate(head = list_node([1, 2, 3])), list_node([3, 2, 1]))\n"
)
_REVERSE = (
    "class Solution:\n    def rev(self, head):\n        last = None\n        while head:\n"
    "            head.next, last, head = last, head, head.next\n        return last\n"
)
_TABLES = (
    "import numpy as np\n\ndef assertion(out, exp, atol):\n    assert out == exp\n\n\ndef check(candidate):\n"
    "    inputs = [[(1, 2)], [(3, 4, 5)]]\n    results = [(2, 1), (4, 5, 3)]\n"
    "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)\n"
)
_CHECKER = "import sys\nsays = open(sys.argv[3]).read().split()\nprint(1 if says and float(says[0]) > 2.5 else 0)\n"
_JUDGING = (
    "def output_judging_function(input_str, candidate_output, reference_output):\n"
    "    return int(candidate_output) == int(reference_output)\n"
)

ROWS: dict[str, Published] = {
    "our own": Published(
        "microcoder", {"id": "sum", "tests": _LISTED, "checker": {"type": "tokens"}}, STDIN, STDIN_WRONG
    ),
    "apps": Published("apps", _APPS | {"input_output": json.dumps(_PARALLEL)}, STDIN, STDIN_WRONG),
    "apps, wrapped": Published(
        "apps",
        _APPS | {"input_output": json.dumps({"fn_name": "is_even", "inputs": [[2]], "outputs": [[True]]})},
        EVEN,
        EVEN_WRONG,
    ),
    "taco": Published(
        "taco",
        {
            **{"question": _ASKED, "solutions": "[]", "starter_code": "", "difficulty": "EASY", "raw_tags": "[]"},
            **{
                "name": "Sum",
                "source": "codechef",
                "tags": "[]",
                "skill_types": "[]",
                "url": "",
                "time_limit": "2.0 s",
            },
            "input_output": json.dumps({"inputs": [["1 2"], ["3 4"]], "outputs": [["3"], ["7"]]}),
        },
        STDIN,
        STDIN_WRONG,
    ),
    "codecontests": Published("codecontests", codecontests_row(), STDIN, STDIN_WRONG),
    "livecodebench, stdin": Published(
        "livecodebench", livecodebench_row("stdin", [("1 2\n", "3\n"), ("3 4\n", "7\n")]), STDIN, STDIN_WRONG
    ),
    "livecodebench, arguments by line": Published(
        "livecodebench",
        livecodebench_row(
            "functional",
            [("[1, 2]\n3", "6"), ("[]\n4", "4")],
            json.dumps({"func_name": "total"}),
            "class Solution:\n    def total(self, nums: List[int], k: int) -> int:\n        ",
        ),
        TOTAL,
        TOTAL_WRONG,
    ),
    "prime": Published("verl", verl_row(json.dumps(_PARALLEL)), STDIN, STDIN_WRONG),
    "prime, objects and text within text": Published(
        "verl", verl_row(json.dumps(json.dumps(_CALLS)), extra=json.dumps({"index": 4})), CALL, CALL_WRONG
    ),
    "verl, an object": Published("verl", verl_row(_CALLS), CALL, CALL_WRONG),
    "verl, codewars": Published(
        "verl",
        verl_row(json.dumps({"fn_name": "is_even", "inputs": [[2]], "outputs": [[True]]}), "codewars"),
        EVEN,
        EVEN_WRONG,
    ),
    "verl, assertions": Published(
        "verl", verl_row(json.dumps({"assert_case": ["assert add_pair(1, 2) == 3"]})), PAIR, PAIR_WRONG
    ),
    "verl, what a reward function gets": Published(
        "verl",
        {"data_source": "code", "ground_truth": json.dumps(_PARALLEL), "extra_info": {"index": 0}},
        STDIN,
        STDIN_WRONG,
    ),
    "deepcoder, taco": Published("deepcoder", {"problem": _ASKED, "tests": json.dumps(_PARALLEL)}, STDIN, STDIN_WRONG),
    "deepcoder, primeintellect": Published(
        "deepcoder",
        {
            "problem": "Add a pair.",
            "solutions": [CALL],
            "tests": json.dumps(
                [
                    {"type": "function_call", "fn_name": "addPair", "input": [a, b], "output": [a + b]}
                    for a, b in [(1, 2), (3, 4)]
                ]
            ),
        },
        CALL,
        CALL_WRONG,
    ),
    "deepcoder, lcbv5": Published(
        "deepcoder",
        {
            "problem": "Add k to the total.",
            "starter_code": "class Solution:\n    def total(self, nums, k):\n        ",
            "tests": json.dumps([{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]),
            "metadata": json.dumps({"func_name": "total"}),
        },
        TOTAL,
        TOTAL_WRONG,
    ),
    "kodcode": Published(
        "kodcode",
        {
            **{"version": "v1.0", "style": "instruct", "subset": "Leetcode", "question_id": "Leetcode_1_I"},
            **{"question": "Write `add_pair(a, b)`.", "solution": PAIR, "test": _KODCODE_TEST},
            "test_info": [{"function_name": "add_pair", "function_declaration": "def add_pair(a, b):"}],
        },
        PAIR,
        PAIR_WRONG,
    ),
    "rstar, stdin": Published(
        "rstar",
        {
            **{"question_id": "seed_1", "question": _ASKED, "starter_code": "", "is_synthesized": "False"},
            **{"inputs": '["1 2\\n", "3 4\\n"]', "outputs": '["3\\n", "7\\n"]', "func_name": "", "class_name": ""},
        },
        STDIN,
        STDIN_WRONG,
    ),
    "rstar, function": Published(
        "rstar",
        {
            **{"question_id": "s_2", "question": "Add.", "starter_code": CALL[:40], "test_case_type": ""},
            **{"inputs": "[[1, 2], [3, 4]]", "outputs": "[3, 7]", "func_name": "addPair", "class_name": "Solution"},
        },
        CALL,
        CALL_WRONG,
    ),
    "synthetic-1": Published(
        "synthetic",
        _SYNTHETIC
        | {"verification_info": str({"language": "python", "test_cases": [{"type": "stdin_stdout", **_LISTED[0]}]})},
        STDIN,
        STDIN_WRONG,
    ),
    "synthetic-2": Published(
        "synthetic",
        {
            **{
                "problem_id": "prime_rl_code_1",
                "task_type": "prime_rl_code",
                "prompt": "Add a pair.",
                "metadata": "{}",
            },
            "verification_info": json.dumps(
                {
                    "language": "python",
                    "test_cases": [
                        {"type": "function_call", "fn_name": "addPair", "input": [a, b], "output": [a + b]}
                        for a, b in [(1, 2), (3, 4)]
                    ],
                }
            ),
        },
        CALL,
        CALL_WRONG,
    ),
    "open-r1": Published(
        "openr1_verifiable",
        {
            **{"source": "apps", "task_type": "verifiable_code", "problem_statement": _ASKED, "problem_id": "v1"},
            "verification_info": {
                "language": "python",
                "test_cases": [{"type": "stdin_stdout", **_LISTED[0], "fn_name": None}],
            },
        },
        STDIN,
        STDIN_WRONG,
    ),
    "intellect-3, stdin": Published(
        "intellect",
        {
            "question": _ASKED,
            "answer": "",
            "info": json.dumps({"tests": json.dumps(_PARALLEL), "source": "codeforces"}),
        },
        STDIN,
        STDIN_WRONG,
    ),
    "intellect-3, written twice and wrapped": Published(
        "intellect",
        {
            "question": "Add k to the total.",
            "info": json.dumps(
                {
                    "tests": json.dumps(
                        {"fn_name": "total", "inputs": ["[1, 2]\n3", "[]\n4"], "outputs": ["[6]", "[4]"]}
                    ),
                    "source": "taco",
                }
            ),
        },
        TOTAL,
        TOTAL_WRONG,
    ),
    "nemogym": Published(
        "nemogym",
        {
            "responses_create_params": {"input": _PROMPT},
            "verifier_metadata": {"problem_id": "sum", "unit_tests": _PARALLEL},
            "agent_ref": {"type": "responses_api_agents", "name": "code_gen_simple_agent"},
        },
        STDIN,
        STDIN_WRONG,
    ),
    "nemogym, packed": Published(
        "nemogym",
        {
            "verifier_metadata": {
                "unit_tests": {
                    "packed": base64.b64encode(zlib.compress(b'{"inputs": ["[1, 2]\\n3"], "outputs": ["6"]}')).decode(),
                    "fn_name": "total",
                }
            }
        },
        TOTAL,
        TOTAL_WRONG,
    ),
    "dolci, assertions": Published(
        "dolci",
        {
            **{"id": "1", "prompt": "user: Add.", "dataset": ["code"]},
            "ground_truth": [json.dumps(["assert add_pair(1, 2) == 3", "assert add_pair('a', 'b') == 'ab'"])],
        },
        PAIR,
        PAIR_WRONG,
    ),
    "dolci, claims": Published(
        "dolci",
        {
            **{"id": "1", "prompt": "user: Add.", "dataset": ["code"]},
            "ground_truth": [
                json.dumps(["assert add_pair((1,), (2,)) == (1, 2)", "assert len(add_pair([1], [2])) == 2"])
            ],
        },
        PAIR,
        "def add_pair(a, b):\n    return [*a, *b]\n",
    ),
    "dolci, two functions": Published(
        "dolci",
        {"prompt": "Add.", "ground_truth": ['["assert twice(2) == 4", "assert thrice(2) == 6"]'], "dataset": ["code"]},
        "def twice(n):\n    return n * 2\n\n\ndef thrice(n):\n    return n * 3\n",
        "def twice(n):\n    return n * 2\n\n\nthrice = twice\n",
    ),
    "dolci, stdio": Published(
        "dolci",
        {"prompt": _ASKED, "ground_truth": [json.dumps(_LISTED)], "dataset": ["code_stdio"]},
        STDIN,
        STDIN_WRONG,
    ),
    "dolci, pickled": Published(
        "dolci", {"prompt": _ASKED, "ground_truth": [pack(_LISTED)], "dataset": ["code_stdio"]}, STDIN, STDIN_WRONG
    ),
    "hardtests": Published(
        "hardtests",
        {
            **{"pid": "atcoder_1", "statement": _ASKED, "test_cases": json.dumps(_LISTED)},
            "test_cases_kit": {"output_judging_function": _JUDGING},
        },
        STDIN.replace("a + b", "f'{a + b:05}'"),
        STDIN_WRONG,
    ),
    "open-r1 codeforces": Published(
        "openr1_codeforces",
        {
            **{"id": "1/A", "contest_id": "1", "index": "A", "description": _ASKED, "official_tests": _LISTED[:1]},
            **{"examples": [], "generated_checker": _CHECKER, "time_limit": 1.0, "generated_tests": 0},
        },
        "print(2.7)",
        "print(2.3)",
    ),
    "leetcodedataset": Published(
        "leetcodedataset",
        {
            **{"task_id": "reverse", "question_id": 1, "entry_point": "Solution().rev", "test": _LIST_TEST},
            **{"problem_description": "Reverse a list.", "starter_code": "", "prompt": "", "completion": _REVERSE},
            "input_output": [{"input": "head = [1, 2]", "output": "[2, 1]"}],
        },
        _REVERSE,
        "class Solution:\n    def rev(self, head):\n        return head\n",
    ),
    "deepseek leetcode": Published(
        "deepseek_leetcode",
        {
            **{
                "task_id": "w",
                "prompt_sft": "",
                "test": "my_solution = Solution()\nassert my_solution.addPair(b = 2, a = 1) == 3\n",
            },
            "prompt": '"""Add a pair.\n"""\nclass Solution:\n    def addPair(self, a: int, b: int) -> int:\n        ',
        },
        CALL,
        CALL_WRONG,
    ),
    "humaneval": Published(
        "humaneval",
        {
            **{"task_id": "HumanEval/900", "prompt": 'import math\n\n\ndef half(x):\n    """Half of x."""\n'},
            **{"entry_point": "half", "canonical_solution": "    return x / 2\n"},
            "test": "def check(candidate):\n    assert abs(candidate(3) - 1.5) < 1e-6\n    assert candidate(4) == 2\n",
        },
        "def half(x):\n    return math.ldexp(x, -1)\n",
        "def half(x):\n    return x // 2\n",
    ),
    "humaneval+, as released": Published(
        "humaneval",
        {
            **{"task_id": "HumanEval/900", "prompt": "def half(x):\n", "canonical_solution": "    return x / 2\n"},
            **{"entry_point": "half", "base_input": [[4]], "plus_input": [[7], [1e9]], "contract": "", "atol": 0},
        },
        HALF,
        "def half(x):\n    return x // 2\n",
    ),
    "humaneval+, on the hub": Published(
        "humaneval",
        {
            **{"task_id": "HumanEval/901", "prompt": "def swap(p):\n", "entry_point": "swap", "test": _TABLES},
            "canonical_solution": "    return p[1:] + p[:1]\n",
        },
        SWAP,
        "def swap(p):\n    return list(p[1:] + p[:1])\n",
    ),
    "mbpp": Published(
        "mbpp",
        {
            **{"task_id": 11, "text": "Swap a pair.", "code": SWAP, "test_setup_code": "", "challenge_test_list": []},
            "test_list": ["assert swap((1, 2)) == (2, 1)", "assert set(swap((3, 4))) == {3, 4}"],
        },
        SWAP,
        "def swap(p):\n    return p\n",
    ),
    "odex": Published(
        "odex",
        {
            **{
                "task_id": 7,
                "intent": "Double.",
                "prompt": "def f_7(x):\n    return ",
                "suffix": "",
                "entry_point": "f_7",
            },
            **{"canonical_solution": "x * 2", "suffix": "", "library": [], "test_start": "\ndef check(candidate):\n"},
            "test": ["\n    assert candidate(2) == 4\n"],
        },
        "def f_7(x):\n    return x * 2\n",
        "def f_7(x):\n    return x\n",
    ),
    "trl": Published("trl", {"prompt": _PROMPT, "test_cases": json.dumps(_LISTED)}, STDIN, STDIN_WRONG),
    "bare inputs and outputs": Published("trl", {**_CALLS, "inputs": json.dumps(_CALLS["inputs"])}, CALL, CALL_WRONG),
}
