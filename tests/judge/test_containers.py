"""As in a container that grants no namespaces and mounts: all is judged and nothing left,
or one line says why.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.run import isolation
from microcoder.judge.run.builds import build_program
from microcoder.judge.run.supervisor import Sandbox
from microcoder.judge.sandbox.folders import empty_folder, measure_folder
from microcoder.judge.sandbox.protocol import LAYERS, Layer
from tests.judge.as_user import PLACES_TOO_OPEN, SETTINGS, run_python
from tests.judge.conftest import NEEDS, NO_NAMESPACES, make_problem, run
from tests.judge.processes import wait_until

# The forgeries' canaries are honest programs of every kind,
# which are judged as root without capabilities, too.
LONG = ("nobody", "root in a container", "root without capabilities in a container")
ENDLESS_TO_COMPILE = """
template <int N, int M> struct A { static const long v = A<N - 1, M * 2>::v + A<N - 1, \
M * 2 + 1>::v; };
template <int M> struct A<0, M> { static const long v = M; };
int main() { return A<25, 1>::v; }
"""
JUDGE_AND_WAIT = """
import time
from microcoder.judge import Judge
from microcoder.judge.sandbox.protocol import LAYERS
judging = Judge(workers=1, layers=[layer for layer in LAYERS if not layer.endswith("namespace")])
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    # What ourselves are is what all other tests have.
    "setting",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in LONG else [])
        for name in SETTINGS
        if name != "ourselves"
    ],
)
def test_everything_is_judged_everywhere(setting: str) -> None:
    result = run_python(["-m", "tests.judge.everything"], setting)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["complaints"] == []
    assert found["level"] == "degraded" or "container" not in setting


@pytest.mark.parametrize("place", PLACES_TOO_OPEN)
def test_what_cannot_be_closed_is_refused_in_one_line_and_judges_on_the_users_word(
    place: str,
) -> None:
    result = run_python(["-m", "microcoder", "doctor"], place)
    assert result.returncode == 1
    assert result.stderr == ""
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("isolation: none."))
    assert "mount_namespace or landlock missing" in line
    assert "docs/serving.md" in line
    if place == "gVisor":
        found = json.loads(
            run_python(["-m", "microcoder", "doctor", "--unsafe", "--json"], place).stdout
        )
        assert found["isolation"]["level"] == "unsafe"
        failing = set()
        for row in found["self_test"]:
            if not row["ok"]:
                failing.add(row["name"])
        assert failing == {"users are not listed"}


@NEEDS["cpp"]
@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        (
            {"build_seconds": 0.3},
            ENDLESS_TO_COMPILE,
            "the compiler took more than 0.3 s of CPU time",
        ),
        ({"build_memory_mib": 128}, '#include "/dev/zero"\nint main() {}\n', "out of memory"),
    ],
)
def test_a_compiler_that_does_not_end_leaves_nothing(
    limit: dict[str, float],
    code: str,
    said: str,
) -> None:
    language = LANGUAGES["cpp"].model_copy(update=limit)
    with contextlib.closing(
        Sandbox(layers=NO_NAMESPACES, toolchain=language.readable, scratch_mib=256)
    ) as sandbox:
        assert said in build_program(sandbox, language, code).message
    assert wait_until(lambda: not _has_members(sandbox.pid))


def _has_members(group: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def test_the_folder_ends_with_its_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tmp_path.chmod(0o755)
    with Judge(workers=1, layers=NO_NAMESPACES) as judging:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not isolation.is_abandoned(str(folder))
        endless = "open('x', 'w').write('x')\nwhile True: pass"
        problem = make_problem(("", ""), time_limit_seconds=0.1)
        assert run(judging, endless, problem).outcome is Outcome.TIME_LIMIT
        assert run(
            judging,
            "print(__import__('os').listdir())",
            make_problem(("", "[]")),
        ).is_accepted
        assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_judge_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.Popen(
        [sys.executable, "-c", JUDGE_AND_WAIT],
        env=environment,
        stdout=subprocess.PIPE,
    )
    with killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"ready\n"
        (folder,) = tmp_path.iterdir()
        os.utime(folder, (0, 0))
        isolation.sweep.cache_clear()
        isolation.sweep(str(tmp_path))
        assert folder.exists()
        killed.send_signal(signal.SIGKILL)
    assert wait_until(lambda: isolation.is_abandoned(str(folder)))
    (folder / "left").write_text("x")
    os.utime(folder, (0, 0))
    isolation.sweep.cache_clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Judge(workers=1, layers=NO_NAMESPACES):
        assert not folder.exists()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(
        EvaluatorFault, match=r"cannot be made \(No such file or directory\).* set TMPDIR"
    ):
        Judge(workers=1, layers=set(LAYERS) - {Layer.MOUNT_NAMESPACE})


def test_a_folder_is_measured_and_emptied_however_it_was_left(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir(0o700)
    (folder / "link").symlink_to(outside)
    (folder / "file").write_bytes(bytes(100_000))
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "closed").chmod(0)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 200, dir_fd=here)
        here, above = os.open("d" * 200, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    num_entries, num_bytes = measure_folder(str(folder))
    assert num_entries >= 303
    assert 100_000 <= num_bytes < 200_000
    empty_folder(str(folder), 0o700)
    assert list(folder.iterdir()) == []
    assert (outside / "kept").read_text() == "x"


_ON_A_FULL_DISK = """
import os, sys, tempfile
from pathlib import Path
from microcoder.judge import Judge
from microcoder.judge.sandbox.protocol import LAYERS
from microcoder.judge.sandbox.kernel import CLONE_NEWNS, mount, unshare
from microcoder.judge.core.types import Problem, Program, TestCase
unshare(CLONE_NEWNS)
mount("none", "/", None, 16384 | 1 << 18)
mount("tmpfs", sys.argv[1], "tmpfs", 0, "size=8m,mode=1777")
tempfile.tempdir = sys.argv[1]
writes = Program("with open('x', 'wb') as file: file.write(bytes(4 << 20))\\nprint('right')")
hides = Program("try: open('x', 'wb').write(bytes(4 << 20))\\nexcept OSError: \
print('wrong')\\nelse: print('right')")
large = Program("char large[2 << 20] = {1};\\nint main() { __builtin_printf(\\"right\\"); }", "cpp")
layers = [layer for layer in LAYERS if not layer.endswith("namespace")]
with Judge(workers=1, cache_size=0, layers=layers) as judging:
    problem = Problem(id="p", tests=[TestCase(input="", output="right")])
    def judge(*programs):
        for program in programs:
            asked = problem.model_copy(update={"language": program.language})
            (verdict,) = judging.judge([program], [asked])
            print(verdict.outcome, verdict.detail)
    hog = Path(sys.argv[1], "hog")
    hog.write_bytes(bytes(7 << 20))
    judge(writes, hides, Program("print('right')"), large)
    print(judging.statistics.retries)
    hog.unlink()
    judge(writes, large)
"""


@NEEDS["cpp"]
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_full_disk_is_no_fault_of_the_program(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _ON_A_FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (
        f"microcoder: a program stays unscored: test 1: the file system of {tmp_path} was full"
        in result.stderr
    )
    writes, hides, other, large, retries, *freed = result.stdout.splitlines()
    full = (
        f"sandbox_fault test 1: the file system of {tmp_path} was full before a test had "
        "written what it may"
    )
    assert writes == hides == large == full
    assert other.split() == ["accepted"]
    assert int(retries) >= 2
    assert [line.split() for line in freed] == [["accepted"]] * 2


_HOLDS = """
import os, time
held = []
try:
    for _ in range(60):
        held.append(os.open("u", os.O_CREAT | os.O_RDWR))
        os.unlink("u")
        os.write(held[-1], bytes(15 << 20))
    time.sleep(1)
except OSError: pass
print("right")
"""
_WRITES = (
    "with open('x', 'wb') as file:\n"
    "    for _ in range(8): file.write(bytes(1 << 20))\n"
    "print('right')"
)


def test_who_fills_its_folder_harms_no_neighbour() -> None:
    problem = make_problem(("", "right"), time_limit_seconds=5.0)
    programs = [
        Program(_HOLDS),
        Program(_HOLDS + " "),
        *(Program(f"{_WRITES} #{n}") for n in range(10)),
    ]
    with Judge(workers=3, layers=NO_NAMESPACES, cache_size=0) as judging:
        verdicts = judging.judge(programs, [problem] * len(programs))
    assert [verdict.outcome for verdict in verdicts[:2]] == [Outcome.OUTPUT_LIMIT] * 2
    assert {(verdict.outcome, verdict.detail) for verdict in verdicts[2:]} == {
        (Outcome.ACCEPTED, "")
    }
