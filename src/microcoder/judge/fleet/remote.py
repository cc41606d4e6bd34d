"""One judge service as its client sees it: what it is, what it has to do, and what it says, line by line."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from pydantic import TypeAdapter

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase
from microcoder.judge.fleet.messages import Failure, JudgeRequest, Landed, Load, ProgramMessage
from microcoder.judge.fleet.queued import NumberedProblem, QueuedProgram

CONFIGURATION = (401, 403, 404)
_AGAIN = (0, 429, 500, 502, 503, 504)
"""0 stands for no answer."""
_GONE, _LOST = (0, 502, 503), (500, 504)
_WAITING_PER_WORKER, _WAITING = 1, 16
"""Programs that a service is given to wait there: per worker, and besides."""
EXTRA_SECONDS = 30.0
"""By which an answer may exceed the time that the service promises."""
_KNOWN = {
    "print(sum(map(int, input().split())))": Outcome.ACCEPTED,
    "a, b = map(int, input().split())\nprint(a + b + (a == 3))": Outcome.WRONG_ANSWER,
    "a, b = map(int, input().split())\nprint(a + b)\nassert a != 3": Outcome.RUNTIME_ERROR,
}
"""Programs that add, or do so but for the second test."""
_LINE: TypeAdapter[Landed | Load | Failure] = TypeAdapter(Landed | Load | Failure)


class TokenRefused(ConfigError):
    """A service wants another token, or one at all."""


@dataclass(eq=False, slots=True)
class Unserved(Exception):
    """A request that was not served, or not to its end."""

    status: int
    """0 if there was no answer."""
    words: str
    retry_after_seconds: float | None = None
    was_taken: bool = False
    """Whether the service had begun with it."""
    is_false: bool = False
    """Whether it said what is known to be false: nothing that it says counts."""

    @property
    def is_final(self) -> bool:
        """Whether sending it again changes nothing."""
        return self.status not in (*_AGAIN, *CONFIGURATION)

    @property
    def is_gone(self) -> bool:
        """Whether the service is not there."""
        return self.status in _GONE

    @property
    def may_be_its_programs(self) -> bool:
        """Whether what was sent may be what the service failed by."""
        return self.was_taken or self.status in _LOST

    def __str__(self) -> str:
        return f"{self.status}: {self.words}" if self.status else self.words


@dataclass(eq=False, slots=True)
class RemoteService:
    """One of the services."""

    url: str
    http: httpx.AsyncClient
    workers: int = 0
    """0 while it is not known to be there."""
    max_queued: int = 0
    """Programs that it takes, of all clients."""
    request_seconds: float = 600.0
    """Within which it answers a request, as it says."""
    time_scale: float = 1.0
    """What it multiplies time limits by, as it says."""
    queued: int = 0
    """Programs of all clients there, as it said last."""
    limits: Mapping[str, float] = field(default_factory=dict)
    held: set[QueuedProgram] = field(default_factory=set)
    """Our programs there, also those that another one has judged meanwhile."""
    num_of_others: int = 0
    """Programs of other clients, as it said last; none once we have no request there, since it says no more."""
    num_requests: int = 0
    num_requested: int = 0
    """Programs in our requests there: it counts them until their request ends, also once judged."""
    num_failures: int = 0
    """In a row."""
    rests_until: float = 0.0
    trouble: str = "it was not asked yet"
    is_false: bool = False
    """It gave a false verdict on a program whose verdict is known; it is asked nothing more."""
    known_at: float = 0.0
    """When it was given programs whose verdicts are known."""
    latest: int = 0
    """The problem of the program that it was given last."""

    @property
    def num_places(self) -> int:
        """How many of our programs it is given at most."""
        return min(self.workers * (1 + _WAITING_PER_WORKER) + _WAITING, self.max_queued)

    @property
    def load(self) -> float:
        """What it has to do, per worker."""
        return (len(self.held) + self.num_of_others) / self.workers

    @property
    def num_free(self) -> int:
        """How many programs it could begin at once."""
        return 0 if self.rests_until > time.monotonic() else self.workers - len(self.held) - self.num_of_others

    async def ask_about(self) -> dict[str, Any]:
        """Return what it is and takes.

        Raises:
            Unserved: it is not there now.
            TokenRefused: it wants another token.
            ConfigError: it is no judge.
        """
        try:
            answer = await self.http.get(f"{self.url}/v1/about")
            await _accept(answer)
            return answer.json()
        except httpx.TransportError as error:
            raise Unserved(0, _name(error)) from None
        except ValueError:
            raise ConfigError(f"{self.url} is no judge: its /v1/about is not JSON") from None
        except Unserved as unserved:
            if unserved.status in _AGAIN:
                raise
            kind = TokenRefused if unserved.status in (401, 403) else ConfigError
            raise kind(f"{self.url} refused it ({unserved.status}): {unserved.words}") from None

    async def ask_known(self) -> AsyncGenerator[Landed | Load]:
        """Have a few programs judged whose verdicts are known, other ones each time; yield the lines.

        Raises:
            Unserved: it did not judge them, or gave a false verdict.
        """
        self.known_at = time.monotonic()
        first, second = random.sample(range(10**6, 10**9), 2)
        tests = (
            TestCase(input=f"{first} 2\n", output=f"{first + 2}\n"),
            TestCase(input=f"3 {second}", output=f"{second + 3}"),
        )
        problem = Problem(
            id="known",
            # The last one tells them apart.
            tests=tests[-min(2, self._find_limit("max_tests"), self._find_limit("max_total_tests")) :],
            time_limit_seconds=min(10.0, self.limits.get("max_cpu_seconds", 10.0)),
            memory_limit_mib=int(min(256, self.limits.get("max_memory_mib", 256))),
        )
        known = NumberedProblem(0, problem, 0)
        items = [QueuedProgram(Program(code), known) for code in _KNOWN]
        size = min(len(items), self._find_limit("max_batch"), self._find_limit("max_queued"))
        for start in range(0, len(items), size):
            async for line in self._ask_and_compare(items[start : start + size]):
                yield line

    def _find_limit(self, name: str) -> int:
        return int(self.limits.get(name, len(_KNOWN)))

    async def _ask_and_compare(self, items: Sequence[QueuedProgram]) -> AsyncGenerator[Landed | Load]:
        async for line in self.ask(items):
            if isinstance(line, Landed) and line.index < len(items):
                item, verdict = items[line.index], line.verdict
                right = _KNOWN[str(item.program.code)]
                if verdict.outcome not in _KNOWN.values():
                    raise Unserved(500, f"{verdict.outcome} for a program with a known verdict: {verdict.detail}"[:300])
                if verdict.outcome is not right:
                    raise Unserved(0, f"FALSE verdicts: {verdict.outcome} for a program that is {right}", is_false=True)
                item.resolve(verdict)
            yield line
        if not all(item.future.done() for item in items):
            raise Unserved(0, "its answer ended before its end", was_taken=True)

    async def ask(self, items: Sequence[QueuedProgram]) -> AsyncGenerator[Landed | Load]:
        """Have programs judged by one request; yield its lines.

        Raises:
            Unserved: it refused, or said nothing more before all was judged.
        """
        was_taken = False
        give_up = time.monotonic() + self.request_seconds + EXTRA_SECONDS
        try:
            async with self.http.stream(
                "POST",
                f"{self.url}/v1/judge/stream",
                content=write_request(items),
                headers={"Content-Type": "application/json"},
            ) as answer:
                await _accept(answer)
                was_taken = True
                async for text in _split_lines(answer):
                    line = _LINE.validate_json(text)
                    if isinstance(line, Failure):
                        raise Unserved(line.status, line.detail, line.retry_after_seconds, was_taken=True)
                    yield line
                    if time.monotonic() > give_up:
                        why = f"alive, but not done within its own --request-seconds {self.request_seconds:g}"
                        raise Unserved(0, f"{why} and {EXTRA_SECONDS:g} s", was_taken=True)
        except httpx.TransportError as error:
            raise Unserved(0, _name(error), was_taken=was_taken) from None
        except ValueError as error:
            raise Unserved(0, f"its answer cannot be read: {error}"[:300], was_taken=was_taken) from None


def _name(error: httpx.TransportError) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


async def _split_lines(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Yield whole lines; a text may hold what Python and httpx also take for an end of line."""
    begun = b""
    async for data in answer.aiter_bytes():
        *lines, begun = (begun + data).split(b"\n")
        for line in lines:
            yield line


async def _accept(answer: httpx.Response) -> None:
    """Raise what is no success."""
    if answer.is_success:
        return
    await answer.aread()
    stated = answer.headers.get("Retry-After", "")
    raise Unserved(answer.status_code, _words(answer), float(stated) if stated.isdigit() else None)


def _words(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])[:500]
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]


def write_request(items: Sequence[QueuedProgram]) -> bytes:
    """Return the request; each problem is in it once."""
    problems = {item.known.number: item.known.problem for item in items}
    places = {number: place for place, number in enumerate(problems)}
    programs = tuple(
        ProgramMessage.model_construct(
            problem=places[item.known.number], code=item.program.code, reason=item.program.reason
        )
        for item in items
    )
    request = JudgeRequest.model_construct(problems=tuple(problems.values()), programs=programs)
    return request.model_dump_json().encode("utf-8", "surrogatepass")
