"""Made inputs and tests, and how the programs that make and check them are run."""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from microcoder.data.formats.candidates import Origin
from microcoder.data.testgen.settings import LARGE_BYTES, PROGRAM_MIB
from microcoder.judge import Execution, Invocation, Judge
from microcoder.judge.core.types import Program, TestCase

COST_STEPS = (0.5, 2.0, 10.0)
"""Seconds that a test costs are rounded up to these, so that noise changes no choice."""
_PROGRAM_SECONDS = 20.0
"""CPU seconds of a generator or validator (our choice)."""


class MadeInput(NamedTuple):
    """An input, and how it was made."""

    text: str
    origin: Origin
    group: str = ""

    def certified(self, certificate: str) -> "MadeInput":
        """Return the input with a certificate of its validity."""
        origin = self.origin.model_copy(update={"certificate": certificate})
        return self._replace(origin=origin)


@dataclass(frozen=True, slots=True)
class MadeTest:
    """A test that all references pass."""

    test: TestCase
    origin: Origin
    group: str = ""
    seconds: float = 0.0
    """CPU seconds of the slowest reference, rounded up."""

    @property
    def is_large(self) -> bool:
        """Whether the test is meant to catch slow programs."""
        # A short input may ask for long work.
        return len(self.test.input) > LARGE_BYTES or self.seconds > COST_STEPS[0]


def start(
    judge: Judge,
    program: Program,
    *,
    stdin: str = "",
    arguments: tuple[str, ...] = (),
    seconds: float = _PROGRAM_SECONDS,
) -> Future[Execution]:
    """Start a program in the sandbox without judging it; return the future of its execution."""
    # Lone surrogates stand for bytes that are no text.
    invocation = Invocation(
        program,
        stdin=stdin.encode("utf-8", "surrogatepass"),
        arguments=arguments,
        cpu_seconds=seconds,
        memory_limit_mib=PROGRAM_MIB,
    )
    return judge.submit_run(invocation)
