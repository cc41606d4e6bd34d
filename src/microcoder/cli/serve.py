"""`microcoder serve`: the evaluator as an HTTP service."""

from __future__ import annotations

import ipaddress
import socket
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from microcoder.errors import ConfigError, EvaluatorFault
from microcoder.evaluator import Judge, StopRule
from microcoder.evaluator.isolation import DEGRADED_MEANS
from microcoder.evaluator.languages import LANGUAGES, add_language, find_language
from microcoder.evaluator.packages import STANDARD
from microcoder.evaluator.probes import run_probes
from microcoder.machine import require_linux

_CACHE_SIZE = 2048


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8077,
    workers: int | None = None,
    nice: int = 0,
    token_file: Path | None = None,
    no_auth: Annotated[bool, Parameter(negative="")] = False,
    stop: StopRule = "first_limit",
    time_scale: float | None = None,
    max_queued: int = 1024,
    max_batch: int = 256,
    max_tests: int = 1000,
    max_body_mib: int = 64,
    max_connections: int = 1024,
    max_connections_per_client: int = 512,
    max_cpu_seconds: float = 60.0,
    max_memory_mib: int = 4096,
    request_seconds: float = 600.0,
    grace_seconds: float = 30.0,
    renew_after: int = 2000,
    packages: str = STANDARD,
    languages: tuple[Path, ...] = (),
    require: tuple[str, ...] = (),
    self_test: bool = True,
    batch_tests: bool = True,
    unsafe: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Judge programs over HTTP: our own API, SandboxFusion's and Piston's. See docs/serving.md.

    On SIGTERM or Ctrl-C it accepts no new requests, finishes those it has accepted, and answers 503 to what is left
    after the grace period.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 picks a free one.
    workers
        Programs judged in parallel; by default one per processor.
    token_file
        Accepted bearer tokens, one per line.
    no_auth
        Serve without tokens on an address that other machines can reach.
    nice
        Niceness of the judged programs, 0 to 19; never less than this command's own. Beside one busy process, a program
        gets half of a core at 0, a tenth at 10, a seventieth at 19.
    stop
        When to skip a program's remaining tests: after its first failure, after a test that hit a limit, or never.
    time_scale
        Factor on all CPU limits; by default measured on this machine, and never below 1.
    max_queued
        Maximum number of queued and running programs over all requests; beyond it a request is answered 429.
    max_batch
        Maximum number of programs per request.
    max_tests
        Maximum number of tests per problem.
    max_body_mib
        Maximum size of a request.
    max_connections
        Maximum number of open connections; fewer if the limit on open files requires it.
    max_connections_per_client
        Maximum per client address; raise it if all clients come through one proxy.
    max_cpu_seconds
        Highest time limit of a test.
    max_memory_mib
        Highest memory limit of a test.
    request_seconds
        Time limit of a request, queueing included; beyond it: 504.
    grace_seconds
        Time to finish accepted requests after SIGTERM.
    renew_after
        Programs after which a worker starts a fresh sandbox; 0: never.
    packages
        Packages that programs may import: standard, atcoder, none, or the path of a file of pinned packages.
    languages
        Your own language files (docs/languages.md).
    require
        Languages that must be available, or the service does not start.
    self_test
        Judge programs with known verdicts first, and do not start if one comes out wrong.
    batch_tests
        Run several tests of a program in one process if none can affect the next (docs/sandbox.md).
    unsafe
        Serve even if the sandbox lacks isolation. Only for programs that you trust.
    """
    require_linux()
    try:
        from microcoder.serving.app import JudgeServer
        from microcoder.serving.service import Service
        from microcoder.serving.settings import ServiceSettings, read_tokens
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; type: pip install 'microcoder[serve]'") from None
    from microcoder.config import load_config

    _check_port(host, port)
    tokens = read_tokens(token_file) if token_file else frozenset()
    if not tokens and not no_auth and not _is_local(host):
        raise ConfigError(f"host = {host} without a token; pass --token-file FILE, or --no-auth on a network you trust")
    for path in languages:
        add_language(path)
    for name in require:
        if problem := find_language(name).find_problem():
            raise ConfigError(f"--require {name}: {problem}")
    settings = load_config(
        ServiceSettings,
        overrides={
            "max_queued": str(max_queued),
            "max_batch": str(max_batch),
            "max_tests": str(max_tests),
            "max_body_mib": str(max_body_mib),
            "max_connections": str(max_connections),
            "max_connections_per_client": str(max_connections_per_client),
            "max_cpu_seconds": str(max_cpu_seconds),
            "max_memory_mib": str(max_memory_mib),
            "request_seconds": str(request_seconds),
            "grace_seconds": str(grace_seconds),
        },
    )
    with Judge(
        workers=workers,
        stop=stop,
        time_scale=time_scale,
        max_waiting=max_queued,
        cache_size=_CACHE_SIZE,
        renew_after=renew_after,
        nice=nice,
        packages=packages,
        batch_tests=batch_tests,
        unsafe=unsafe,
    ) as judge:
        if self_test:
            _test(judge)
        server = JudgeServer(
            Service(judge, settings),
            tokens=tokens,
            host=host,
            port=port,
            on_start=lambda bound: _announce(judge, host, bound, num_tokens=len(tokens)),
        )
        server.run()
    if not server.started:
        raise ConfigError(f"cannot listen on {host}:{port}; choose another --host or --port")
    print("microcoder: the service has ended", file=sys.stderr)


def _check_port(host: str, port: int) -> None:
    """Find out before anything is started whether the address can be had."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"port = {port}; use 1 to 65535, or 0 for a free one")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(address[:2], family=family):
            return
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another --host or --port"
        ) from None


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _test(judge: Judge) -> None:
    failed = [finding for finding in run_probes(judge) if not finding.is_ok]
    if failed:
        found = "; ".join(f"{finding.name}: got {finding.detail}" for finding in failed)
        raise EvaluatorFault(f"the self-test failed: {found}; type `microcoder doctor` to see more")


def _announce(judge: Judge, host: str, port: int, *, num_tokens: int) -> None:
    languages = [name for name, language in LANGUAGES.items() if not language.find_problem()]
    print(
        f"microcoder: serving on http://{host}:{port}, {judge.workers} workers, isolation {judge.isolation.level}, "
        f"CPU limits x {judge.time_scale:g}, languages {', '.join(languages)}, {judge.environment.identity}, "
        + (f"{num_tokens} tokens" if num_tokens else "no token needed"),
        file=sys.stderr,
        flush=True,
    )
    if judge.isolation.missing:
        text = f"not enforced: {judge.isolation.describe_missing()}"
        if judge.isolation.level == "degraded":
            text += f": {DEGRADED_MEANS}"
        print(f"microcoder: {text}", file=sys.stderr, flush=True)
