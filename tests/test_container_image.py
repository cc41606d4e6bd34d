"""The container image is built from what its Containerfile copies."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_CONTAINERFILE = _ROOT / "containers" / "judge.Containerfile"


def test_the_wheel_is_built_from_what_the_image_copies(tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    for line in _CONTAINERFILE.read_text().splitlines():
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            for name in sources:
                _copy(_ROOT / name, context / target, is_into=len(sources) > 1 or target.endswith("/"))
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    built = subprocess.run(command, cwd=context, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    with open(_ROOT / "pyproject.toml", "rb") as file:
        included = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in included.items():
        wanted = {f"{target}/{path.relative_to(_ROOT / source)}" for path in (_ROOT / source).rglob("*.toml")}
        assert wanted
        assert wanted <= {*names}
    assert "microcoder/judge/sandbox/zygote.py" in names


def _copy(source: Path, target: Path, *, is_into: bool) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target / source.name if is_into else target)
