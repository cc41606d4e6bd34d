"""Precompiled headers change how long a build takes, and nothing else;
builds wait for each other where that pays.
"""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from microcoder.cli import packages
from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import lock_file
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES, Language, find_language
from microcoder.judge.languages.kept_folders import ROOT_VARIABLE
from microcoder.judge.run import builds
from microcoder.judge.run.builds import (
    BUILDS_WITHOUT,
    Build,
    Builds,
    build_program,
    find_header,
    find_header_roots,
    find_included,
    find_toolchain,
    make_header,
    require_compiler,
    run_compiler,
)
from microcoder.judge.run.supervisor import Sandbox, SandboxDied
from microcoder.judge.sandbox.protocol import LAYERS
from tests.judge.conftest import NO_NAMESPACES, make_problem

CPP = LANGUAGES["cpp"]
pytestmark = pytest.mark.skipif(not builds.list_headers(CPP), reason="no g++")
IO = "iostream"
"""The header that takes little time to make."""
ADD = (
    f"#include <{IO}>\n"
    f"int main() {{ long long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }}\n"
)
SAME_EITHER_WAY = {
    "a macro before": "#define _GLIBCXX_DEBUG\n" + ADD,
    "a macro of its names before": "#define cin tin\n" + ADD,
    "a complaint of the library": ADD.replace("a + b", "std::cin"),
    "a name that it did not include": ADD.replace("a + b", "std::vector<int>(a + b).size()"),
    "no main": f"#include <{IO}>\nint f();\n",
    "its place in a file": ADD.replace("a + b", "__INCLUDE_LEVEL__ + __COUNTER__ + __LINE__"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root of its own in which the header is kept."""
    root = tmp_path_factory.mktemp("root")
    for folder in (root, *root.parents[:2]):
        folder.chmod(0o755)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(ROOT_VARIABLE, str(root))
        yield make_header(CPP, IO)


@pytest.fixture
def empty_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module", params=[LAYERS, NO_NAMESPACES], ids=["in full", "without mounts"])
def sandbox(request: pytest.FixtureRequest, place: Path) -> Iterator[Sandbox]:
    made = Sandbox(layers=request.param, toolchain=find_toolchain(CPP), scratch_mib=256)
    yield made
    made.close()


ALSO_WITHOUT_MOUNTS = pytest.mark.parametrize(
    "sandbox",
    [
        pytest.param(LAYERS, id="in full"),
        pytest.param(NO_NAMESPACES, id="without mounts", marks=pytest.mark.long),
    ],
    indirect=True,
)


@ALSO_WITHOUT_MOUNTS
@pytest.mark.parametrize(
    # The other words of the compiler are a complaint's.
    "what",
    [
        pytest.param(what, marks=[pytest.mark.long] if what == "no main" else [])
        for what in SAME_EITHER_WAY
    ],
)
def test_a_build_is_the_same_with_the_header(sandbox: Sandbox, place: Path, what: str) -> None:
    code = SAME_EITHER_WAY[what]
    assert build_program(sandbox, CPP, code, str(place)) == build_program(sandbox, CPP, code)


def test_the_header_is_used_and_no_build_can_write_where_headers_are(
    sandbox: Sandbox, place: Path
) -> None:
    """As the preprocessor notes it where it is asked to."""
    command = (*CPP.build_command(require_compiler(CPP), str(place)), "-E", "-fpch-preprocess")
    assert (
        f'#pragma GCC pch_preprocess "{place}/{IO}.gch"'.encode()
        in run_compiler(sandbox, CPP, command, ADD).binary
    )
    before = sorted(place.rglob("*"))
    words_of_build = []
    for piece in CPP.build:
        words_of_build.append(f"{place}/mine" if piece == "main" else piece)
    command = tuple(words_of_build)
    assert not build_program(sandbox, CPP.model_copy(update={"build": command}), ADD).is_built
    assert sorted(place.rglob("*")) == before


@ALSO_WITHOUT_MOUNTS
def test_a_damaged_header_changes_no_build(sandbox: Sandbox, place: Path) -> None:
    plain = build_program(sandbox, CPP, ADD)
    content = (place / f"{IO}.gch").read_bytes()
    for damage, left, mode in (
        ("cut-short", len(content) // 2, 0o644),
        ("empty", 0, 0o644),
        ("closed", 0, 0),
    ):
        damaged = place.parent / damage
        damaged.mkdir(exist_ok=True)
        (damaged / f"{IO}.gch").write_bytes(content[:left])
        (damaged / f"{IO}.gch").chmod(mode)
        assert build_program(sandbox, CPP, ADD, str(damaged)) == plain, damage


def test_the_first_include_decides() -> None:
    for code, header in {
        "#include <iostream>\n": IO,
        " // told\n/* at # length */\n# include\t<iostream>": IO,
        '#include "bits/stdc++.h"': "bits/stdc++.h",
        "#include <vector>\n#include <iostream>": "",
        "#define X\n#include <iostream>": "",
        "int x;\n#include <iostream>": "",
        "/* #include <iostream>": "",
        # A long beginning takes no time.
        "//x\n/**/ " * 100_000 + "x": "",
    }.items():
        assert find_included(CPP, code) == header
        assert find_included(LANGUAGES["python"], code) == ""


def test_each_version_has_its_own_and_clang_none(place: Path) -> None:
    assert find_header(CPP, IO) == place
    assert find_header(find_language("cpp17"), IO) is None
    assert (
        CPP.model_copy(update={"compilers": ("clang++",)}).precompile_command("/usr/bin/clang++")
        == ()
    )
    plain = CPP.model_copy(update={"precompiled": None})
    assert find_toolchain(plain) == plain.readable


def provide_often(headers: Builds) -> list[str]:
    return [headers.provide(CPP, ADD) for _ in range(BUILDS_WITHOUT + 2)]


def test_it_is_made_once_it_pays(empty_root: Path) -> None:
    usual = os.umask(0o077)
    try:
        provided = provide_often(Builds())
    finally:
        os.umask(usual)
    assert provided == [""] * BUILDS_WITHOUT + [str(find_header(CPP, IO))] * 2
    made = []
    for path in (empty_root / "headers").rglob("*"):
        if not path.name.startswith("."):
            made.append(path)
    assert made
    for path in (empty_root / "headers", *made):
        assert path.stat().st_mode & 0o004


def test_where_it_cannot_be_kept_builds_go_on_in_a_scaled_time(
    empty_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[float] = []

    class Watched(Builds):
        def provide(self, language: Language, code: str) -> str:
            seen.append(language.build_seconds)
            return super().provide(language, code)

    (empty_root / "file").touch()
    monkeypatch.setenv(ROOT_VARIABLE, str(empty_root / "file" / "root"))
    assert set(provide_often(Builds())) == {""}
    (warning,) = caplog.messages
    assert f"set {ROOT_VARIABLE} to a folder that can" in warning
    monkeypatch.setattr("microcoder.judge.run.workers.Builds", Watched)
    with Judge(workers=1, time_scale=3, build_seconds=7, packages="none") as judging:
        (verdict,) = judging.judge(
            [Program(ADD, "cpp")], [make_problem(("1 2\n", "3\n"), language="cpp")]
        )
    assert verdict.outcome is Outcome.ACCEPTED, verdict.detail
    assert seen == [21.0]


def test_nobody_waits_for_another_process(
    empty_root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder,) = find_header_roots()
    folder.mkdir()
    with (folder / f".{builds._digest(CPP, IO)}.lock").open("a") as lock:
        lock_file(lock)
        assert set(provide_often(Builds())) == {""}
    assert caplog.messages == []


def test_a_command_makes_it_or_says_what_the_compiler_said(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert CPP.precompiled is not None
    small = CPP.model_copy(
        update={"precompiled": CPP.precompiled.model_copy(update={"headers": (IO,)})}
    )
    wrong = CPP.model_copy(
        update={"precompiled": CPP.precompiled.model_copy(update={"headers": ("nothing.h",)})}
    )
    monkeypatch.setattr(packages, "LANGUAGES", {**LANGUAGES, "cpp": small})
    monkeypatch.setattr(packages, "find_language", lambda name: small)
    packages.packages(headers=("all",))
    assert capsys.readouterr().out == f"cpp 20, {IO}: {place}\n"
    with pytest.raises(EvaluatorFault, match=r"<nothing\.h> cannot be precompiled: .*No such file"):
        make_header(wrong, "nothing.h")


def test_who_waits_for_a_build_gets_it_or_builds_where_it_failed() -> None:
    cache = Builds()
    entered = threading.Event()
    may_end = threading.Event()
    begun = list[str]()

    def build() -> Build:
        begun.append("a build")
        entered.set()
        may_end.wait(60)
        if len(begun) == 1:
            raise SandboxDied("gone")
        return Build(b"binary")

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(cache.get, CPP, ADD, build)
        assert entered.wait(60)
        others = [pool.submit(cache.get, CPP, ADD, build) for _ in range(3)]
        may_end.set()
    assert isinstance(first.exception(), SandboxDied)
    assert [one.result() for one in others] == [Build(b"binary")] * 3
    assert len(begun) == 2


def test_sources_that_do_not_compile_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "_MAX_KEPT_BYTES", 100)
    cache = Builds()
    asked = list[str]()
    for code in ("a" * 60, "b" * 60, "b" * 60, "a" * 60):
        cache.get(CPP, code, lambda code=code: asked.append(code[0]) or Build(b"", "error"))
    assert asked == ["a", "b", "a"]


def test_no_more_builds_at_a_time_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microcoder.judge.run.builds.count_processors", lambda: 2)
    cache = Builds()
    meets = threading.Barrier(2)
    running = []

    def build() -> Build:
        running.append(1)
        assert len(running) <= 2
        meets.wait(60)
        meets.wait(60)
        running.pop()
        return Build(b"binary")

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(lambda n: cache.get(CPP, f"{n}", build), range(6))] == [
            Build(b"binary")
        ] * 6
