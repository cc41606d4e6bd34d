"""Which layers hold, what is refused without them, and that the weaker set-ups still hold."""

import json
from pathlib import Path

import pytest

import microcoder
from microcoder.judge import Isolation, Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome
from microcoder.judge.sandbox.protocol import LAYERS, Layer
from tests.judge.conftest import ADD, NO_NAMESPACES, make_problem, run
from tests.judge.safety_suites import hostile_case

SET_UPS = {
    "no namespaces": NO_NAMESPACES,
    "no pid namespace": set(LAYERS) - {"pid_namespace"},
    "no mount namespace": set(LAYERS) - {Layer.MOUNT_NAMESPACE},
    "no landlock": set(LAYERS) - {Layer.LANDLOCK},
    "no other user": set(LAYERS) - {Layer.UNPRIVILEGED_USER},
    "no other user, no landlock": set(LAYERS) - {Layer.UNPRIVILEGED_USER, Layer.LANDLOCK},
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
    "fork",
    "execute a program",
    "kill the parent",
    "open sockets",
)
PROBES = {
    "file": "open('{secret}').read()\nprint('HARM')",
    "package": "open('{package}').read()\nprint('HARM')",
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
            assert verdict.outcome is Outcome.RUNTIME_ERROR, (probe, verdict.detail)
        for hostile in WORST:
            case = hostile_case(hostile)
            verdict = run(judging, case.attempt.code, case.problem)
            assert verdict.outcome in (case.allowed or ()), (hostile, verdict.detail)
        assert run(judging, ADD, problem).is_accepted
    assert not (tmp_path / "new").exists()


def test_required_layers_are_missed_on_the_users_word_only() -> None:
    for missing in (
        {Layer.SECCOMP},
        {Layer.RESOURCE_LIMITS},
        {Layer.LANDLOCK, Layer.MOUNT_NAMESPACE},
    ):
        with pytest.raises(EvaluatorFault, match=r"missing .*unsafe=True \(--unsafe\)"):
            Judge(workers=1, layers=set(LAYERS) - missing)
    with Judge(
        workers=1,
        layers=set(LAYERS) - {Layer.LANDLOCK, Layer.MOUNT_NAMESPACE},
        unsafe=True,
    ) as judging:
        assert judging.isolation.level == "unsafe"
        assert run(judging, ADD, make_problem(("1 2", "3"))).is_accepted


def test_levels_and_record() -> None:
    assert Isolation(LAYERS).level == "full"
    assert Isolation(LAYERS).unmet_requirements() == ()
    fallback = Isolation(
        (Layer.SECCOMP, Layer.RESOURCE_LIMITS, Layer.LANDLOCK), {Layer.MOUNT_NAMESPACE: "refused"}
    )
    assert fallback.level == "degraded"
    assert json.loads(json.dumps(fallback.as_record()))["missing"] == {
        Layer.MOUNT_NAMESPACE: "refused"
    }
    assert Isolation((Layer.SECCOMP, Layer.LANDLOCK)).unmet_requirements() == (
        Layer.RESOURCE_LIMITS,
    )
