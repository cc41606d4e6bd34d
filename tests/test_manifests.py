"""The manifests for Kubernetes ask for what the sandbox needs to be whole, in every pod that judges."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
MANIFESTS = ("containers/judge.yaml", "examples/cluster/kuberay.yaml")


def pods_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every specification of a pod, wherever it stands."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for inner in value.values():
            yield from pods_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods_in(inner)


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_pod_that_judges_may_make_namespaces_as_an_ordinary_user(name: str) -> None:
    pods = [pod for each in yaml.safe_load_all((ROOT / name).read_text()) for pod in pods_in(each)]
    assert pods
    for pod in pods:
        for container in pod["containers"]:
            rights = pod.get("securityContext", {}) | container.get("securityContext", {})
            assert rights["runAsNonRoot"]
            assert rights["runAsUser"] > 0
            assert rights["seccompProfile"]["type"] == rights["appArmorProfile"]["type"] == "Unconfined"
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["capabilities"] == {"drop": ["ALL"]}


def test_probes_wait_longer_than_a_busy_service_takes_to_answer() -> None:
    pods = [pod for each in yaml.safe_load_all((ROOT / MANIFESTS[0]).read_text()) for pod in pods_in(each)]
    (container,) = pods[0]["containers"]
    probes = [probe for name, probe in container.items() if name.endswith("Probe")]
    assert [probe["timeoutSeconds"] for probe in probes] == [5, 5, 5]
