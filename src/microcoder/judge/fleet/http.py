"""Client of judges over HTTP, which sends again what overload or a lost connection cost.

Each service gets as many programs as it has workers, and some to wait there; its verdicts come back
one by one.

| what happened                         | what the caller sees                                     |
|---------------------------------------|----------------------------------------------------------|
| a verdict                             | it at once; `sandbox_fault` where a sandbox failed       |
| no connection, silence, a reset, 429, | nothing: unjudged programs are sent again, there or to   |
| 500 - 504                             | another service; one that is gone gets none until its    |
|                                       | `/v1/about` answers again                                |
| a program's own requests fail beyond  | `sandbox_fault` verdicts that name the service           |
| patience                              |                                                          |
| no verdict for the patience, or no    | `EvaluatorFault` that says what is wrong with each       |
| service left                          |                                                          |
| 401, 403, 404                         | `ConfigError`                                            |
| any other 4xx                         | `DataError` with the service's words                     |
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import TypeAdapter

from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.types import Problem
from microcoder.judge.fleet.fleet import Backend
from microcoder.judge.fleet.remote import (
    Failure,
    JudgeRequest,
    Load,
    ProgramMessage,
    RemoteJudge,
    VerdictLine,
)
from microcoder.judge.run.executions import longest_wall_seconds
from microcoder.judge.run.timing import CHECKER_SECONDS
from microcoder.judge.run.workers import Work

CONFIGURATION = (401, 403, 404)
"""Statuses of a wrong token or address: no other request would do better."""
_TOKEN_REFUSED = (401, 403)
"""Those of a wrong token."""
_AGAIN = (0, 429, 500, 502, 503, 504)
"""Statuses after which a request is sent again; 0: no answer."""
_GONE = (0, 502, 503)
"""Statuses after which a service gets nothing until its `/v1/about` answers."""
_LOST = (500, 504)
"""Statuses that count against the programs of the request: they may have caused it."""
_WAITING_PER_WORKER = 1
"""Programs that a service is given beyond those it runs, for each worker."""
_WAITING = 16
"""The same, however many workers it has."""
_EXTRA_SECONDS = 30.0
"""Time beyond the `request_seconds` that the service states, before its answer is given up."""
_MAX_WAIT_SECONDS = 20.0
"""Longest pause after a failed request."""
_MOST_BATCH = 32
"""Most programs in a request."""
_MOST_CONNECTIONS = 256
"""Most connections at the same time, for each service that there is."""
_CONNECT_SECONDS = 10.0
"""Time-out to connect."""
_SILENCE_SECONDS = 60.0
"""Time-out between two lines of an answer: a working service sends one every ten seconds at
least."""
_ASK_AGAIN_SECONDS = 0.25
"""Pause between two attempts to reach services when a client starts."""
_LINE: TypeAdapter[VerdictLine | Load | Failure] = TypeAdapter(VerdictLine | Load | Failure)
_LOG = logging.getLogger(__name__)

Check = Callable[[str, Mapping[str, Any]], None]
"""Called with a service's address and its `/v1/about`; raises ConfigError to refuse it."""


class TokenRefused(ConfigError):
    """A service refused the token, or needs one."""


@dataclass(eq=False, slots=True)
class Unserved(Exception):
    """A request that failed, at once or before all its verdicts came."""

    status: int
    """HTTP status; 0 if there was no answer."""
    words: str
    retry_after_seconds: float | None = None
    was_taken: bool = False
    """Whether the service had begun to answer the request."""

    @property
    def is_final(self) -> bool:
        """Whether sending the request again would not help."""
        return self.status not in (*_AGAIN, *CONFIGURATION)

    def __str__(self) -> str:
        return f"{self.status}: {self.words}" if self.status else self.words


class _Service(Backend):
    def __init__(self, url: str, client: JudgeClient) -> None:
        super().__init__()
        self.url = url
        self._client = client
        self.about: dict[str, Any] = {}
        """The answer of `/v1/about`; empty before the first."""
        self.queued = 0
        """Programs of all clients at the service, as it last reported."""
        self.num_failures = 0
        """Failed requests in a row."""
        self.rests_until = 0.0
        self.trouble = "it was not asked yet"

    @property
    def most(self) -> int:
        most = self.workers * (1 + _WAITING_PER_WORKER) + _WAITING
        return int(min(most, self.limit("max_queued", most)))

    def limit(self, name: str, default: float) -> float:
        """Return a limit that the service states in `/v1/about`; the default if it states none."""
        return self.about.get("limits", {}).get(name, default)

    def longest_seconds(self, problem: Problem) -> float:
        """Return the wall seconds that a program may take there.

        They are those of its tests, checkers and interactors at their limits, or of a request.
        """
        scale = self.about.get("time_scale", 1.0)
        seconds = longest_wall_seconds(problem.time_limit_seconds * scale)
        if problem.checker.type == "program":
            seconds += longest_wall_seconds(CHECKER_SECONDS * scale)
        if problem.interactor is not None:
            seconds += longest_wall_seconds(CHECKER_SECONDS * scale)
        most = self.limit("request_seconds", 600.0) + _EXTRA_SECONDS
        return min(len(problem.tests) * seconds, most)

    def next_batch_size(self, num_waiting: int, num_backends: int) -> int:
        if self.rests_until > time.monotonic():
            return 0
        # Not one by one if many wait and many run.
        wanted = max(
            1,
            min(
                _MOST_BATCH,
                self.most // 4,
                -(-num_waiting // num_backends),
            ),
        )
        return wanted if len(self.held) + wanted <= self.most else 0

    def send(self, batch: Sequence[Work]) -> None:
        self._client._begin(self._client._ask(self, batch))

    async def ask(self, items: Sequence[Work]) -> AsyncGenerator[VerdictLine | Load]:
        """Send programs in one request; yield the lines of its answer, verdicts and loads.

        Raises:
            Unserved: it failed, or its answer ended early.
        """
        headers = {"Content-Type": "application/json"}
        try:
            content = write_request(items)
        except ValueError as error:
            raise Unserved(422, f"JSON cannot hold it: {error}"[:300]) from None
        request = self.request("POST", "/v1/judge/stream", content=content, headers=headers)
        async with request as answer:
            unfinished = b""
            async for data in answer.aiter_bytes():
                # Whole lines; a text may hold what Python and httpx also take for an end of line.
                *texts, unfinished = (unfinished + data).split(b"\n")
                for text in texts:
                    line = _LINE.validate_json(text)
                    if isinstance(line, Failure):
                        raise Unserved(
                            line.status, line.detail, line.retry_after_seconds, was_taken=True
                        )
                    yield line

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and yield its answer, to be read within the block.

        Raises:
            Unserved: it failed.
        """
        was_taken = False
        try:
            async with self._client._http.stream(
                method,
                self.url + path,
                content=content,
                headers=headers,
            ) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise _refusal_of(answer)
                was_taken = True
                yield answer
        except httpx.TransportError as error:
            words = f"{type(error).__name__}: {error}".rstrip(": ")
            raise Unserved(0, words, was_taken=was_taken) from None
        except ValueError as error:
            words = f"its answer cannot be read: {error}"[:300]
            raise Unserved(0, words, was_taken=was_taken) from None


def _refusal_of(answer: httpx.Response) -> Unserved:
    """Return the failure that an unsuccessful answer reports; the answer was read already."""
    stated = answer.headers.get("Retry-After", "")
    try:
        words = str(answer.json()["detail"])[:500]
    except (ValueError, KeyError, TypeError):
        # Not a judge's own answer, but perhaps a proxy's.
        words = answer.text[:200]
    retry_after_seconds = float(stated) if stated.isdigit() else None
    return Unserved(answer.status_code, words, retry_after_seconds)


class JudgeClient(RemoteJudge[_Service]):
    """Client of one service or several, thread-safe; use it as a context manager, or call
    `close`."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        patience_seconds: float = 300.0,
        check: Check = lambda url, about: None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: the service's address, such as `http://judge:8077`, or several of them.
            token: accepted by all of them.
            patience_seconds: time without any verdict after which all programs are given up, and
                time after which a program is given up that keeps failing. A service's sign of life
                does not count as a verdict. If a program that was sent may take longer by its
                limits (wall time of all its tests), that longer time is allowed without a verdict,
                at most `--request-seconds` of its service and 30 s.
            check: called for each service before it gets programs, also after an outage.

        Raises:
            ConfigError: an argument is wrong.
        """
        urls = [url] if isinstance(url, str) else list(url)
        for address in urls:
            if not address.startswith(("http://", "https://")):
                raise ConfigError(f"url = {address!r}; use http://host:port")
        urls = [address.rstrip("/") for address in urls]
        if not urls or len(set(urls)) < len(urls):
            raise ConfigError(f"url = {urls}; name one service or several, each once")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.AsyncClient(
            headers=headers,
            # A request may wait for a connection as long as the others take.
            timeout=httpx.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=_MOST_CONNECTIONS * len(urls)),
            # A certificate authority of one's own is named there; proxies of the environment are
            # not for judges.
            verify=httpx.create_ssl_context(),
            trust_env=False,
        )
        super().__init__()
        self._patience_seconds = patience_seconds
        self._check = check
        self._heard = time.monotonic()
        """When a verdict came last, or somebody could first judge."""
        self.outages: Counter[str] = Counter()
        """How often each service was lost, by address."""
        self._backends = {address: _Service(address, self) for address in urls}
        self._loop.call_soon_threadsafe(lambda: self._begin(self._watch()))

    def about(self, *, patience_seconds: float | None = None) -> dict[str, Any]:
        """Return the `/v1/about` of the first service that answers; all are asked, and checked.

        Raises:
            ConfigError: one refuses the token, is not a judge, or does not pass the check.
            EvaluatorFault: none was reached, or this client is closed.
        """
        self._check_open()
        if patience_seconds is None:
            patience_seconds = self._patience_seconds
        meeting = self._meet_all(patience_seconds)
        return asyncio.run_coroutine_threadsafe(meeting, self._loop).result()

    # All below runs in the thread of the event loop, which alone gives to services and changes what
    # is known of them.

    async def _stop(self) -> None:
        await super()._stop()
        await self._http.aclose()

    async def _watch(self) -> None:
        """Fail all programs when no verdict has come for too long."""
        while True:
            await asyncio.sleep(min(1.0, self._patience_seconds / 10))
            now = time.monotonic()
            services = list(self._backends.values())
            # Programs that were sent may take the time that their limits allow.
            longest = self._list_longest(services)
            patience = max(self._patience_seconds, *longest, 0.0)
            if not self._queue and not longest:
                self._heard = now
            elif now - self._heard > patience:
                silence = f"no judge service gave a verdict for {patience:g} s: {self._troubles()}"
                self._give_all_up(EvaluatorFault(f"{silence}; start one again"))
                self._heard = time.monotonic()

    def _list_longest(self, services: Sequence[_Service]) -> list[float]:
        """Return the seconds that each wanted program which was sent may take at its service."""
        longest = []
        for service in services:
            for item in service.held.values():
                if item.is_wanted():
                    longest.append(service.longest_seconds(item.problem.problem))
        return longest

    def _troubles(self) -> str:
        return "; ".join(f"{service.url}: {service.trouble}" for service in self._backends.values())

    def _hand_out(self) -> None:
        """Give programs to services; ask unavailable ones for their `/v1/about` meanwhile."""
        for service in self._backends.values():
            if self._queue and not service.workers and service.rests_until <= time.monotonic():
                service.rests_until = float("inf")
                self._begin(self._find(service))
        super()._hand_out()

    async def _ask(
        self,
        service: _Service,
        items: Sequence[Work],
    ) -> None:
        """Send programs in one request, or in several if it is refused.

        Those without a verdict are queued again.
        """
        try:
            async with aclosing(service.ask(items)) as lines:
                async for line in lines:
                    self._note_line(service, items, line)
                    if isinstance(line, Load) and not _list_wanted(items):
                        # Nobody waits for what it has.
                        break
            if _list_wanted(items):
                raise Unserved(0, "its answer ended before its end", was_taken=True)
        except Unserved as refused:
            left = _list_wanted(items)
            half = len(left) // 2
            if refused.is_final and half:
                # Too many, or one of them is refused: smaller requests show which.
                items = [item for item in items if item not in left]
                await self._ask(service, left[:half])
                await self._ask(service, left[half:])
            else:
                self._note_refusal(service, left, refused)
        self._lose(service, "", items, is_counted=False)

    def _note_line(
        self,
        service: _Service,
        items: Sequence[Work],
        line: VerdictLine | Load,
    ) -> None:
        if isinstance(line, Load):
            # Programs of other clients are judged before ours.
            if line.queued < service.queued:
                self._heard = time.monotonic()
            service.queued = line.queued
            if service.workers:
                # One that was lost meanwhile stays so until its `/v1/about` answers.
                service.workers = line.workers
        elif line.index < len(items):
            self._heard = time.monotonic()
            service.num_failures = 0
            self._land(service, items[line.index].number, line.verdict)

    def _note_refusal(
        self,
        service: _Service,
        items: Sequence[Work],
        refused: Unserved,
    ) -> None:
        """Queue the programs of a failed request again, or answer them if its error is final."""
        if refused.is_final or refused.status in CONFIGURATION:
            kind = ConfigError if refused.status in CONFIGURATION else DataError
            for item in items:
                item.finish(kind(f"{service.url} refused it ({refused.status}): {refused.words}"))
            return
        if refused.status == 504 and refused.was_taken:
            # It ended what takes longer than it allows: that is these programs' matter.
            self._heard = time.monotonic()
        self._rest(service, refused)
        is_counted = refused.was_taken or refused.status in _LOST
        self._lose(service, service.trouble, items, is_counted=is_counted)

    def _find_end(
        self,
        backend: _Service,
        item: Work,
        why: str,
    ) -> str:
        is_over = time.monotonic() - item.lost_since > self._patience_seconds
        return f"{backend.url}: failed {item.num_losses} times; {why}" if is_over else ""

    def _rest(self, service: _Service, refused: Unserved) -> None:
        """Send nothing to a service for a while after a failed request.

        A lost service must first answer `/v1/about`.
        """
        service.trouble = str(refused)
        # Spread out, so that those who were refused together do not come back together.
        if refused.retry_after_seconds is None:
            wait_seconds = min(0.25 * 2 ** min(service.num_failures, 8), _MAX_WAIT_SECONDS)
            wait_seconds *= random.uniform(0.5, 1.0)
        else:
            wait_seconds = min(refused.retry_after_seconds, _MAX_WAIT_SECONDS)
            wait_seconds *= random.uniform(0.5, 1.5)
        # One that was never there is named as well, once: its address may be mistyped.
        if refused.status in _GONE and (service.workers or not service.num_failures):
            self._note_outage(service)
        service.num_failures += 1
        service.rests_until = time.monotonic() + wait_seconds
        self._loop.call_later(wait_seconds, self._hand_out)

    def _note_outage(self, service: _Service) -> None:
        service.workers = 0
        self.outages[service.url] += 1
        _LOG.warning(
            "the judge %s is left out until it is there again: %s", service.url, service.trouble
        )

    async def _find(self, service: _Service) -> None:
        """Ask a service that is to get programs what it is; all fail if it may not be used."""
        try:
            await self._meet(service)
        except ConfigError as error:
            service.trouble = str(error)
            service.rests_until = 0.0
            self._give_all_up(error)

    async def _meet(self, service: _Service) -> bool:
        """Ask a service for its `/v1/about`, and open it; return whether it was reached.

        Raises:
            ConfigError: it is not a judge that may be used.
        """
        try:
            about = await self._look_at(service)
        except Unserved as refused:
            self._rest(service, refused)
            return False
        if not service.about:
            # From now on somebody could judge.
            self._heard = time.monotonic()
        service.about = about
        service.trouble = "alive, but without a verdict"
        service.rests_until = 0.0
        self._open(service, about["workers"])
        return True

    async def _look_at(self, service: _Service) -> dict[str, Any]:
        """Return a service's `/v1/about`, once it passed the check.

        Raises:
            Unserved: it was not reached.
            ConfigError: it is not a judge that may be used.
        """
        try:
            async with service.request("GET", "/v1/about") as answer:
                text = await answer.aread()
        except Unserved as unserved:
            if unserved.status in _AGAIN:
                raise
            kind = TokenRefused if unserved.status in _TOKEN_REFUSED else ConfigError
            raise kind(f"{service.url} refused it ({unserved.status}): {unserved.words}") from None
        try:
            about = json.loads(text)
        except ValueError:
            raise ConfigError(f"{service.url} is not a judge: its /v1/about is not JSON") from None
        has_limits = isinstance(about, dict) and isinstance(about.get("limits"), dict)
        if not has_limits or "workers" not in about:
            raise ConfigError(
                f"{service.url} is not a judge: its /v1/about says neither limits nor workers"
            )
        self._check(service.url, about)
        return about

    async def _meet_all(self, patience_seconds: float) -> dict[str, Any]:
        """Meet all services; ask again for as long as some cannot be reached.

        Returns:
            The `/v1/about` of the first.
        """
        services = list(self._backends.values())
        missing = services
        give_up = time.monotonic() + patience_seconds
        while True:
            are_met = await asyncio.gather(*map(self._meet, missing))
            missing = [
                service for service, is_met in zip(missing, are_met, strict=True) if not is_met
            ]
            if not missing or time.monotonic() + _ASK_AGAIN_SECONDS > give_up:
                break
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
        if len(missing) == len(services):
            raise EvaluatorFault(self._troubles())
        return next(service.about for service in services if service not in missing)


def _list_wanted(items: Sequence[Work]) -> list[Work]:
    """Return the programs whose verdict somebody still waits for."""
    return [item for item in items if item.is_wanted()]


def write_request(items: Sequence[Work]) -> bytes:
    """Return the request's JSON; each problem is in it once."""
    problems = {item.problem.number: item.problem.problem for item in items}
    positions = {number: position for position, number in enumerate(problems)}
    programs = tuple(
        ProgramMessage.model_construct(
            problem=positions[item.problem.number],
            code=item.program.code,
            reason=item.program.reason,
        )
        for item in items
    )
    request = JudgeRequest.model_construct(problems=tuple(problems.values()), programs=programs)
    return request.model_dump_json().encode()
