"""Reward functions of others as judges, called by their own signatures.

What a function is called with is told by its parameters: TRL's `completions`, verl's
`solution_str`, the `completion` of verifiers, the `messages` of eval-protocol, the `generation` of
LiveCodeBench, or a plain `code`. How it wants completions and tests laid out is tried out: of the
layouts that are in use, the first under which it tells a right program from a wrong one. The score
of that right program is what a program needs to be accepted.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast

Case = Mapping[str, Any]
"""A program with its tests: `yardstick.cases.Case` as plain values."""
Layout = Callable[[Case], Any]
"""What a function is given of a case."""
Call = Callable[[Case], object]
"""How a function is asked about a case."""

LIMIT_SECONDS = 4.0
"""Time limit of the programs by which layouts are tried out."""
SUM: dict[str, Any] = {
    "id": "probe-stdin",
    "tests": [["1 2\n", "3\n"], ["40 50\n", "90\n"]],
    "fn_name": None,
    "time_limit_seconds": LIMIT_SECONDS,
}
"""A problem of stdin and stdout by which layouts are tried out."""
RIGHT = "a, b = map(int, input().split())\nprint(a + b)\n"
"""Solves it."""
WRONG = "a, b = map(int, input().split())\nprint(a - b)\n"
"""Does not."""
CALL: dict[str, Any] = {
    "id": "probe-call",
    "tests": [["1\n2", "3"], ["40\n50", "90"]],
    "fn_name": "add",
    "time_limit_seconds": LIMIT_SECONDS,
}
"""A problem of a function by which it is seen whether functions are judged at all."""
RIGHT_CALL = "def add(a, b):\n    return a + b\n"
"""Solves it."""
WRONG_CALL = "def add(a, b):\n    return a - b\n"
"""Does not."""
PROBES = ((SUM, RIGHT, WRONG), (CALL, RIGHT_CALL, WRONG_CALL))
"""What a layout must tell apart: programs, or else functions."""
SLACK = 1e-6
"""How much less than the right program's score still is its score: floats are rounded."""
SCORE_KEYS = ("score", "reward", "passed")
"""Keys under which dictionaries have a score; HumanEval's is the last."""
DATA_SOURCES = ("code", "taco", "codecontests", "livecodebench", "apps")
"""What rows for verl's `compute_score` name as their source: it chooses the grader by that."""


class Reward(NamedTuple):
    """A function that is called as it wants to be."""

    call: Call
    threshold: float
    """Score from which on a program is accepted."""
    about: str
    """How it is called, in words."""
    calls_only: bool = False
    """Whether it judges functions that are called, and no programs of stdin and stdout."""

    def __call__(self, case: Case) -> bool | None:
        """Return whether a case's program is accepted; None if it has no score."""
        score = read_score(self.call(case))
        return None if score is None else score >= self.threshold

    @property
    def cannot(self) -> tuple[str, ...]:
        """Abilities that it lacks, as is seen when it is asked: `stdin`, `function` or none."""
        if self.calls_only:
            return ("stdin",)
        try:
            is_able = self({**CALL, "code": RIGHT_CALL}) and not self({**CALL, "code": WRONG_CALL})
        # Whatever it does that is given what it does not expect.
        except (Exception, SystemExit):
            is_able = False
        return () if is_able else ("function",)


def fit(function: Callable[..., Any]) -> Reward:
    """Return a reward function with the layout that it takes.

    Raises:
        TypeError: under no layout does it tell a right program from a wrong one; what it said.
    """
    said = ""
    for about, call in _list_all_calls(function):
        for problem, right_code, wrong_code in PROBES:
            try:
                right = read_score(call({**problem, "code": right_code}))
                wrong = read_score(call({**problem, "code": wrong_code}))
            # Whatever a function does that is given what it does not expect.
            except (Exception, SystemExit) as error:
                said = said or f"{type(error).__name__}: {error}"
                continue
            if right is None or wrong is None or right <= wrong:
                said = said or f"it gives {right} to a right program, and {wrong} to a wrong one"
                continue
            return Reward(call, right - SLACK, about, calls_only=problem is CALL)
    raise TypeError(
        f"in no layout that is in use does {_name(function)} tell a right program from a wrong one "
        f"({said or 'it has no parameters that are known'}); give it as function=..., with the "
        "parameters code, tests and time_limit"
    )


def read_score(returned: object) -> float | None:
    """Return the score in what a reward function returned; None if it says that it has none.

    Read are numbers, the worst of several in a list (a result a test), the `score`, `reward` or
    `passed` of a dictionary, the `score` or `reward` of a record, and the first of a tuple, as
    verl's and TRL's functions return them.
    """
    if inspect.isawaitable(returned):
        returned = asyncio.run(_wait_for(returned))
    if isinstance(returned, Mapping):
        named = [returned[key] for key in SCORE_KEYS if key in returned]
        return read_score(named[0]) if named else None
    if isinstance(returned, list | tuple):
        return _read_scores(returned)
    # A record of the framework's own.
    for key in ("score", "reward"):
        if hasattr(returned, key):
            return read_score(getattr(returned, key))
    # Numbers of numpy and torch.
    value = returned.item() if hasattr(returned, "item") else returned
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


def _read_scores(returned: list[Any] | tuple[Any, ...]) -> float | None:
    """Return the score of a list: of a result a test the worst, else the first that is a score.

    skyrl-gym's tuple has the program before its score.
    """
    if len(returned) > 1 and all(isinstance(item, int | float) for item in returned):
        return float(min(returned))
    for item in returned:
        score = read_score(item)
        if score is not None:
            return score
    return None


async def _wait_for(returned: Awaitable[object]) -> object:
    return await returned


def fit_command(ask: Callable[[str], str]) -> Reward:
    """Return a judge that is a command: it is sent a case, a line of JSON, and answers a score.

    It answers a line of JSON: true, false, null, a number, or an object with `score`, of which 1 is
    right.

    Args:
        ask: sends a line to the command, and returns its next one.

    Raises:
        TypeError: it tells a right program not from a wrong one.
    """

    def call(case: Case) -> object:
        return json.loads(ask(json.dumps({**case, **lay_out_dict(case)})))

    judged = Reward(call, 1 - SLACK, "a line of JSON a case")
    is_right = judged({**SUM, "code": RIGHT})
    is_wrong_right = judged({**SUM, "code": WRONG})
    if not is_right or is_wrong_right:
        raise TypeError(
            f"the command says {is_right} of a right program, and {is_wrong_right} of a wrong one; "
            "for each line of JSON on stdin it is to write one: true, false, null, a number or "
            '{"score": ...}'
        )
    return judged


# ----- Layouts of a case that are in use.


def lay_out_response(case: Case) -> str:
    """Return what a model would say."""
    fence = "```"
    while fence in case["code"]:
        fence += "`"
    return f"Here is the solution.\n{fence}python\n{case['code']}\n{fence}\n"


def lay_out_messages(case: Case) -> list[dict[str, str]]:
    """Return a completion as a conversation: TRL's and verifiers' form for chat models."""
    return [{"role": "assistant", "content": lay_out_response(case)}]


def lay_out_dict(case: Case) -> dict[str, Any]:
    """Return tests as LiveCodeBench, APPS and PRIME have them."""
    tests: dict[str, Any] = {
        "inputs": [given for given, _ in case["tests"]],
        "outputs": [expected for _, expected in case["tests"]],
    }
    if case.get("fn_name"):
        tests["fn_name"] = case["fn_name"]
    return tests


def lay_out_json(case: Case) -> str:
    """Return the same as JSON, as rows for verl hold it."""
    return json.dumps(lay_out_dict(case))


def lay_out_list(case: Case) -> list[dict[str, Any]]:
    """Return a dictionary a test, as LiveCodeBench, Open R1 and SYNTHETIC-1 have them."""
    kind = "function_call" if case.get("fn_name") else "stdin_stdout"
    tests = []
    for given, expected in case["tests"]:
        tests.append(
            {
                "type": kind,
                "testtype": "functional" if case.get("fn_name") else "stdin",
                "fn_name": case.get("fn_name"),
                "metadata": {"func_name": case.get("fn_name")},
                "input": given,
                "output": expected,
                "expected_output": expected,
            }
        )
    return tests


def lay_out_list_json(case: Case) -> str:
    """Return the same as JSON."""
    return json.dumps(lay_out_list(case))


def lay_out_pairs(case: Case) -> list[tuple[str, str]]:
    """Return a pair of input and output a test."""
    return [(given, expected) for given, expected in case["tests"]]


def lay_out_asserts(case: Case) -> list[str]:
    """Return an assertion a call, as MBPP and AceCode have them; none where nothing is called."""
    if not case.get("fn_name"):
        return []
    return _write_asserts(case, _find_callee(case))


def lay_out_human_eval(case: Case) -> dict[str, Any]:
    """Return a problem as HumanEval has it: `check` asserts, and the prompt is empty."""
    lines = ["pass"]
    if case.get("fn_name"):
        lines = _write_asserts(case, "candidate")
    body = "\n".join(f"    {line}" for line in lines)
    return {
        "task_id": case["id"],
        "prompt": "",
        "entry_point": _find_callee(case),
        "test": f"def check(candidate):\n{body}\n",
    }


def _find_callee(case: Case) -> str:
    """Return what is called as Python names it: a method by its class."""
    name = str(case["fn_name"])
    if re.search(r"^class Solution\b", case["code"], re.MULTILINE):
        return f"Solution().{name}"
    return name


def _write_asserts(case: Case, callee: str) -> list[str]:
    asserts = []
    for given, expected in case["tests"]:
        arguments = ", ".join(repr(json.loads(line)) for line in given.split("\n"))
        asserts.append(f"assert {callee}({arguments}) == {json.loads(expected)!r}")
    return asserts


TESTS: tuple[Layout, ...] = (
    lay_out_json,
    lay_out_dict,
    lay_out_list,
    lay_out_list_json,
    lay_out_pairs,
    lay_out_asserts,
)
"""Layouts of tests, the most frequent first."""
COMPLETIONS: tuple[Layout, ...] = (lay_out_response, lay_out_messages)
"""Layouts of completions."""
PROGRAMS: tuple[Layout, ...] = (lambda case: case["code"], lay_out_response)
"""Layouts of what a plain function is given."""
SPOKEN: Mapping[Layout, str] = {
    lay_out_messages: "messages",
    lay_out_response: "responses",
    lay_out_json: "JSON of inputs and outputs",
    lay_out_dict: "a dictionary of inputs and outputs",
    lay_out_list: "a list of tests",
    lay_out_list_json: "JSON of a list of tests",
    lay_out_pairs: "pairs",
    lay_out_asserts: "assertions",
}
"""Layouts in words."""


# ----- Signatures.


def _list_all_calls(function: Callable[..., Any]) -> Iterator[tuple[str, Call]]:
    """Yield the ways of calling a function; without what it does not name if it takes anything."""
    yield from _list_calls(function)
    if not callable(function):
        return
    # What it takes beside these may be passed on to where it is given once more.
    if _takes_any(function):
        for about, call in _list_calls(_without_rest(function)):
            yield f"{about}, named arguments alone", call


def _takes_any(function: Callable[..., Any]) -> bool:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return True
    return False


def _without_rest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that says that it takes no more than it names."""

    @functools.wraps(function)
    def call(*values: object, **named: object) -> object:
        return function(*values, **named)

    signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            parameters.append(parameter)
    vars(call)["__signature__"] = signature.replace(parameters=parameters)
    return call


def _list_calls(function: Callable[..., Any]) -> Iterator[tuple[str, Call]]:
    """Yield the ways in which a function may want to be called, each with its name."""
    rubric = _find_rubric(function)
    if rubric is not None:
        for completion, tests in itertools.product(reversed(COMPLETIONS), TESTS):
            about = _describe("a rubric of verifiers", completion, tests)
            yield about, _by_rubric(rubric, completion, tests)
        return
    parameters = inspect.signature(function).parameters
    if {"sample", "generation"} <= parameters.keys():
        yield "as LiveCodeBench does", call_livecodebench(function)
        about = "as LiveCodeBench does, tests as a list"
        yield about, call_livecodebench(function, lay_out_list)
    elif {"problem", "completion"} <= parameters.keys():
        yield "as HumanEval does", _by_human_eval(function)
    else:
        yield from _list_trainers_calls(function, parameters)


def _list_trainers_calls(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]
) -> Iterator[tuple[str, Call]]:
    """Yield the ways in which trainers call a function of these parameters, the plain one last."""
    if "completions" in parameters:
        for completion, tests in itertools.product(COMPLETIONS, TESTS):
            yield _describe("TRL", completion, tests), _by_trl(function, completion, tests)
    elif "solution_str" in parameters:
        for tests, source in itertools.product(TESTS, DATA_SOURCES):
            about = f"{_describe('verl', lay_out_response, tests)}, data_source {source}"
            yield about, _by_verl(function, tests, source)
    elif "completion" in parameters and not {"tests", "test_cases"} & parameters.keys():
        for completion, tests in itertools.product(reversed(COMPLETIONS), TESTS):
            about = _describe("verifiers", completion, tests)
            yield about, _by_verifiers(function, completion, tests)
    elif "messages" in parameters:
        for tests in TESTS:
            about = _describe("eval-protocol", lay_out_messages, tests)
            yield about, _by_messages(function, tests)
    else:
        for program, tests in itertools.product(PROGRAMS, TESTS):
            about = _describe("a plain function", program, tests)
            yield about, _by_position(function, program, tests)


def _describe(form: str, completion: Layout, tests: Layout) -> str:
    """Return a way of calling in words."""
    spoken = SPOKEN.get(completion, "code")
    return f"as {form} does: {spoken}, tests as {SPOKEN[tests]}"


def _list_columns(case: Case, tests: Layout) -> dict[str, Any]:
    """Return the columns that rows with tests have under the names in use."""
    told = tests(case)
    verification = {"language": "python", "test_cases": lay_out_list(case)}
    return {
        "tests": told,
        "test_cases": told,
        "input_output": told,
        "ground_truth": told,
        "answer": told,
        "answers": told,
        "solution": told,
        "reward_model": {"ground_truth": told, "style": "rule"},
        "verification_info": verification,
        "inputs": lay_out_dict(case)["inputs"],
        "outputs": lay_out_dict(case)["outputs"],
        "fn_name": case.get("fn_name"),
        "target_function": case.get("fn_name"),
        "language": "python",
        "problem_id": case["id"],
        "task_id": case["id"],
        "time_limit": case["time_limit_seconds"],
        "timeout": math.ceil(case["time_limit_seconds"]),
    }


def _choose(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return of what is offered the arguments that a function takes by name.

    A parameter with a default that is no column of rows keeps it.
    """
    if _takes_any(function):
        return dict(offered)
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in offered.items() if name in parameters}


def _by_trl(function: Callable[..., Any], completion: Layout, tests: Layout) -> Call:
    """TRL: `f(prompts, completions, **columns)`, each a list of one."""

    def call(case: Case) -> object:
        said = completion(case)
        prompt = "Solve it." if isinstance(said, str) else [{"role": "user", "content": "Solve."}]
        columns = {name: [value] for name, value in _list_columns(case, tests).items()}
        offered = {**columns, "prompts": [prompt], "completions": [said]}
        return function(**_choose(function, offered))

    return call


def _by_verl(function: Callable[..., Any], tests: Layout, source: str) -> Call:
    """verl: `compute_score(data_source, solution_str, ground_truth, extra_info)`."""

    def call(case: Case) -> object:
        offered = {
            "data_source": source,
            "solution_str": lay_out_response(case),
            "ground_truth": tests(case),
            "extra_info": {"index": 0, "split": "train"},
        }
        return function(**_choose(function, offered))

    return call


def _by_verifiers(function: Callable[..., Any], completion: Layout, tests: Layout) -> Call:
    """verifiers: `f(prompt, completion, answer, state, info)`, of which it takes what it names."""

    def call(case: Case) -> object:
        return function(**_choose(function, _offer_rollout(case, completion, tests)))

    return call


def _offer_rollout(case: Case, completion: Layout, tests: Layout) -> dict[str, Any]:
    """Return what verifiers offers a reward function of a rollout."""
    columns = _list_columns(case, tests)
    said = completion(case)
    prompt = [{"role": "user", "content": "Solve it."}]
    # As its environments leave it: a row's columns beside what was said.
    state = {
        **columns,
        "prompt": prompt,
        "completion": said,
        "info": columns,
        "task": "",
        "trajectory": [],
        "timing": {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0},
    }
    return {**columns, "prompt": prompt, "completion": said, "info": columns, "state": state}


def _by_messages(function: Callable[..., Any], tests: Layout) -> Call:
    """eval-protocol: `f(messages, ground_truth, **columns)`, of which the last is the answer."""

    def call(case: Case) -> object:
        messages = [{"role": "user", "content": "Solve it."}, *lay_out_messages(case)]
        offered = {**_list_columns(case, tests), "messages": messages}
        return function(**_choose(function, offered))

    return call


class Rubric(Protocol):
    """A `verifiers.Rubric`, whose `score_rollout` has other parameters in each version."""

    score_rollout: Callable[..., Any]


def _find_rubric(offered: object) -> Rubric | None:
    """Return the rubric that is offered, or that a function without parameters makes; else None."""
    made = offered
    # An instance has no signature; a class of rubrics is called as a function is.
    if callable(offered):
        if inspect.signature(offered).parameters:
            return None
        made = offered()
    if not hasattr(made, "score_rollout"):
        return None
    return cast("Rubric", made)


def _by_rubric(rubric: Rubric, completion: Layout, tests: Layout) -> Call:
    """A `verifiers.Rubric`: `score_rollout` returns the reward or leaves it in the state."""

    def call(case: Case) -> object:
        offered = _offer_rollout(case, completion, tests)
        returned = rubric.score_rollout(**_choose(rubric.score_rollout, offered))
        if inspect.isawaitable(returned):
            returned = asyncio.run(_wait_for(returned))
        if returned is None:
            return offered["state"].get("reward")
        return returned

    return call


def _by_human_eval(function: Callable[..., Any]) -> Call:
    """HumanEval: `check_correctness(problem, completion, timeout)` -> `passed`."""

    def call(case: Case) -> object:
        problem = lay_out_human_eval(case)
        return function(problem, case["code"], math.ceil(case["time_limit_seconds"]))

    return call


def call_livecodebench(
    function: Callable[..., Any], tests: Layout | None = None
) -> Callable[[Case], bool]:
    """LiveCodeBench: `check_correctness(sample, generation, timeout)`, a result a test.

    Args:
        function: that is called.
        tests: layout of the sample; by default LiveCodeBench's `input_output`.
    """

    def call(case: Case) -> bool:
        options = {"timeout": math.ceil(case["time_limit_seconds"]), "debug": False}
        sample: Any = {"input_output": lay_out_json(case)}
        if tests is not None:
            sample = tests(case)
        returned = function(sample, case["code"], **_choose(function, options))
        # Some return what they saw beside the results.
        results = returned[0] if isinstance(returned, tuple) else returned
        if isinstance(results, bool):
            return results
        # True or 1 is a pass; other numbers, which are negative, say why a test failed.
        return bool(len(results)) and all(result == 1 for result in results)

    return call


def _by_position(function: Callable[..., Any], program: Layout, tests: Layout) -> Call:
    """A plain function of a program and its tests; further parameters by their names."""
    parameters = list(inspect.signature(function).parameters)

    def call(case: Case) -> object:
        named = _choose(function, _list_columns(case, tests))
        for name in parameters[:2]:
            named.pop(name, None)
        return function(program(case), tests(case), **named)

    return call


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
