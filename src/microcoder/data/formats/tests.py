"""Reads tests in the encodings of public sets.

| encoding | where |
|---|---|
| `{"inputs": [...], "outputs": [...], "fn_name": ...}` | APPS, TACO, DeepCoder, PRIME, verl |
| `[{"type": <kind>, "fn_name", "input", "output"}]` | SYNTHETIC, DeepCoder |
| `[{"testtype": <kind>, "input", "output"}]` | LiveCodeBench, DeepCoder (lcbv5, codeforces) |
| `["assert f(1) == 2"]`, `{"assert_case": [...]}` | MBPP, Dolci, verl |

A kind is `stdin_stdout` or `function_call`, `stdin` or `functional`. Each encoding also as JSON
text, and as JSON text within text. Programs that come with problems are read in
`programs`.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from microcoder.data.formats.assertions import (
    NotACall,
    read_assertions,
    read_parameters,
    write_call,
)
from microcoder.data.formats.candidates import Candidate, DecodedTests, Note
from microcoder.data.formats.row import Malformed
from microcoder.data.formats.test_programs import find_called, read_as_published
from microcoder.data.formats.values import (
    parse_python,
    read_json,
    read_literal,
    shorten,
)
from microcoder.judge.core.signatures import find_call, find_head
from microcoder.judge.core.types import Call, Problem, TestCase

_CALLS = ("function_call", "functional", "call_based")
"""Kinds of tests that call a function."""
_STREAMS = ("stdin_stdout", "stdin", "stdio", "")
"""Kinds of tests of whole programs; an empty one is not said."""
_MOST_FOLDS = 3
"""Levels of JSON text within text that are decoded."""
_MOST_SHOWN = 5
"""Keys that a message shows."""
_LONGEST_NOTE = 300
"""Characters of a note on assertions that were left out."""
_CASES = ("assert_case", "test_cases", "tests", "cases")
"""Keys of an object under which its tests stand, by precedence."""
_PAIRS = (("inputs", "outputs"), ("input", "output"))
"""Keys of an object under which its inputs and its outputs stand, by precedence."""
_FUNCTION_KEYS = ("fn_name", "func_name", "entry_point")
"""Keys of a function's name, by precedence."""
_INPUT_KEYS = ("input", "stdin", "inputs", "input_data", "test_input")
"""Keys of a test's input, by precedence."""
_OUTPUT_KEYS = (
    "output",
    "stdout",
    "expected_output",
    "expected",
    "outputs",
    "expected_stdout",
    "output_data",
    "answer",
)
"""Keys of a test's output, by precedence."""
_LISTS = (
    "list",
    "tuple",
    "sequence",
    "iterable",
    "iterator",
    "listnode",
    "treenode",
    "deque",
    "set",
)
"""Names of annotations, in small letters, whose values are written as lists in tests."""


def decode_tests(
    value: Any,
    *,
    fn_name: str = "",
    platform: str = "",
    code: str = "",
    is_judged: bool = False,
) -> DecodedTests:
    """Return the tests in a field's value, none if it is empty; Malformed if of no known encoding.

    Args:
        value: an object, a list or text, in one of the module's encodings.
        fn_name: the function's name, where another field gives it.
        platform: on some platforms, such as codewars, expected values are wrapped in a list of one.
        code: starter code or solution, for names and types of the function's parameters.
        is_judged: no assertion may be left out (see `asserted_tests`).
    """
    if isinstance(value, str):
        value = _unfold(value)
    if value is None or value in ("", [], {}):
        return DecodedTests()
    if isinstance(value, Mapping):
        return _decode_object(value, fn_name, platform, code, is_judged)
    if isinstance(value, str):
        return asserted_tests([value], fn_name=fn_name, code=code, is_judged=is_judged)
    if not isinstance(value, list):
        raise Malformed(
            "bad_tests", f"tests are {type(value).__name__}, neither an object nor a list"
        )
    items = []
    for item in value:
        items.append(_unfold(item) if isinstance(item, str) else item)
    # Texts that are no JSON are assertions, one or more each.
    if all(isinstance(item, str) for item in items):
        return asserted_tests(items, fn_name=fn_name, code=code, is_judged=is_judged)
    return _read_list(items, fn_name, platform, code)


def _decode_object(
    value: Mapping[str, Any],
    fn_name: str,
    platform: str,
    code: str,
    is_judged: bool,
) -> DecodedTests:
    """Return the tests in an object: a list of them, or a list of inputs and one of outputs."""
    for key in _CASES:
        if value.get(key):
            return decode_tests(
                value[key],
                fn_name=_find_name(value, fn_name),
                platform=platform,
                code=code,
                is_judged=is_judged,
            )
    for inputs_key, outputs_key in _PAIRS:
        if inputs_key in value and outputs_key in value:
            return pair_tests(
                value[inputs_key],
                value[outputs_key],
                fn_name=_find_name(value, fn_name),
                platform=platform,
                code=code,
            )
    shown = shorten(list(value)[:_MOST_SHOWN])
    raise Malformed("bad_tests", f"neither inputs and outputs nor test cases, but {shown}")


def _unfold(text: str) -> Any:
    """Return the object or list that a JSON text holds, also as text within text.

    Any other text is returned unchanged.
    """
    for _ in range(_MOST_FOLDS):
        # Anything else stays a text, as an input such as `5` must.
        if not text.lstrip().startswith(("{", "[", '"{', '"[')):
            break
        try:
            value = read_json(text)
        except ValueError:
            break
        if not isinstance(value, str):
            return value
        text = value
    return text


def pair_tests(
    inputs: Any,
    outputs: Any,
    *,
    fn_name: str = "",
    platform: str = "",
    code: str = "",
) -> DecodedTests:
    """Return tests of inputs and outputs; with `fn_name`, of arguments and values.

    Raises:
        Malformed: they are not lists of one length.
    """
    if isinstance(inputs, str):
        inputs = _unfold(inputs)
    if isinstance(outputs, str):
        outputs = _unfold(outputs)
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise Malformed(
            "bad_tests",
            f"inputs are {type(inputs).__name__}, outputs {type(outputs).__name__}, not lists",
        )
    if len(inputs) != len(outputs):
        raise Malformed("bad_tests", f"{len(inputs)} inputs, but {len(outputs)} outputs")
    if fn_name:
        return _call_tests(inputs, outputs, fn_name, platform, code)
    tests = []
    for given, expected in zip(inputs, outputs, strict=True):
        test = TestCase(input=_stream(given), output=_stream(expected))
        tests.append(test)
    return DecodedTests(tuple(tests))


def asserted_tests(
    sources: Sequence[str],
    *,
    fn_name: str,
    code: str = "",
    called: Sequence[str] = (),
    is_judged: bool = False,
    setup: str = "",
    only_calls: bool = False,
) -> DecodedTests:
    """Return the tests of assertions about one function, as calls with JSON arguments.

    Where an assertion is no such call (a tuple, a set, an exception that is asked for), the
    programs run as they were published (see `test_programs`). What cannot run so either is left out
    and noted; if `is_judged`, nothing may be.

    Args:
        sources: programs of assertions, which stand in one file.
        fn_name: the function; without one, the first that the assertions call.
        code: has its head.
        called: further names of the function.
        is_judged: the tests are to judge answers.
        setup: what the published harness runs before both.
        only_calls: what is no call is left out, as where problems are compared by their inputs.
            Tests without any call run as they were published.

    Raises:
        Malformed: no assertion can be a test.
    """
    source = "\n".join(sources)
    if not fn_name:
        fn_name = next(iter(find_called(source, code)), "")
    if not fn_name:
        raise Malformed("tests_not_convertible", "assertions, but they call no function")
    names = (fn_name, *called)
    decoded = read_assertions(source, called=names, parameters=read_parameters(code, fn_name))
    reasons = "; ".join(dict.fromkeys(decoded.dropped))
    # A test that is left out would change the verdict.
    is_whole = bool(decoded.tests) and (only_calls or not decoded.dropped)
    if not is_whole:
        given_by = None if is_judged else code
        try:
            return read_as_published(sources, fn_name, setup, given_by)
        except NotACall as error:
            if is_judged:
                raise Malformed(
                    "tests_not_convertible", f"the test cannot be judged: {error}"
                ) from None
    if not decoded.tests:
        raise Malformed("tests_not_convertible", reasons or "no assertion")
    notes: tuple[Note, ...] = ()
    if decoded.dropped:
        num_dropped = len(decoded.dropped)
        share = f"{num_dropped} of {num_dropped + len(decoded.tests)} left out"
        notes = (("tests", f"{share}: {reasons}"[:_LONGEST_NOTE]),)
    # Annotations say more than tests, whose values may all be empty lists.
    annotated = infer_call_of(code, fn_name, decoded.tests)
    call = merge_calls(annotated, decoded.call)
    return replace(decoded, fn_name=fn_name, call=call, notes=notes)


def infer_call_of(code: str, fn_name: str, tests: Sequence[TestCase]) -> Call | None:
    """Return the call that starter code implies for these tests.

    None if all is plain JSON, or without tests.
    """
    if not tests:
        return None
    return find_call(
        Problem(
            id="-",
            fn_name=fn_name,
            starter_code=code,
            tests=tuple(tests),
        )
    )


def merge_calls(annotated: Call | None, shown: Call | None) -> Call | None:
    """Return a call with the types that annotations give it, and those that its tests show.

    A type that tests show, unless it is plain JSON, stands in place of the annotation's.
    """
    if annotated is None or shown is None:
        return shown or annotated
    # Tests may leave out arguments that have defaults.
    pairs = zip_longest(annotated.parameters, shown.parameters, fillvalue="json")
    parameters = tuple(_more_special(mine, theirs) for mine, theirs in pairs)
    returns = _more_special(annotated.returns, shown.returns)
    return annotated.model_copy(update={"parameters": parameters, "returns": returns})


def _more_special(annotated: str, shown: str) -> str:
    return annotated if shown == "json" else shown


def _find_name(value: Mapping[str, Any], default: str) -> str:
    """Return the name of the function in an object; Malformed if it is no text."""
    for key in _FUNCTION_KEYS:
        name = value.get(key)
        if name is None or name == "":
            continue
        if not isinstance(name, str):
            raise Malformed("bad_tests", f"{key} is {type(name).__name__}, not text")
        return name
    return default


def _read_list(
    items: Sequence[Any],
    fn_name: str,
    platform: str,
    code: str,
) -> DecodedTests:
    """Return the tests in a list of objects, all of which call one function or none."""
    inputs = []
    outputs = []
    names = set()
    for number, test in enumerate(items, 1):
        if not isinstance(test, Mapping):
            raise Malformed("bad_tests", f"test {number} is {type(test).__name__}, not an object")
        input_key, output_key = _find_keys(test, number)
        kind = test.get("type") or test.get("testtype") or ""
        if kind not in (*_CALLS, *_STREAMS):
            raise Malformed("bad_tests", f"test {number} is of type {shorten(kind, 30)}")
        names.add(_find_function(test, kind, fn_name))
        inputs.append(test[input_key])
        outputs.append(test[output_key])
        if kind in _CALLS and "" in names:
            raise Malformed(
                "bad_tests", "calls of a function that is not named, or tests of both styles"
            )
    if len(names) > 1:
        raise Malformed(
            "bad_tests", f"tests of several functions or both styles: {', '.join(sorted(names))}"
        )
    return pair_tests(
        inputs,
        outputs,
        fn_name=names.pop(),
        platform=platform,
        code=code,
    )


def _find_keys(test: Mapping[str, Any], number: int) -> tuple[str, str]:
    """Return the keys of a test's input and output; Malformed if it lacks one."""
    input_key = next((key for key in _INPUT_KEYS if key in test), None)
    output_key = next((key for key in _OUTPUT_KEYS if key in test), None)
    if input_key is not None and output_key is not None:
        return input_key, output_key
    missing = []
    if input_key is None:
        missing.append("input")
    if output_key is None:
        missing.append("output")
    present = shorten(", ".join(map(str, test)) or "no key")
    raise Malformed(
        "bad_tests",
        f"test {number} has no {' and no '.join(missing)}, but {present}; "
        "name its keys, as in columns input=stdin,output=stdout",
    )


def _find_function(test: Mapping[str, Any], kind: str, default: str) -> str:
    """Return the name of the function that a test calls; empty for a test of a whole program."""
    metadata = test.get("metadata")
    if isinstance(metadata, Mapping):
        default = _find_name(metadata, default)
    # Of a test of a whole program the keys are not read: it may have any.
    if kind not in _CALLS and kind:
        return ""
    return _find_name(test, default)


def _call_tests(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    fn_name: str,
    platform: str,
    code: str,
) -> DecodedTests:
    """Return the tests of calls, from arguments and expected values, or from their texts."""
    # All or none: among other values, a text is a value itself.
    are_texts = all(isinstance(item, str) for item in (*inputs, *outputs))
    is_wrapped = not are_texts and _are_wrapped(outputs, platform, code, fn_name)
    tests = []
    try:
        for given, expected in zip(inputs, outputs, strict=True):
            if are_texts:
                tests.append(_read_call(given, expected))
                continue
            arguments = given if isinstance(given, list) else [given]
            value = expected[0] if is_wrapped else expected
            tests.append(write_call(_as_lists(arguments), value))
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    notes: tuple[Note, ...] = ()
    if is_wrapped:
        notes = (("tests", "expected values taken out of lists of one"),)
    return DecodedTests(tuple(tests), fn_name, notes=notes)


def _read_call(given: str, expected: str) -> TestCase:
    """Return the test of a call, from its arguments, one a line, and its value.

    All are JSON or Python literals.

    Raises:
        NotACall: one is neither.
    """
    lines = [line for line in given.split("\n") if line.strip()]
    try:
        for text in (*lines, expected):
            read_json(text)
    except ValueError:
        arguments = []
        for number, line in enumerate(lines, 1):
            arguments.append(_read_value(line, f"argument {number}"))
        return write_call(_as_lists(arguments), _read_value(expected, "the expected value"))
    # All are JSON already: they stay as they are, without a copy.
    return TestCase(input=given, output=expected)


def read_literal_calls(tests: Sequence[TestCase]) -> tuple[TestCase, ...]:
    """Return the tests of a function with Python literals written as JSON.

    Raises:
        NotACall: a value is neither a literal nor JSON.
    """
    read = []
    for test in tests:
        call = _read_call(test.input, test.output)
        read.append(test.model_copy(update=dict(call)))
    return tuple(read)


def _read_value(text: str, what: str) -> Any:
    """Return the value of a text, JSON or a Python literal; NotACall if it is neither.

    Args:
        what: names the value in the error.
    """
    try:
        return read_literal(text)
    except ValueError:
        shown = shorten(text.strip(), 40)
        raise NotACall(f"{what} is neither JSON nor a Python literal: {shown}") from None


def _as_lists(value: Any) -> Any:
    """Return a value with its tuples as lists, as a function is given them.

    Sets and the like are left as they are.
    """
    if isinstance(value, list | tuple):
        return [_as_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_lists(held) for key, held in value.items()}
    return value


def read_lines(text: str) -> list[Any]:
    """Return the arguments in a text, one a line, as JSON or Python literals.

    Raises:
        ValueError: one is neither.
    """
    return [read_literal(line) for line in text.split("\n") if line.strip()]


def _are_wrapped(
    outputs: Sequence[Any],
    platform: str,
    code: str,
    fn_name: str,
) -> bool:
    """Whether expected values are wrapped in lists of one, as on Codewars.

    They are not if the code says that the function returns such lists.
    """
    if platform in ("leetcode", "hackerrank"):
        return False
    if not all(isinstance(item, list) and len(item) == 1 for item in outputs):
        return False
    head = find_head(code, fn_name)
    depth = None
    if head is not None and head.returns is not None:
        depth = _depth_of(head.returns)
    if depth is None:
        return True
    # A list that the function returns stands in one more; `list` alone does not say what is in it.
    return all(_depth_of_value(item) > depth for item in outputs)


def _depth_of(annotation: ast.expr) -> int | None:
    """Return how many lists are inside one another in an annotation.

    0 for no list; None for an annotation that says nothing.
    """
    match annotation:
        case ast.Constant(value=str(text)):
            return _depth_of_text(text)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if name.lower() in ("any", "object", "none"):
                return None
            return 1 if name.lower() in _LISTS else 0
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inside):
            items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            deepest = _deepest(items) or 0
            if name.lower() in _LISTS:
                return 1 + deepest
            # These stand around a type, and are no list themselves.
            return deepest if name in ("Optional", "Union") else 0
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _deepest([left, right])
    return None


def _depth_of_text(annotation: str) -> int | None:
    """Return the depth of an annotation that is written as a text."""
    tree = parse_python(annotation)
    if tree is None or len(tree.body) != 1:
        return None
    (statement,) = tree.body
    return _depth_of(statement.value) if isinstance(statement, ast.Expr) else None


def _deepest(annotations: Sequence[ast.expr]) -> int | None:
    """Return the largest depth of some annotations; None if none says anything."""
    deepest = None
    for annotation in annotations:
        depth = _depth_of(annotation)
        if depth is not None and (deepest is None or depth > deepest):
            deepest = depth
    return deepest


def _depth_of_value(value: Any) -> int:
    """Return how many lists are inside one another at the start of a value."""
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    return depth


def _stream(value: Any) -> str:
    """Return an input or output as one text; Malformed if it is neither text nor lines of it.

    A list of lines is joined.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    raise Malformed("bad_tests", f"an input or output is {type(value).__name__}, not text")


def complete(
    build: Callable[[DecodedTests], Candidate], decode: Callable[[], DecodedTests]
) -> Candidate:
    """Return `build(decode())`.

    If tests are not convertible, Malformed carries the candidate without tests.
    """
    try:
        tests = decode()
    except Malformed as error:
        if error.reason != "tests_not_convertible":
            raise
        raise Malformed(error.reason, error.detail, build(DecodedTests())) from None
    return build(tests)
