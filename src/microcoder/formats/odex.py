"""ODEX (`zorazrw/odex`): one-line answers in four natural languages."""

from __future__ import annotations

from microcoder.formats.calls import NotACall
from microcoder.formats.candidates import Candidate
from microcoder.formats.claims import check_tests, claims_checker, claims_harness
from microcoder.formats.encodings import DecodedTests, asserted_tests, complete
from microcoder.formats.programs import python_solutions
from microcoder.formats.row import Malformed, Row


def read_odex(row: Row) -> Candidate:
    """Read a task: `intent` is asked, `prompt` and `suffix` stand around the answer."""
    statement, prompt, entry = row.statement("intent"), row.text("prompt"), row.text("entry_point")
    reference = f"{prompt}{row.optional('canonical_solution')}{row.optional('suffix')}"
    libraries = row.tags("library")
    source = row.optional("test_start") + "".join(row.texts("test"))

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            notes=tests.notes,
            url=f"https://stackoverflow.com/questions/{row.name('task_id')}",
            platform="stackoverflow",
            title=row.name("task_id"),
            tags=libraries,
            starter_code=prompt,
            solutions=python_solutions([reference]),
            **tests.fields,
        )

    if row.is_judged:
        try:
            tests = check_tests(source, entry=entry)
        except NotACall as error:
            raise Malformed("tests_not_convertible", str(error)) from None
        return build(DecodedTests(tuple(tests), entry, claims_checker(), harness=claims_harness()))
    return complete(build, lambda: asserted_tests([source], fn_name=entry, code=prompt, called=("candidate",)))
