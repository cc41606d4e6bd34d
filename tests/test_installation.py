"""What messages say about installing; what image and manifests deploy."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def test_no_message_names_an_index() -> None:
    sources = []
    for path in (ROOT / "src").rglob("*.py"):
        if "pip install 'microcoder" in path.read_text("utf-8"):
            sources.append(path)
    assert not sources


def test_the_wheel_is_built_from_what_the_image_copies(tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    for line in (ROOT / "containers" / "judge.Containerfile").read_text().splitlines():
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            for name in sources:
                _copy(
                    ROOT / name,
                    context / target,
                    is_into=len(sources) > 1 or target.endswith("/"),
                )
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(tmp_path),
    ]
    built = subprocess.run(command, cwd=context, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    with open(ROOT / "pyproject.toml", "rb") as file:
        included = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in included.items():
        wanted = set()
        for path in (ROOT / source).rglob("*.toml"):
            wanted.add(f"{target}/{path.relative_to(ROOT / source)}")
        assert wanted
        assert wanted <= {*names}
    assert "microcoder/judge/sandbox/zygote.py" in names
    for path in (ROOT / "src/microcoder/view/static/vendor").iterdir():
        assert f"microcoder/view/static/vendor/{path.name}" in names


def _copy(source: Path, target: Path, *, is_into: bool) -> None:
    if source.is_dir():
        shutil.copytree(
            source,
            target,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    else:
        shutil.copy(source, target / source.name if is_into else target)


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


def pods_of(name: str) -> list[dict[str, Any]]:
    yaml: Any = pytest.importorskip("yaml")
    pods = []
    for each in yaml.safe_load_all((ROOT / name).read_text()):
        pods.extend(pods_in(each))
    return pods


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_pod_that_judges_may_make_namespaces_as_an_ordinary_user(name: str) -> None:
    pods = pods_of(name)
    assert pods
    for pod in pods:
        for container in pod["containers"]:
            rights = pod.get("securityContext", {}) | container.get("securityContext", {})
            assert rights["runAsNonRoot"]
            assert rights["runAsUser"] > 0
            assert (
                rights["seccompProfile"]["type"]
                == rights["appArmorProfile"]["type"]
                == "Unconfined"
            )
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["capabilities"] == {"drop": ["ALL"]}


def test_probes_wait_longer_than_a_busy_service_takes_to_answer() -> None:
    (container,) = pods_of(MANIFESTS[0])[0]["containers"]
    probes = []
    for name, probe in container.items():
        if name.endswith("Probe"):
            probes.append(probe)
    assert [probe["timeoutSeconds"] for probe in probes] == [5, 5, 5]


def test_hooks_of_a_commit_have_the_tools_of_the_project() -> None:
    pinned = re.search(r'"(ruff==[0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    hooked = re.findall(r'"(ruff==[0-9.]+)"', (ROOT / ".pre-commit-config.yaml").read_text())
    assert pinned is not None
    assert hooked == [pinned[1], pinned[1]]
