"""Which layers hold, what is refused without them, and that the weaker set-ups still hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import microcoder
from microcoder.judge import Isolation, Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome
from microcoder.judge.sandbox.layers import (
    LANDLOCK,
    LAYERS,
    MOUNT_NAMESPACE,
    RESOURCE_LIMITS,
    SECCOMP,
    UNPRIVILEGED_USER,
)

from .as_user import run_python  # pyrefly: ignore[missing-import]
from .conftest import ADD, make_problem, run  # pyrefly: ignore[missing-import]
from .safety_suites import HOSTILE  # pyrefly: ignore[missing-import]

NAMESPACES = {layer for layer in LAYERS if layer.endswith("namespace")}
SET_UPS = {
    "no namespaces": set(LAYERS) - NAMESPACES,
    "no pid namespace": set(LAYERS) - {"pid_namespace"},
    "no mount namespace": set(LAYERS) - {MOUNT_NAMESPACE},
    "no landlock": set(LAYERS) - {LANDLOCK},
    "no other user": set(LAYERS) - {UNPRIVILEGED_USER},
    "no other user, no landlock": set(LAYERS) - {UNPRIVILEGED_USER, LANDLOCK},
}
WORST = (
    "endless loop",
    "flood stdout",
    "inherited descriptors",
    "odd system calls",
    "raise limits",
    "kill the process group",
    "modes and owners of devices",
    "start a file that it wrote",
)
PROBES = {
    "name /dev/stdin": "1 / 0  # /dev/stdin",
    "fork": "import os\nos.fork()",
    "file": "open('{secret}').read()\nprint('HARM')",
    "package": "open('{package}').read()\nprint('HARM')",
    "signal the parent": "import os\nos.kill(os.getppid(), 0)\nos.kill(1, 0)\nif os.getppid() != 1: print('HARM')",
    "limits of the parent": "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_AS, (1, 1))",
    "socket": "import socket\nsocket.socket()",
    "exec": "import os\nos.execv('/bin/sh', ['sh'])",
    "write": "open('{folder}/new', 'w')",
}


@pytest.mark.parametrize("name", SET_UPS)
def test_weaker_set_ups_are_reported_and_still_hold(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42")
    tmp_path.chmod(0o777)
    paths = {"secret": secret, "package": microcoder.__file__, "folder": tmp_path}
    problem = make_problem(("1 2", "3"))
    with Judge(workers=1, layers=SET_UPS[name]) as judging:
        assert judging.isolation.level == "degraded"
        assert set(LAYERS) - SET_UPS[name] <= set(judging.isolation.missing)
        for probe, code in PROBES.items():
            verdict = run(judging, code.format(**paths), problem)
            harmless = probe == "signal the parent" and "pid_namespace" in judging.isolation.enforced
            if not harmless:
                assert verdict.outcome in (Outcome.RUNTIME_ERROR, Outcome.PROCESS_LIMIT), (probe, verdict.detail)
        for hostile in WORST:
            allowed, code = HOSTILE[hostile]
            seconds = 0.3 if Outcome.TIME_LIMIT in allowed else 5.0
            verdict = run(judging, code, make_problem(("", "contained"), time_limit_seconds=seconds))
            assert verdict.outcome in allowed, (hostile, verdict.detail)
        assert run(judging, ADD, problem).is_accepted
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("missing", [{SECCOMP}, {RESOURCE_LIMITS}, {LANDLOCK, MOUNT_NAMESPACE}])
def test_refuses_to_start_without_a_required_layer(missing: set[str]) -> None:
    with pytest.raises(EvaluatorFault, match=r"missing .*unsafe=True \(--unsafe\)"):
        Judge(workers=1, layers=set(LAYERS) - missing)


def test_starts_without_a_required_layer_on_the_users_word() -> None:
    layers = set(LAYERS) - {LANDLOCK, MOUNT_NAMESPACE}
    with Judge(workers=1, layers=layers, unsafe=True) as judging:
        assert judging.isolation.level == "unsafe"
        assert run(judging, ADD, make_problem(("1 2", "3"))).is_accepted


def test_levels_and_record() -> None:
    full = Isolation(LAYERS)
    assert (full.level, full.unmet_requirements()) == ("full", ())
    fallback = Isolation((SECCOMP, RESOURCE_LIMITS, LANDLOCK), {MOUNT_NAMESPACE: "refused"})
    assert fallback.level == "degraded"
    assert json.loads(json.dumps(fallback.as_record()))["missing"] == {MOUNT_NAMESPACE: "refused"}
    assert Isolation((SECCOMP, LANDLOCK)).unmet_requirements() == (RESOURCE_LIMITS,)


UNPRIVILEGED = """
import json
from microcoder import Problem, Program
from microcoder.judge import Judge
from microcoder.judge.sandbox.layers import LAYERS
problem = Problem(id="p", tests=[{"input": "1 2", "output": "3"}], time_limit_seconds=1)
programs = ["a, b = map(int, input().split())\\nprint(a + b)", "import os\\nos.fork()", "open('/etc/passwd').read()"]
for layers in (LAYERS, [layer for layer in LAYERS if not layer.endswith("namespace")]):
    with Judge(workers=1, layers=layers) as judging:
        verdicts = judging.judge([Program(code) for code in programs], [problem] * 3)
        print(json.dumps([judging.isolation.level, *[verdict.outcome for verdict in verdicts]]))
"""


def test_an_unprivileged_user_gets_a_closed_sandbox_too() -> None:
    result = run_python(["-c", UNPRIVILEGED], "nobody")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 2, result.stderr
    for level, *found in rows:
        assert level in ("full", "degraded")
        assert found == ["accepted", "process_limit", "runtime_error"]
