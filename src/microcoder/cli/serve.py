"""`microcoder serve`: the evaluator as an HTTP service."""

import ipaddress
import socket
import ssl
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import UInt16

from microcoder.cli.display import Flag
from microcoder.cli.doctor import run_probes
from microcoder.cli.judge_options import JudgeFlags, describe_lacks
from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.core.machine import require_linux
from microcoder.judge.languages import LANGUAGES, find_language
from microcoder.judge.serve.settings import ServiceSettings, read_tokens

_CACHE_SIZE = 2048
"""Number of verdicts kept, for programs that are sent again."""

_DEFAULTS = JudgeFlags()
"""The judge's options where the command line names none."""

_LIMITS = ServiceSettings()
"""The service's limits where the command line names none."""


def serve(
    *,
    host: str = "127.0.0.1",
    port: UInt16 = 8077,
    token_file: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    no_auth: Flag = False,
    options: Annotated[JudgeFlags, Parameter(name="*")] = _DEFAULTS,
    limits: Annotated[ServiceSettings, Parameter(name="*")] = _LIMITS,
    require: tuple[str, ...] = (),
    self_test: bool = True,
) -> None:
    """Judge programs over HTTP. See docs/serving.md.

    On SIGTERM or Ctrl-C it accepts no new requests, finishes those it has accepted, and answers 503
    to what is left after the grace period.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 picks a free one.
    token_file
        Accepted bearer tokens, one per line.
    tls_cert
        Certificate chain (PEM) to serve HTTPS with; without it tokens and programs travel in clear.
    tls_key
        The certificate's private key (PEM).
    no_auth
        Serve without tokens on an address that other machines can reach.
    require
        Languages that must be available, or the service does not start.
    self_test
        Judge programs with known verdicts first, and do not start if one comes out wrong.
    """
    require_linux()
    from microcoder.judge.serve.app import JudgeServer
    from microcoder.judge.serve.service import Service

    _check_port(host, port)
    tokens = read_tokens(token_file) if token_file else frozenset()
    # Who reaches the service runs programs on this machine: that has to be meant.
    if not tokens and not no_auth and not _is_local(host):
        raise ConfigError(
            f"host = {host} without a token; pass --token-file FILE, or --no-auth on a network "
            "you trust"
        )
    tls = _read_tls(tls_cert, tls_key)
    scheme = "https" if tls else "http"
    options.add_languages()
    for name in require:
        problem = find_language(name).find_problem()
        if problem:
            raise ConfigError(f"--require {name}: {problem}")
    with options.open(cache_size=_CACHE_SIZE) as judge:
        if self_test:
            _check_judge(judge)

        def announce(bound: int) -> None:
            _announce(judge, f"{scheme}://{host}:{bound}", num_tokens=len(tokens))

        server = JudgeServer(
            Service(judge, limits),
            tokens=tokens,
            host=host,
            port=port,
            tls=tls,
            on_start=announce,
        )
        server.run()
    if not server.started:
        raise ConfigError(f"cannot listen on {host}:{port}; choose another --host or --port")
    print("microcoder: the service has ended", file=sys.stderr)


def _check_judge(judge: Judge) -> None:
    """Raise EvaluatorFault if a program with a known verdict gets another one."""
    failed = [result for result in run_probes(judge) if not result.is_ok]
    if failed:
        verdicts = "; ".join(f"{result.name}: got {result.detail}" for result in failed)
        raise EvaluatorFault(
            f"the self-test failed: {verdicts}; type `microcoder doctor` to see more"
        )


def _check_port(host: str, port: int) -> None:
    """Raise ConfigError if the port is taken, before a judge is started."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Bound and closed at once: the server itself listens when its judge is ready.
        with socket.create_server(address[:2], family=family):
            return
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another --host or --port"
        ) from None


def _read_tls(cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if cert is None or key is None:
        if cert or key:
            raise ConfigError(f"--tls-cert {cert}, --tls-key {key}: give both, or neither")
        return None
    try:
        # Read now: the server would fail only after the judge has started.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--tls-cert {cert}, --tls-key {key} cannot be used ({error}); give the paths of a "
            "PEM certificate chain and of its own key, without a passphrase"
        ) from None
    return cert, key


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # Any other name may resolve to an address that the network reaches.
        return host == "localhost"


def _announce(judge: Judge, url: str, *, num_tokens: int) -> None:
    languages = [name for name, language in LANGUAGES.items() if not language.find_problem()]
    facts = [
        f"serving on {url}",
        f"{judge.workers} workers",
        f"isolation {judge.isolation.level}",
        f"CPU limits x {judge.time_scale:g}",
        f"languages {', '.join(languages)}",
        judge.environment.identity,
        f"{num_tokens} tokens" if num_tokens else "no token needed",
    ]
    print(f"microcoder: {', '.join(facts)}", file=sys.stderr, flush=True)
    lacks = describe_lacks(judge)
    if lacks:
        print(f"microcoder: not enforced: {lacks}", file=sys.stderr, flush=True)
