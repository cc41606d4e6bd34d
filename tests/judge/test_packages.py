"""What programs may import does not depend on the host's environment,
and a promise that is not kept scores nothing.
"""

import os
from contextlib import closing
from pathlib import Path

import pytest

from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.core.types import Assertions, Outcome, Program
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.languages.kept_folders import ROOT_VARIABLE, find_roots
from microcoder.judge.languages.packages import (
    PROFILES,
    find_folder,
    folder_digest,
    install_packages,
    load_profile,
    provide_packages,
)
from microcoder.judge.run.judging import Session
from microcoder.judge.run.sandboxes import Sandboxes
from microcoder.judge.run.verdicts import PreparedProblem
from tests.judge.conftest import make_problem, run
from tests.wheels import keep_packages_in, make_wheel

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
SUM = make_problem(("1 2\n", "3\n"))
USES = {
    "numpy": "import numpy as np\nprint(np.array(input().split(), dtype=int).sum())",
    "sortedcontainers": (
        "from sortedcontainers import SortedList\nprint(sum(SortedList(map(int, input().split()))))"
    ),
    "tzdata": (
        "from zoneinfo import ZoneInfo\n"
        "ZoneInfo('Asia/Tokyo')\n"
        "print(sum(map(int, input().split())))"
    ),
}
PLAIN = "print(sum(map(int, input().split())))"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all wheels that can be had, empty so far;
    packages are kept in a folder inside.
    """
    keep_packages_in(tmp_path, monkeypatch)
    return tmp_path


def pin(index: Path, line: str) -> str:
    """Return the path of a file with one pin."""
    (index / "own.txt").write_text(f"{line}\n")
    return str(index / "own.txt")


def test_promised_packages_can_be_imported_and_no_others_of_the_host(judge_one: Judge) -> None:
    for code in USES.values():
        verdict = run(judge_one, code, SUM)
        assert verdict.is_accepted, verdict.detail
    verdict = run(judge_one, "import pydantic\n" + PLAIN, SUM)
    assert verdict.outcome == Outcome.RUNTIME_ERROR
    assert verdict.is_scorable
    assert "No module named 'pydantic'" in verdict.detail
    with Judge(workers=1, time_scale=1, packages="none") as judging:
        assert run(judging, USES["numpy"], SUM).outcome is Outcome.RUNTIME_ERROR
        assert judging.environment.as_record()["packages"]["pins"] == []


def test_a_session_of_its_own_goes_by_its_options_too() -> None:
    with closing(Session(Sandboxes(JudgeOptions(packages="none", build_seconds=7)))) as session:
        verdict = session.judge(Program(USES["numpy"]), PreparedProblem(SUM))
        assert verdict.outcome == Outcome.RUNTIME_ERROR
        assert session.executor.builds.limit(LANGUAGES["cpp"]).build_seconds == 7


def test_a_promise_that_is_not_kept_scores_nothing(
    index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    call = make_problem(("[1]", "1"), fn_name="solve")
    with Judge(workers=1, time_scale=1, packages=pin(index, "sortedcontainers==0.0.1")) as judging:
        faults = [
            run(judging, USES["sortedcontainers"], SUM),
            run(
                judging,
                "try:\n    import sortedcontainers\nexcept ImportError: pass\n" + PLAIN,
                SUM,
            ),
            run(judging, "def solve(a): return SortedList(a)[0]", call),
            run(
                judging,
                USES["sortedcontainers"],
                call.model_copy(update={"assertions": Assertions()}),
            ),
        ]
        scored = [
            run(judging, PLAIN, SUM),
            run(judging, "# import sortedcontainers\n'import sortedcontainers'\n" + PLAIN, SUM),
            run(judging, "raise ModuleNotFoundError(\"No module named 'sortedcontainers'\")", SUM),
            run(judging, USES["numpy"], SUM),
            run(judging, "def solve(a): return a[0]", call),
        ]
        missing = judging.environment.missing
        counted = judging.statistics.missing_packages
    assert counted == len(faults)
    for verdict in faults:
        assert verdict.outcome is Outcome.SANDBOX_FAULT
        assert "sortedcontainers, and the packages of profile own are missing" in verdict.detail
        assert "type `microcoder packages " in verdict.detail
    outcomes = [verdict.outcome for verdict in scored]
    assert outcomes == [Outcome.ACCEPTED] * 2 + [Outcome.RUNTIME_ERROR] * 2 + [Outcome.ACCEPTED]
    # A long one is cut in the log.
    assert missing[:60] in caplog.text


def test_packages_are_installed_where_they_are_first_needed(
    index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By pip; the next one finds them; a judge goes on when they are taken away."""
    make_wheel(index, "sortedcontainers", "2.4.0", "SortedList = SortedDict = SortedSet = sorted\n")
    pins = pin(index, "sortedcontainers == 2.4.0  # a comment")
    with Judge(workers=1, time_scale=1, packages=pins) as judging:
        assert run(judging, USES["sortedcontainers"], SUM).is_accepted
        assert run(judging, USES["numpy"], SUM).outcome is Outcome.RUNTIME_ERROR
        provided = provide_packages(load_profile(pins))
        assert caplog.text.count("installing the packages") == 1
        folder = index / "packages" / folder_digest(provided.profile)
        assert provided.folder == str(folder)
        # A program runs as a user of its own.
        for path in folder.rglob("*"):
            assert path.stat().st_mode & 0o004
        assert not list(index.glob("packages/.*-*")), "what was begun is not left behind"
        os.rename(folder, index / "away")
        # Whose output has a name runs in another sandbox, which starts now.
        verdict = run(judging, PLAIN + "# /dev/stdout", SUM)
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert "is gone; type `microcoder packages standard`" in verdict.detail


def test_what_programs_could_not_import_is_refused(index: Path) -> None:
    make_wheel(index, "thing", "1.0", "", needs="Requires-Dist: numpy>=2\n")
    profile = load_profile(pin(index, "thing==1.0"))
    with pytest.raises(
        EvaluatorFault, match="thing needs numpy, which is not pinned; add a line numpy==VERSION"
    ):
        install_packages(profile)
    assert find_folder(profile) is None


def test_where_folders_are_looked_for_and_one_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_roots() == (
        tmp_path / "microcoder" / "packages",
        Path("/var/cache/microcoder/packages"),
    )
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "file" / "packages"))
    assert find_roots() == (tmp_path / "file" / "packages",)
    with pytest.raises(EvaluatorFault, match=f"set {ROOT_VARIABLE} to a folder that can"):
        install_packages(PROFILES["standard"])


def test_a_profile_is_distinguished_by_its_pins(tmp_path: Path) -> None:
    assert len({profile.digest for profile in PROFILES.values()}) == len(PROFILES)
    for name, text in (
        ("a.txt", "numpy==2.4.6\nTZdata==2026.6\n"),
        ("b.txt", "tzdata==2026.6\n\nnumpy == 2.4.6\n"),
    ):
        (tmp_path / name).write_text(text)
    first = load_profile(str(tmp_path / "a.txt"))
    second = load_profile(str(tmp_path / "b.txt"))
    assert first.digest == second.digest
    assert first.name == "a"
    assert first.digest != PROFILES["standard"].digest
    # What is known about a package holds for a user's own list too.
    assert first.preload_for("import numpy") == ("numpy",)
    assert first.find_needed("import zoneinfo", is_function=False)


def test_pins_are_those_that_the_tests_run_with() -> None:
    pins = []
    for line in CONSTRAINTS.read_text().splitlines():
        if "==" in line:
            pins.append(line.split("=="))
    tested = dict(pins)
    for profile in PROFILES.values():
        for package in profile.packages:
            pinned = package.pin.partition("==")[2]
            assert tested.get(package.name, pinned) == pinned, package.pin


def test_a_profile_that_is_none_is_refused(tmp_path: Path) -> None:
    for name, text, message in (
        ("nonesuch", "", "use one of atcoder, none, standard, or the path"),
        (str(tmp_path / "gone.txt"), "", "cannot be read"),
        (str(tmp_path / "own.txt"), "numpy>=2\n", "write exact pins, such as numpy==2.4.6"),
        (str(tmp_path / "own.txt"), "numpy==2.4.6\nNumPy==2.4.6\n", "pins numpy twice"),
        (
            str(tmp_path / "own.toml"),
            'name = "own"\npackages = [{pin = "numpy"}]\n',
            "write exact pins",
        ),
    ):
        if text:
            Path(name).write_text(text)
        with pytest.raises(ConfigError, match=message):
            load_profile(name)


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("import sys, numpy as np", "numpy"),
        ("x = 1; from numpy import array", "numpy"),
        ("np = __import__('numpy')", "numpy"),
        ("numpy = int(input())", None),
        ("from mynumpy import x", None),
        ("import importlib\nimportlib.import_module('numpy.fft')", "numpy"),
        ("if False:\n    from numpy.linalg import det", "numpy"),
        ("import numpy.linalg", "numpy"),
        ("# import numpy\nprint(1)", None),
        ("'import numpy'\nprint('from numpy import array')", None),
        ('"""\nimport numpy\n"""', None),
        ("from . import numpy", None),
        # What the judge's own grammar does not know may be a newer Python's,
        # and a long source is not parsed.
        ("import numpy\nmatch = lambda: yes yes", "numpy"),
        ("print(\n'numpy'", None),
        ("import numpy\n" + "x = 1\n" * 20_000, "numpy"),
        ("x = 'numpy'\n" * 10_000, None),
        ("sortedcontainers = SortedList = 1", None),
        ("import " + "import " * 200_000 + "nump", None),
    ],
)
def test_what_a_source_asks_for(code: str, needed: str | None) -> None:
    found = PROFILES["standard"].find_needed(code, is_function=False)
    assert (found and found.name) == needed


def test_a_parser_that_fails_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, mode: str) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr("ast.parse", fail)
    found = PROFILES["standard"].find_needed("import numpy", is_function=False)
    assert found is not None
    assert found.name == "numpy"
