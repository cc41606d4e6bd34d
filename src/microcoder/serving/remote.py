"""One judge service as its client sees it: what it is, what it has to do, and what it says, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import TypeAdapter

from microcoder.errors import ConfigError
from microcoder.serving.messages import Failure, JudgeRequest, Landed, Load, ProgramMessage
from microcoder.serving.queued import QueuedProgram

CONFIGURATION = (401, 403, 404)
_AGAIN = (0, 429, 500, 502, 503, 504)
"""0 stands for no answer."""
_GONE, _LOST = (0, 502, 503), (500, 504)
_WAITING_PER_WORKER, _WAITING = 1, 16
"""Programs that a service is given to wait there: per worker, and besides."""
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
    num_held: int = 0
    """Our programs there."""
    num_of_others: int = 0
    """Programs of other clients, as it said last."""
    num_requests: int = 0
    num_failures: int = 0
    """In a row."""
    rests_until: float = 0.0
    trouble: str = "it was not asked yet"
    latest: int = 0
    """The problem of the program that it was given last."""

    @property
    def num_places(self) -> int:
        """How many of our programs it is given at most."""
        return min(self.workers * (1 + _WAITING_PER_WORKER) + _WAITING, self.max_queued)

    @property
    def load(self) -> float:
        """What it has to do, per worker."""
        return (self.num_held + self.num_of_others) / self.workers

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

    async def ask(self, items: Sequence[QueuedProgram]) -> AsyncIterator[Landed | Load]:
        """Have programs judged by one request; yield its lines.

        Raises:
            Unserved: it refused, or said nothing more before all was judged.
        """
        was_taken = False
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
