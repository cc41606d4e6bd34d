"""Formats that are a table: which column holds what. Most published sets are no more than that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from microcoder.formats.candidates import Candidate, DecodedTests, Solution
from microcoder.formats.encodings import asserted_tests, complete, decode_tests
from microcoder.formats.programs import find_platform, python_solutions
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import read_mebibytes, read_seconds

Names = str | tuple[str, ...]
"""A column, or several of which the first that is there counts; `a.b` is inside an object, also one written as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where a row has what: the reader of a format, as in `Columns(statement="question", tests="input_output")`."""

    statement: Names
    """A text, or a chat, of which the user's last message is taken."""
    tests: Names | Callable[[Row], object] = ()
    """In any of the ways that `encodings` lists, or a function that returns them so."""
    assertions: Names = ()
    """A Python program of assertions, in place of tests."""
    called: tuple[str, ...] = ()
    """Further names under which assertions call the function."""
    fn_name: Names = ()
    url: Names = ()
    platform: Names = ()
    """Counts if the URL is of no known platform."""
    title: Names = ()
    date: str = ""
    tags: tuple[str, ...] = ()
    """All of these."""
    difficulty: Names = ()
    starter_code: Names = ()
    solutions: Names | Callable[[Row], tuple[Solution, ...]] = ()
    """Right programs in Python: a text, or a list of texts, also one written as text; see `read_program`."""
    time_limit: Names = ()
    """Seconds, unless it names another unit."""
    memory_limit: Names = ()
    """MiB, unless it names another unit; numbers from 65536 on are bytes."""
    prepare: Callable[[Row], Row] | None = None
    """Called first: adds columns, or rejects the row."""
    also: Mapping[str, Callable[[Row], Any]] = field(default_factory=dict)
    """Fields of a candidate that no column holds as they are; `notes` are for the lineage."""

    def __call__(self, row: Row) -> Candidate:
        """Read a row.

        Raises:
            Malformed: why it is none; with the candidate where only its tests could not be read.
        """
        row = self.prepare(row) if self.prepare else row
        statement, notes = row.asked(*_listed(self.statement))
        url = row.optional(*_listed(self.url)).strip()
        fields: dict[str, Any] = {
            "url": url,
            "platform": find_platform(url, row.name(*_listed(self.platform))),
            "title": row.name(*_listed(self.title)),
            "date": row.date(self.date) if self.date else "",
            "tags": row.tags(*self.tags),
            "platform_difficulty": row.name(*_listed(self.difficulty)),
            "starter_code": row.optional(*_listed(self.starter_code)) or None,
            "solutions": self._read_solutions(row),
            "time_limit_seconds": read_seconds(row.name(*_listed(self.time_limit))),
            "memory_limit_mib": read_mebibytes(row.name(*_listed(self.memory_limit))),
            **{name: read(row) for name, read in self.also.items()},
        }
        own_notes = fields.pop("notes", ())

        def build(tests: DecodedTests) -> Candidate:
            return row.candidate(statement, replace(tests, notes=(*notes, *tests.notes, *own_notes)), **fields)

        return complete(build, lambda: self._read_tests(row, fields["platform"], fields["solutions"]))

    def _read_solutions(self, row: Row) -> tuple[Solution, ...]:
        if callable(self.solutions):
            return self.solutions(row)
        name = next(filter(row.has, _listed(self.solutions)), None)
        return python_solutions(row.listed(name)) if name else ()

    def _read_tests(self, row: Row, platform: str, solutions: tuple[Solution, ...]) -> DecodedTests:
        fn_name = row.optional(*_listed(self.fn_name))
        # Where starter code was renamed since, the solution has the names that tests use.
        codes = [row.optional(*_listed(self.starter_code)), *(one.code for one in solutions[:1])]
        if not self.assertions:
            found = self.tests(row) if callable(self.tests) else row.decoded(*_listed(self.tests))
            code = next(filter(None, codes), "")
            return decode_tests(found, fn_name=fn_name, platform=platform, code=code, is_judged=row.is_judged)
        source = row.text(*_listed(self.assertions))
        codes = [code for code in codes if f"def {fn_name}(" in code] or codes[:1]
        for code in codes:
            try:
                return asserted_tests([source], fn_name=fn_name, code=code, called=self.called, is_judged=row.is_judged)
            except Malformed:
                if code is codes[-1]:
                    raise
        raise AssertionError("the last one returned or raised")


def read_program(row: Row, *, names: Sequence[str]) -> tuple[Solution, ...]:
    """Return the first of these fields that says something as one program, which may begin as a list does."""
    return python_solutions([row.optional(*names)])


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
