"""Describes a format: its name, the files it reads, how a row is read, which fields identify it.

`Columns` reads formats that are a table, from the column of each field. Most published sets are no
more than that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from microcoder.data.formats.candidates import Candidate, DecodedTests, Solution
from microcoder.data.formats.programs import find_platform, python_solutions
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import asserted_tests, complete, decode_tests
from microcoder.data.formats.values import read_licence, read_mebibytes, read_seconds, shorten
from microcoder.judge.core.errors import explain_fault
from microcoder.judge.languages import known_language

Names = str | tuple[str, ...]
"""A column, or several, of which the first present counts.

`a.b` is inside an object, also inside one written as text.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns hold what; a reader of a format's rows.

    Such as `Columns(statement="question", tests="input_output")`.
    """

    statement: Names
    """The problem statement: a text, or a chat, of which the user's last message is taken."""
    tests: Names | Callable[[Row], object] = ()
    """Tests in any encoding that `microcoder.data.formats.tests` lists, or a function that returns
    such."""
    assertions: Names = ()
    """A Python program of assertions, in place of tests."""
    called: tuple[str, ...] = ()
    """Further names under which assertions call the function."""
    setup: Names = ()
    """Python source that the published harness runs before answer and assertions."""
    fn_name: Names = ()
    url: Names = ()
    platform: Names = ()
    """Name of the platform; used only if the URL is not of a known platform."""
    title: Names = ()
    date: str = ""
    tags: tuple[str, ...] = ()
    """Columns of tags; those of all columns are joined."""
    difficulty: Names = ()
    starter_code: Names = ()
    solutions: Names | Callable[[Row], tuple[Solution, ...]] = ()
    """Right programs in Python: a text, or a list of texts, also one written as text; see
    `read_program`."""
    time_limit: Names = "time_limit"
    """Time limit: a number of seconds, or a text that names its unit."""
    memory_limit: Names = "memory_limit"
    """Memory limit: a number of MiB (from 65536 on: of bytes), or a text that names its unit."""
    prepare: Callable[[Row], Row] | None = None
    """Called before any column is read: returns the row, changed if need be, or raises
    Malformed."""
    also: Mapping[str, Callable[[Row], Any]] = field(default_factory=dict)
    """Further fields of the candidate: name -> function of the row; `notes` gives entries for the
    lineage."""

    def __call__(self, row: Row) -> Candidate:
        """Return the candidate of a row; Malformed if it has none."""
        if self.prepare is not None:
            row = self.prepare(row)
        statement, notes = row.asked(*_listed(self.statement))
        url = row.optional(*_listed(self.url)).strip()
        named_platform = row.name(*_listed(self.platform))
        fields: dict[str, Any] = {
            "url": url,
            "platform": find_platform(url, named_platform),
            "title": row.name(*_listed(self.title)),
            "date": self._read_date(row),
            "tags": row.tags(*self.tags),
            "platform_difficulty": row.name(*_listed(self.difficulty)),
            "starter_code": row.optional(*_listed(self.starter_code)) or None,
            "solutions": self._read_solutions(row),
            "time_limit_seconds": read_seconds(row.name(*_listed(self.time_limit))),
            "memory_limit_mib": read_mebibytes(row.name(*_listed(self.memory_limit))),
            "programming_language": known_language(row.get("language")) or "python",
        }
        for name, read in self.also.items():
            fields[name] = read(row)
        # `also` may give notes, which are no field of a candidate.
        own_notes = fields.pop("notes", ())

        def build(tests: DecodedTests) -> Candidate:
            all_notes = (*notes, *tests.notes, *own_notes)
            return row.candidate(statement, replace(tests, notes=all_notes), **fields)

        def decode() -> DecodedTests:
            return self._read_tests(row, fields["platform"], fields["solutions"])

        return complete(build, decode)

    def _read_date(self, row: Row) -> str:
        return row.date(self.date) if self.date else ""

    def _read_solutions(self, row: Row) -> tuple[Solution, ...]:
        if callable(self.solutions):
            return self.solutions(row)
        names = _listed(self.solutions)
        name = next(filter(row.has, names), None)
        return python_solutions(row.listed(name)) if name else ()

    def _read_tests(
        self,
        row: Row,
        platform: str,
        solutions: tuple[Solution, ...],
    ) -> DecodedTests:
        """Return the tests of a row, from the columns of tests or of assertions."""
        fn_name = row.optional(*_listed(self.fn_name))
        starter_code = row.optional(*_listed(self.starter_code))
        if self.assertions:
            return self._read_assertions(row, fn_name, starter_code, solutions)
        if callable(self.tests):
            value = self.tests(row)
        else:
            value = row.decoded(*_listed(self.tests))
        # A solution has the function's head where no starter code shows it.
        code = starter_code
        if not code and solutions:
            code = solutions[0].code
        return decode_tests(
            value,
            fn_name=fn_name,
            platform=platform,
            code=code,
            is_judged=row.is_judged,
        )

    def _read_assertions(
        self,
        row: Row,
        fn_name: str,
        starter_code: str,
        solutions: tuple[Solution, ...],
    ) -> DecodedTests:
        """Return the tests of a program of assertions, read with the names of some code.

        Where starter code was renamed since, the solution has the names that tests use.
        """
        source = row.text(*_listed(self.assertions))
        setup = ""
        if self.setup:
            setup = row.optional(*_listed(self.setup))
        read = partial(
            asserted_tests,
            [source],
            fn_name=fn_name,
            called=self.called,
            is_judged=row.is_judged,
            setup=setup,
        )
        codes = [starter_code]
        if solutions:
            codes.append(solutions[0].code)
        defining = [code for code in codes if f"def {fn_name}(" in code]
        *others, last = defining or [starter_code]
        for code in others:
            # The last of the codes says what is wrong, if none fits.
            with suppress(Malformed):
                return read(code=code)
        return read(code=last)


def read_program(row: Row, *, names: Sequence[str]) -> tuple[Solution, ...]:
    """Return the first field that is not empty as one program, even if it begins like a list."""
    return python_solutions([row.optional(*names)])


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


PAIRS = '{"inputs": [...], "outputs": [...]}, with "fn_name" where a function is called'
"""Shape of tests in two lists, for error messages."""
LISTED = 'a list of {"input": ..., "output": ...}'
"""Shape of tests in one list, for error messages."""
ASSERTIONS = "Python assertions that call the answer's function"
"""Shape of tests that are assertions, for error messages."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Describes a format whose rows are folders."""

    markers: tuple[str, ...]
    """A folder that holds one of these files is a row."""
    takes: tuple[str, ...] = ("*",)
    """Patterns of the files that are read, relative to that folder."""
    skips: tuple[str, ...] = ()
    """Folders below which nothing is a row, such as tools that come with examples."""


_LONGEST_DIFFICULTY = 40
"""Characters of a difficulty that is taken from a row's own words."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of rows: the files that hold them, how a row is read, which fields identify it."""

    name: str
    about: str
    """Where sets in this format are published."""
    read: Callable[[Row], Candidate]
    folders: Folders | None = None
    """None if rows are lines of JSON, items of a JSON list, or rows of parquet."""
    is_benchmark: bool = False
    """Whether its problems are for decontamination and evaluation, never for training."""
    tests_in: str = ""
    """Names of the fields with tests, for error messages."""
    shape: str = PAIRS
    """Expected form of the tests, in a few words, for error messages."""
    marks: tuple[tuple[str, ...], ...] = ()
    """Sets of fields, each of which identifies a row of this format; `a.b` for a field inside an
    object."""

    def read_row(
        self,
        values: Mapping[str, Any],
        place: str,
        *,
        source: str = "",
        licence: str = "",
        is_judged: bool = False,
    ) -> Candidate:
        """Return the candidate of a raw row, without executing anything of it.

        Args:
            values: the row's fields; for a folder, `name` and `files`, contents by path.
            place: file and place in it, the same in every run.
            source: prefix of ids, where one format is read from several places; by default the
                format's name.
            licence: what the recipe or a known source states, for rows without a `licence` or
                `license` of their own.
            is_judged: read for judging answers, not for a corpus (see `Row.is_judged`).

        Raises:
            Malformed: the row has no candidate.
        """
        # What a row says of itself counts more than what is said of all rows.
        own_licence = read_licence(values.get("licence"))
        if not own_licence:
            own_licence = read_licence(values.get("license"))
        row = Row(
            values,
            id=f"{source or self.name}/{place}",
            dataset=self.name,
            place=place,
            licence=own_licence or licence,
            is_judged=is_judged,
        )
        try:
            candidate = self.read(row)
        except ValidationError as error:
            fault = error.errors()[0]
            reason = "bad_unicode" if fault["type"] == "string_unicode" else "wrong_value"
            where = ".".join(str(part) for part in fault["loc"])
            raise Malformed(reason, explain_fault(fault, where)) from None
        except Malformed as error:
            if error.candidate is not None:
                # It is kept with its rejection, so it must be text that can be written.
                _check_text(error.candidate)
            raise
        except RecursionError:
            raise Malformed("too_deep", "nested too deeply") from None
        candidate = _take_difficulty(candidate, values.get("difficulty"))
        _check_text(candidate)
        return candidate


def _take_difficulty(candidate: Candidate, difficulty: object) -> Candidate:
    """Return the candidate with a row's `difficulty`, if it has none and that is a line of text."""
    if candidate.platform_difficulty or not isinstance(difficulty, str):
        return candidate
    if not difficulty.strip() or "\n" in difficulty:
        return candidate
    words = shorten(difficulty.strip(), _LONGEST_DIFFICULTY)
    return candidate.model_copy(update={"platform_difficulty": words})


def _check_text(candidate: Candidate) -> None:
    """Raise Malformed for lone surrogates, which JSON can escape but UTF-8 cannot encode."""
    try:
        # To write all fields finds a surrogate in any of them.
        candidate.model_dump_json(exclude={"tests"})
        for test in candidate.tests:
            for text in (test.input, test.output):
                # Of large tests no copy is made where none is needed.
                if not text.isascii():
                    text.encode("utf-8")
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise Malformed("bad_unicode", str(error)) from None


def recognise(values: Mapping[str, Any], formats: Iterable[Format]) -> Format | None:
    """Return the format whose marks match most of a row's fields; None if none matches.

    Of equals it is the first. Further fields of the row, and their order, change nothing.
    """
    best = None
    most = 0
    for format in formats:
        matched = _count_matched(values, format)
        # Only more than before: of equals the first stays.
        if matched > most:
            best = format
            most = matched
    return best


def _count_matched(values: Mapping[str, Any], format: Format) -> int:
    """Return how many fields the largest of a format's marks has that is whole in a row."""
    largest = 0
    for mark in format.marks:
        if all(has_field(values, name) for name in mark):
            largest = max(largest, len(mark))
    return largest


def has_field(values: Mapping[str, Any], path: str) -> bool:
    """Whether a field is there and not null; `a.b` also where `a` is an object written as text."""
    name, _, rest = path.partition(".")
    value = values.get(name)
    if value is None or not rest:
        return value is not None
    if isinstance(value, str):
        # Not decoded: it may hold all tests, and is read once it is known what it is.
        quoted = (f'"{rest}"', f"'{rest}'", f'\\"{rest}\\"')
        return any(name in value for name in quoted)
    return isinstance(value, Mapping) and has_field(value, rest)
