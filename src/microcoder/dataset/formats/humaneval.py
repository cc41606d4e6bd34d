"""HumanEval and its kin: HumanEval+, HumanEval-XL, CodeT's CodeContests prompts.

To decontaminate by, not to train on.
"""

from __future__ import annotations

import ast

from microcoder.dataset.candidates import Candidate
from microcoder.dataset.formats.assertions import parse_value
from microcoder.dataset.formats.calls import NotACall, write_call
from microcoder.dataset.formats.encodings import Tests, asserted_tests, complete
from microcoder.dataset.formats.programs import head_of, name_language, python_solutions
from microcoder.dataset.formats.row import Malformed, Row
from microcoder.dataset.formats.text import parse_python

_NATURAL = {
    "English": "en",
    "Chinese": "zh",
    "Russian": "ru",
    "Arabic": "ar",
    "Estonian": "et",
    "Finnish": "fi",
    "Dutch": "nl",
}


def read_humaneval(row: Row) -> Candidate:
    """Read a task: the prompt is both statement and the beginning of the answer."""
    prompt, entry, solution = row.statement("prompt"), row.text("entry_point"), row.optional("canonical_solution")
    language = name_language(row.optional("language")) or "python"
    source = row.optional("test")
    meta = row.inner("meta_data")
    limit = meta.inner("time_limit")
    code = prompt + (solution or "    pass\n")

    def build(tests: Tests) -> Candidate:
        return row.candidate(
            prompt,
            notes=tests.notes,
            title=meta.optional("task_name") or row.name("task_id"),
            natural_language=_NATURAL.get(row.optional("natural_language"), ""),
            programming_language=language,
            platform_difficulty=meta.name("difficulty"),
            time_limit_seconds=limit.number("seconds"),
            starter_code=head_of(code, entry),
            solutions=python_solutions([prompt + solution] if solution.strip() else []),
            **tests.fields,
        )

    return complete(build, lambda: _decode(source, row.optional("assertion"), entry, code))


def read_tables(source: str, fn_name: str) -> Tests | None:
    """Read EvalPlus's tests, two lists `inputs` and `results` that a loop goes through; None where there are none.

    Raises:
        Malformed: the lists are no literals, or differ in length.
    """
    tree = parse_python(source)
    tables: dict[str, ast.expr] = {}
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id="inputs" | "results" as name)], value=value):
                tables[name] = value
    if tables.keys() != {"inputs", "results"}:
        return None
    try:
        inputs, results = parse_value(tables["inputs"]), parse_value(tables["results"])
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    if not isinstance(inputs, list) or not isinstance(results, list) or len(inputs) != len(results):
        raise Malformed("bad_tests", "inputs and results are no lists of one length")
    tests, dropped = [], []
    for given, expected in zip(inputs, results, strict=True):
        try:
            tests.append(write_call(given if isinstance(given, list) else [given], expected))
        except NotACall as error:
            dropped.append(str(error))
    if not tests:
        raise Malformed("tests_not_convertible", "; ".join(dict.fromkeys(dropped)) or "no inputs")
    notes = (("tests", f"{len(dropped)} of {len(inputs)} left out: {dropped[0]}"),) if dropped else ()
    return Tests(tuple(tests), fn_name, notes=notes)


def _decode(source: str, assertion: str, entry: str, code: str) -> Tests:
    if not source.strip() and not assertion.strip():
        return Tests()
    tables = read_tables(source, entry)
    return tables or asserted_tests([source, assertion], fn_name=entry, code=code, called=("candidate",))
