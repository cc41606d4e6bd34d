"""Judges that are reached over HTTP: what is overloaded, restarted or cut off is asked again; a verdict is a verdict.

Programs wait in one queue here. Each service is given as many as it has workers, and some to wait there; its verdicts
come back one by one, and the next programs go to the service that has most room.

| what happened                                   | what the caller sees                                         |
|-------------------------------------------------|--------------------------------------------------------------|
| a verdict                                       | it at once; `sandbox_fault` where a sandbox failed           |
| no connection, silence, a reset, 429, 500 - 504 | nothing: what is not judged is asked again, there or at      |
|                                                 | another service; one that is gone gets nothing until it says |
|                                                 | what it is again                                             |
| a program's own requests fail beyond patience   | `sandbox_fault` verdicts that name the service               |
| verdicts that are late, another service idle    | nothing: it is asked as well, and what comes first counts    |
| a false verdict on a program that is known      | nothing: the service is left out for good, and named         |
| no verdict comes for the patience               | `EvaluatorFault` that says what each of them did             |
| 401, 403, 404                                   | `ConfigError`                                                |
| any other 4xx                                   | `DataError` with the service's words                         |
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx

from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.fleet.messages import Landed, Load
from microcoder.judge.fleet.queued import LATE_SECONDS, Queue, QueuedProgram, QueueJudge, copy_late, longest_seconds
from microcoder.judge.fleet.remote import CONFIGURATION, EXTRA_SECONDS, RemoteService, Unserved

Check = Callable[[str, Mapping[str, Any]], None]
"""Called with a service's address and what it says it is; raises ConfigError to refuse it."""

_MAX_WAIT_SECONDS = 20.0
_CONNECT_SECONDS = 10.0
_JOIN_SECONDS = 10.0
_ASK_AGAIN_SECONDS = 0.25
_KNOWN_EVERY_SECONDS = 600.0
_KNOWN_AT_ONCE = 3
"""Programs with known verdicts that a service is asked about: how often, and how many."""
_LOG = logging.getLogger(__name__)


class JudgeClient(QueueJudge):
    """Asks one service or several; use it as a context manager, or call `close`. Safe for several threads at once."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        batch_size: int = 32,
        connections: int = 256,
        patience_seconds: float = 300.0,
        silence_seconds: float = 60.0,
        check: Check = lambda url, about: None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: the service's address, such as `http://judge:8077`, or several of them.
            token: one that all of them take.
            batch_size: programs in one request, at most.
            connections: requests at the same time, to each, at most.
            patience_seconds: how long no verdict may come, and how long one program may fail, before it is given up.
                That a service says to be there is no verdict. Where a program that is out may take longer by its
                limits (wall time of all its tests), no verdict may come for that time, at most `--request-seconds` of
                its service and 30 s.
            silence_seconds: how long an answer may say nothing; more than the ten seconds after which a service says
                that it is there.
            check: looks at each service before it is given anything, also when it comes back.

        Raises:
            ConfigError: an argument is wrong.
        """
        urls = [url] if isinstance(url, str) else list(url)
        for one in urls:
            if not one.startswith(("http://", "https://")):
                raise ConfigError(f"url = {one!r}; use http://host:port")
        urls = [one.rstrip("/") for one in urls]
        if not urls or len(set(urls)) < len(urls):
            raise ConfigError(f"url = {urls}; name one service or several, each once")
        if batch_size < 1 or connections < 1:
            raise ConfigError(f"batch_size = {batch_size}, connections = {connections}; use 1 or more")
        super().__init__()
        self._batch_size, self._connections = batch_size, connections
        self._patience_seconds = patience_seconds
        self._check = check
        self._queue = Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard = time.monotonic()
        self.num_retries = 0
        """Requests whose programs were sent again."""
        self.outages: Counter[str] = Counter()
        """Times that each service was found gone."""
        self._loop = asyncio.new_event_loop()
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(silence_seconds, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None),
            # A certificate authority of one's own is named there; proxies of the environment are not for judges.
            verify=httpx.create_ssl_context(),
            trust_env=False,
        )
        self._services = [RemoteService(one, self._http) for one in urls]
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge-client", daemon=True)
        self._thread.start()
        self._loop.call_soon_threadsafe(lambda: self._begin(self._watch()))

    def about(self, *, patience_seconds: float | None = None) -> dict[str, Any]:
        """Return what the first service that is there is and takes; all are asked, and checked.

        Raises:
            ConfigError: one wants another token, is none, or does not pass the check.
            EvaluatorFault: none was reached, or this is closed.
        """
        if self._is_closed:
            raise EvaluatorFault("this JudgeClient is closed; make a new one")
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        return asyncio.run_coroutine_threadsafe(self._meet_all(patience), self._loop).result()

    def _put(self, item: QueuedProgram) -> None:
        self._loop.call_soon_threadsafe(self._take, item)

    def _end(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(_JOIN_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_JOIN_SECONDS)
        self._loop.close()

    # All below runs in the thread of the event loop, which alone touches queue and services.

    async def _stop(self) -> None:
        self._for_all(lambda item: item.give_up("this JudgeClient is closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    def _for_all(self, answer: Callable[[QueuedProgram], None]) -> None:
        """Answer every program that is queued or out."""
        for service in self._services:
            for item in service.held:
                answer(item)
        while (item := self._queue.take_suspect() or self._queue.take()) is not None:
            answer(item)

    def _take(self, item: QueuedProgram) -> None:
        self._queue.add(item)
        # Once for all that were put meanwhile.
        if len(self._queue) == 1:
            self._loop.call_soon(self._hand_out)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Give up when no service has answered for too long; see that none hangs or says what is false."""
        while True:
            await asyncio.sleep(min(1.0, self._patience_seconds / 10))
            now = time.monotonic()
            if not self._queue:
                for service, late in copy_late(self._services):
                    self._give(service, late)
            for service in self._services:
                if service.workers and now - service.known_at > _KNOWN_EVERY_SECONDS:
                    service.known_at = now
                    self._begin(self._ask_known_again(service))
            if not self._queue and all(item.future.done() for service in self._services for item in service.held):
                self._heard = now
            elif now - self._heard > (patience := self._find_patience()):
                fault = EvaluatorFault(f"no judge for {patience:g} s: {self._troubles()}; start one again")
                self._for_all(lambda item, fault=fault: item.resolve(fault))
                self._heard = time.monotonic()

    def _find_patience(self) -> float:
        """Return how long no verdict may come: what is out may take its time."""
        longest = (
            min(longest_seconds(item.known.problem, service.time_scale), service.request_seconds + EXTRA_SECONDS)
            for service in self._services
            for item in service.held
            if not item.future.done()
        )
        return max(self._patience_seconds, max(longest, default=0.0))

    def _troubles(self) -> str:
        return "; ".join(f"{service.url}: {service.trouble}" for service in self._services)

    def _hand_out(self) -> None:
        """Give programs to the services that have room, the freest first; look for those that are not known."""
        now = time.monotonic()
        for service in self._services:
            if self._queue and not service.workers and service.rests_until <= now:
                service.rests_until = float("inf")
                self._begin(self._find(service))
        while self._queue:
            able = [service for service in self._services if self._find_room(service, now)]
            if not able:
                return
            service = min(able, key=lambda service: service.load)
            if batch := self._next_batch(service, self._find_room(service, now)):
                self._give(service, batch)

    def _give(self, service: RemoteService, batch: list[QueuedProgram]) -> None:
        service.num_requests += 1
        service.num_requested += len(batch)
        service.held.update(batch)
        for item in batch:
            item.num_holders += 1
            item.since = time.monotonic()
        self._begin(self._ask(service, batch))

    def _take_back(self, service: RemoteService, items: Iterable[QueuedProgram]) -> None:
        """Note that a service has some programs no more."""
        for item in service.held.intersection(items):
            service.held.discard(item)
            item.num_holders -= 1

    def _find_room(self, service: RemoteService, now: float) -> int:
        """Return how many programs may go there now; not one by one if many wait and many run."""
        if not service.workers or service.rests_until > now or service.num_requests >= self._connections:
            return 0
        share = -(-len(self._queue) // len(self._services))
        wanted = max(1, min(self._batch_size, service.num_places // 4, share))
        return wanted if len(service.held) + wanted <= service.num_places else 0

    def _next_batch(self, service: RemoteService, size: int) -> list[QueuedProgram]:
        # Alone, what services may be lost by.
        if suspect := self._queue.take_suspect():
            return [suspect]
        batch: list[QueuedProgram] = []
        while len(batch) < size and (item := self._queue.take(service.latest)):
            batch.append(item)
            service.latest = item.known.number
        return batch

    async def _ask(self, service: RemoteService, batch: list[QueuedProgram]) -> None:
        """Have some programs judged by one request, or by several if it is refused; what is left is queued again."""
        parts = [batch]
        try:
            while parts:
                items = parts.pop()
                try:
                    async with aclosing(service.ask(items)) as lines:
                        async for line in lines:
                            self._note_line(service, items, line)
                            if isinstance(line, Load) and all(item.future.done() for item in items):
                                # Others have judged what it has, or nobody waits for it: it need not go on.
                                break
                    if not all(item.future.done() for item in items):
                        raise Unserved(0, "its answer ended before its end", was_taken=True)
                    if service.held.issuperset(items) and not any(item.future.cancelled() for item in items):
                        raise Unserved(0, f"alive, but without a verdict for {LATE_SECONDS:g} s on what others judged")
                except Unserved as refused:
                    left = [item for item in items if not item.future.done()]
                    if refused.is_final and len(left) > 1:
                        # Too many, or one of them is refused: smaller requests show which.
                        parts += [left[len(left) // 2 :], left[: len(left) // 2]]
                    else:
                        self._take_back(service, items)
                        self._note_refusal(service, left, refused)
        finally:
            service.num_requests -= 1
            service.num_requested -= len(batch)
            service.num_of_others = service.num_of_others if service.num_requests else 0
            self._take_back(service, batch)
            self._hand_out()

    def _note_line(self, service: RemoteService, items: list[QueuedProgram], line: Landed | Load) -> None:
        if service.is_false:
            raise Unserved(0, service.trouble, is_false=True)
        if service.workers:
            # One that is left out has to say what it is, and to judge what is known, whatever else it says.
            service.num_failures = 0
        if isinstance(line, Load):
            # Programs of other clients are judged before ours.
            if line.queued < service.queued:
                self._heard = time.monotonic()
            service.workers, service.queued = service.workers and line.workers, line.queued
            service.num_of_others = max(0, line.queued - service.num_requested)
        elif line.index < len(items):
            item = items[line.index]
            self._heard = time.monotonic()
            item.resolve(line.verdict)
            if item in service.held:
                self._take_back(service, [item])
                self._hand_out()

    def _note_refusal(self, service: RemoteService, items: list[QueuedProgram], refused: Unserved) -> None:
        """Queue programs again, or answer with why they are not judged."""
        if refused.is_final or refused.status in CONFIGURATION:
            kind = ConfigError if refused.status in CONFIGURATION else DataError
            for item in items:
                item.resolve(kind(f"{service.url} refused it ({refused.status}): {refused.words}"))
            return
        self.num_retries += 1
        if refused.status == 504 and refused.was_taken:
            # It ended what takes longer than it allows: that is these programs' matter, see below.
            self._heard = time.monotonic()
        self._rest(service, refused)
        for item in items:
            if refused.may_be_its_programs:
                item.lost_since = item.lost_since if item.num_losses else time.monotonic()
                item.num_losses += 1
                if time.monotonic() - item.lost_since > self._patience_seconds:
                    item.give_up(f"{service.url}: failed {item.num_losses} times; {service.trouble}")
            # Another one may have it as well.
            if not item.num_holders and not item.future.done():
                self._queue.add(item)

    def _rest(self, service: RemoteService, refused: Unserved) -> None:
        """Leave a service alone for a while; one that is gone has to say again what it is."""
        service.trouble = service.trouble if service.is_false else str(refused)
        wait_seconds = min(0.25 * 2 ** min(service.num_failures, 8), _MAX_WAIT_SECONDS) * random.uniform(0.5, 1.0)
        if refused.retry_after_seconds is not None:
            # Spread out, so that those who were refused together do not come back together.
            wait_seconds = min(refused.retry_after_seconds, _MAX_WAIT_SECONDS) * random.uniform(0.5, 1.5)
        # One that was never there is named as well, once: its address may be mistyped.
        is_news = service.workers or not service.num_failures or refused.is_false
        if refused.is_gone and is_news and not service.is_false:
            self._note_outage(service, "for good" if refused.is_false else "until it is there again")
        service.num_failures += 1
        service.is_false = service.is_false or refused.is_false
        service.rests_until = float("inf") if service.is_false else time.monotonic() + wait_seconds
        self._loop.call_later(wait_seconds, self._hand_out)

    def _note_outage(self, service: RemoteService, how_long: str = "until it is there again") -> None:
        service.workers = 0
        self.outages[service.url] += 1
        _LOG.warning("the judge %s is left out %s: %s", service.url, how_long, service.trouble)

    async def _find(self, service: RemoteService) -> None:
        """Ask a service what it is, before it is given anything."""
        try:
            await self._meet(service)
        except Unserved as refused:
            self._rest(service, refused)
        except ConfigError as error:
            service.trouble, service.rests_until = str(error), 0.0
            self._for_all(lambda item, error=error: item.resolve(error))
        self._hand_out()

    async def _meet(self, service: RemoteService) -> None:
        about = await self._look_at(service)
        service.limits = about["limits"]
        service.time_scale = about.get("time_scale", service.time_scale)
        service.request_seconds = service.limits.get("request_seconds", service.request_seconds)
        service.trouble = "alive, but has not judged a few programs with known verdicts"
        async for line in service.ask_known():
            if isinstance(line, Load) and line.queued > line.workers + _KNOWN_AT_ONCE and not service.num_failures:
                # Others are before us there.
                self._heard = time.monotonic()
        service.workers, service.max_queued = about["workers"], int(service.limits["max_queued"])
        service.rests_until, service.num_failures = 0.0, 0
        self._heard = time.monotonic()

    async def _look_at(self, service: RemoteService) -> dict[str, Any]:
        about = await service.ask_about()
        self._check(service.url, about)
        return about

    async def _ask_known_again(self, service: RemoteService) -> None:
        try:
            async for _ in service.ask_known():
                pass
        except Unserved as refused:
            self._rest(service, refused)

    async def _meet_all(self, patience_seconds: float) -> dict[str, Any]:
        give_up = time.monotonic() + patience_seconds
        while True:
            found = await asyncio.gather(*map(self._look_at, self._services), return_exceptions=True)
            missing = [service for service, answer in zip(self._services, found, strict=True) if _note(service, answer)]
            abouts = [answer for answer in found if isinstance(answer, dict)]
            if not missing or time.monotonic() + _ASK_AGAIN_SECONDS > give_up:
                break
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
        if not abouts:
            raise EvaluatorFault(self._troubles())
        for service in missing:
            if not service.num_failures:
                self._note_outage(service)
                service.num_failures = 1
        return abouts[0]


def _note(service: RemoteService, answer: dict[str, Any] | BaseException) -> bool:
    """Note why a service is not there; return whether it is not."""
    if isinstance(answer, Unserved):
        service.trouble = str(answer)
    elif isinstance(answer, BaseException):
        raise answer
    return isinstance(answer, Unserved)
