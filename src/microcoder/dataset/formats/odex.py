"""ODEX (`zorazrw/odex`): one-line answers in four natural languages."""

from __future__ import annotations

from microcoder.dataset.candidates import Candidate
from microcoder.dataset.formats.encodings import Tests, asserted_tests, complete
from microcoder.dataset.formats.programs import python_solutions
from microcoder.dataset.formats.row import Row


def read_odex(row: Row) -> Candidate:
    """Read a task: `intent` is asked, `prompt` and `suffix` stand around the answer."""
    statement, prompt, entry = row.statement("intent"), row.text("prompt"), row.text("entry_point")
    reference = f"{prompt}{row.optional('canonical_solution')}{row.optional('suffix')}"
    libraries = row.tags("library")
    source = row.optional("test_start") + "".join(row.texts("test"))

    def build(tests: Tests) -> Candidate:
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

    return complete(build, lambda: asserted_tests([source], fn_name=entry, code=prompt, called=("candidate",)))
