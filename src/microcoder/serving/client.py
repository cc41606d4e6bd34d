"""A judge that is reached over HTTP: what is overloaded, restarted or cut off is asked again; a verdict is a verdict.

| what happened                                  | what the caller sees                                   |
|------------------------------------------------|--------------------------------------------------------|
| an answer                                      | verdicts, `sandbox_fault` where a sandbox failed       |
| no connection, a reset, 429, 500, 502, 503, 504| nothing: asked again, with the wait the service states |
| the same for longer than the patience          | `sandbox_fault` verdicts that name the service         |
| 401, 403, 404                                  | `ConfigError`                                          |
| any other 4xx                                  | `DataError` with the service's words                   |
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from types import TracebackType
from typing import Any, Self, cast

import httpx

from microcoder.errors import ConfigError, DataError, EvaluatorFault
from microcoder.evaluator.judge import OnVerdict
from microcoder.evaluator.languages import check_language
from microcoder.serving.judging import unreached
from microcoder.serving.messages import JudgeRequest, JudgeResponse, ProgramMessage
from microcoder.signatures import judged_by
from microcoder.types import Problem, Program, Verdict

_AGAIN = (429, 500, 502, 503, 504)
_CONFIGURATION = (401, 403, 404)
_TOO_LARGE = 413
_MAX_WAIT_SECONDS = 20.0
_CONNECT_SECONDS = 10.0


class JudgeClient:
    """Asks one service; use it as a context manager, or call `close`. Safe for several threads at once."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        batch_size: int = 32,
        connections: int = 8,
        patience_seconds: float = 300.0,
        request_seconds: float = 660.0,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: where the service is, such as `http://judge:8077`.
            token: one of the service's tokens.
            batch_size: programs in one request; a verdict is seen when those of its request are.
            connections: requests at the same time.
            patience_seconds: how long one request is tried again before its programs get `sandbox_fault`.
            request_seconds: how long one answer may take; more than the service's own limit.

        Raises:
            ConfigError: an argument is wrong.
        """
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"url = {url!r}; use http://host:port")
        if batch_size < 1 or connections < 1:
            raise ConfigError(f"batch_size = {batch_size}, connections = {connections}; use 1 or more")
        self._url = url.rstrip("/")
        self._batch_size = batch_size
        self._patience_seconds = patience_seconds
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(request_seconds, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=connections),
            trust_env=False,
        )
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="judge-client")
        self._is_closed = threading.Event()
        self.num_retries = 0
        """Requests that were sent again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Raises:
            DataError: the sequences differ in length, a program is in another language than its problem, or the
                service refuses one.
            ConfigError: the service wants another token, or is none.
        """
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        for index, (program, problem) in enumerate(zip(programs, problems, strict=True)):
            check_language(program, problem, f"program {index}")
        results: list[Verdict | None] = [None] * len(programs)
        waiting: dict[Future[list[Verdict]], int] = {}
        for start in range(0, len(programs), self._batch_size):
            end = start + self._batch_size
            waiting[self._start(programs[start:end], problems[start:end])] = start
        try:
            for future in as_completed(waiting):
                for index, verdict in enumerate(future.result(), waiting[future]):
                    results[index] = verdict
                    if on_verdict is not None:
                        on_verdict(index, verdict)
        finally:
            for future in waiting:
                future.cancel()
        return cast(list[Verdict], results)

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background; the future raises what `judge` raises.

        Raises:
            DataError: the program is in another language than its problem.
            EvaluatorFault: this client is closed.
        """
        self._check_open()
        check_language(program, problem, "the program")
        return self._pool.submit(lambda: self._ask([program], [problem])[0])

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine; raises what `judge` raises."""
        return await asyncio.wrap_future(self.submit(program, problem))

    def about(self, *, patience_seconds: float | None = None) -> dict[str, Any]:
        """Return what the service is and takes; wait less for it than for verdicts where that is asked.

        Raises:
            ConfigError: it wants another token, or is none.
            EvaluatorFault: it was not reached.
        """
        return self._request("GET", "/v1/about", None, patience_seconds=patience_seconds).json()

    def close(self) -> None:
        """Give up what is on its way."""
        self._is_closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def _check_open(self) -> None:
        if self._is_closed.is_set():
            raise EvaluatorFault("this JudgeClient is closed; make a new one")

    def _start(self, programs: Sequence[Program], problems: Sequence[Problem]) -> Future[list[Verdict]]:
        self._check_open()
        return self._pool.submit(self._ask, programs, problems)

    def _ask(self, programs: Sequence[Program], problems: Sequence[Problem]) -> list[Verdict]:
        """Have some programs judged by one request, or by two where one is too large."""
        try:
            answer = self._request("POST", "/v1/judge", _write(programs, problems))
            verdicts = list(JudgeResponse.model_validate_json(answer.content).verdicts)
            if len(verdicts) != len(programs):
                raise EvaluatorFault(f"{len(verdicts)} verdicts for {len(programs)} programs")
            return verdicts
        except _TooLarge as refused:
            if len(programs) == 1:
                raise DataError(str(refused)) from None
            half = len(programs) // 2
            return self._ask(programs[:half], problems[:half]) + self._ask(programs[half:], problems[half:])
        except (EvaluatorFault, ValueError) as fault:
            if isinstance(fault, DataError | ConfigError):
                raise
            return [unreached(problem, f"{self._url}: {fault}"[:300]) for problem in problems]

    def _request(
        self, method: str, path: str, content: bytes | None, *, patience_seconds: float | None = None
    ) -> httpx.Response:
        """Ask until there is an answer that is not "later".

        Raises:
            ConfigError: another token is wanted, or this is no such service.
            DataError: the service refuses what was sent.
            EvaluatorFault: patience ran out.
        """
        give_up = time.monotonic() + (self._patience_seconds if patience_seconds is None else patience_seconds)
        number = 0
        while True:
            wait_seconds = min(0.25 * 2**number, _MAX_WAIT_SECONDS) * random.uniform(0.5, 1.0)
            try:
                answer = self._http.request(
                    method, self._url + path, content=content, headers={"Content-Type": "application/json"}
                )
                if answer.status_code not in _AGAIN:
                    return _accept(answer, self._url)
                stated = answer.headers.get("Retry-After", "")
                if stated.isdigit():
                    # Spread out, so that those who were refused together do not come back together.
                    wait_seconds = min(float(stated), _MAX_WAIT_SECONDS) * random.uniform(0.5, 1.5)
                why = f"{answer.status_code}: {_words(answer)}"
            except httpx.TransportError as error:
                why = f"{type(error).__name__}: {error}".rstrip(": ")
            number += 1
            if time.monotonic() + wait_seconds > give_up:
                raise EvaluatorFault(f"no verdict after {number} attempts: {why}")
            self.num_retries += 1
            if self._is_closed.wait(wait_seconds):
                raise EvaluatorFault("this JudgeClient is closed; make a new one")


class _TooLarge(Exception):
    """The service takes smaller requests."""


def _accept(answer: httpx.Response, url: str) -> httpx.Response:
    if answer.is_success:
        return answer
    message = f"{url} refused it ({answer.status_code}): {_words(answer)}"
    if answer.status_code in _CONFIGURATION:
        raise ConfigError(message)
    raise _TooLarge(message) if answer.status_code == _TOO_LARGE else DataError(message)


def _words(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])[:500]
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]


def _write(programs: Sequence[Program], problems: Sequence[Problem]) -> bytes:
    """Return the request; each problem is in it once."""
    numbers: dict[int, int] = {}
    distinct: list[Problem] = []
    for problem in problems:
        if id(problem) not in numbers:
            numbers[id(problem)] = len(distinct)
            distinct.append(_for_judging(problem))
    messages = [
        ProgramMessage.model_construct(problem=numbers[id(problem)], code=program.code, reason=program.reason)
        for program, problem in zip(programs, problems, strict=True)
    ]
    request = JudgeRequest.model_construct(problems=tuple(distinct), programs=tuple(messages))
    return request.model_dump_json().encode("utf-8", "surrogatepass")


def _for_judging(problem: Problem) -> Problem:
    """Return a problem without what no judge needs."""
    return Problem.model_construct(id=problem.id, **judged_by(problem))
