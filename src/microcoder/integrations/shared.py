"""The judge of a process, shared by all integrations: started on first use, closed at exit, not inherited by forks."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from microcoder.errors import ConfigError
from microcoder.evaluator import Judge
from microcoder.evaluator.protocols import Judging
from microcoder.types import Problem, Program, Verdict

_DEFAULTS = {name: one.default for name, one in inspect.signature(Judge).parameters.items()} | {"url": None}


@dataclass(eq=False, slots=True)
class _State:
    """State of this process."""

    options: dict[str, Any] = field(default_factory=dict)
    judge: Judging | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "microcoder-judge"))
    """Runs blocking work off the event loop: starting the judge, reading tests, waiting for a place."""


_state = _State()


class SharedJudge:
    """The judge of this process; every instance asks the same one."""

    def judge(self, programs: Sequence[Program], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge each program against the problem at the same position; raises like `Judge.judge`."""
        return _running().judge(programs, problems)

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine without blocking its event loop; raises like `Judge.judge_async`."""
        loop = asyncio.get_running_loop()
        future = await loop.run_in_executor(_state.thread, lambda: _running().submit(program, problem))
        return await asyncio.wrap_future(future)


def shared_judge(**options: Any) -> SharedJudge:
    """Return this process's judge, started on first use.

    Args:
        options: those of `Judge`, or `url`, that of a service (`microcoder serve`) to ask in place of a judge here.
            What is left out is as an earlier caller asked for, or as `Judge` has it.

    Raises:
        ConfigError: an option is unknown, or the process's judge has another value of it.
    """
    if unknown := sorted(options.keys() - _DEFAULTS.keys()):
        raise ConfigError(f"the judge takes no option {unknown[0]!r}; use one of {', '.join(_DEFAULTS)}")
    with _state.lock:
        known = _state.options if _state.judge is None else _DEFAULTS | _state.options
        for name, value in options.items():
            if name in known and known[name] != value:
                raise ConfigError(
                    f"{name} = {value!r}, but this process's judge has {name} = {known[name]!r}; a process has one "
                    "judge: give the same value everywhere, before the first program is judged"
                )
        _state.options |= options
    return SharedJudge()


def _running() -> Judging:
    with _state.lock:
        if _state.judge is None:
            _state.judge = _open(_state.options)
        return _state.judge


def _open(options: Mapping[str, Any]) -> Judging:
    url = options.get("url")
    if url is None:
        return Judge(**{name: value for name, value in options.items() if name != "url"})
    if others := sorted(options.keys() - {"url", "stop"}):
        raise ConfigError(f"{others[0]} belongs to the service at {url}; start it with that, and leave it out here")
    from microcoder.serving.client import JudgeClient
    from microcoder.training.judging import TOKEN_VARIABLE

    client = JudgeClient(url, token=os.environ.get(TOKEN_VARIABLE))
    found = client.about()["stop"]
    if found != options.get("stop", found):
        raise ConfigError(f"{url} stops tests by the rule {found}; start it with --stop {options['stop']}")
    return client


def _close() -> None:
    if _state.judge is not None:
        _state.judge.close()


def _forget() -> None:
    """In a forked child, the judge is the parent's: its threads are not here, its sandboxes answer the parent."""
    global _state
    _state = _State(dict(_state.options))


atexit.register(_close)
os.register_at_fork(after_in_child=_forget)
