"""What one build decided by measurement, the next one takes over."""

from pathlib import Path

import pytest

from microcoder.data import Candidate
from microcoder.data.decisions import Decisions, find_shared_folder
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.execution import verify
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from tests.data.verify_candidates import make_candidate

SETTINGS = VerifySettings(min_hidden_tests=1)
NEAR = "a, b = map(int, input().split())\nfor i in range(4_000_000): pass\nprint(a + b)\n"


def make_decisions(*folders: Path, version: str = "1") -> Decisions:
    return Decisions(folders, version=version)


def test_the_first_decision_stands(tmp_path: Path) -> None:
    first = make_decisions(tmp_path / "work", tmp_path / "shared")
    second = make_decisions(tmp_path / "other", tmp_path / "shared")
    assert first.keep("ab", "2 s") == "2 s"
    assert second.keep("ab", "5 s") == "2 s"
    assert second.find("ab") == "2 s"
    assert not list(tmp_path.rglob("*.partial"))


def test_a_decision_that_is_found_is_copied_to_the_folders_without_it(tmp_path: Path) -> None:
    make_decisions(tmp_path / "shared").keep("ab", "2 s")
    # A build that sees the shared folder takes the decision over into its own.
    found = make_decisions(tmp_path / "work", tmp_path / "shared").find("ab")
    assert found == "2 s"
    # Resumed by a node that does not see it, the build has the decision still.
    assert make_decisions(tmp_path / "work", tmp_path / "elsewhere").find("ab") == "2 s"
    assert make_decisions(tmp_path / "elsewhere").find("ab") == "2 s"


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"title": "Sums"}, True),
        ({"url": "https://example.org/1"}, True),
        ({"boilerplate": (3, 40)}, True),
        ({"time_limit_seconds": 2.0}, False),
        ({"solutions": [{"code": NEAR}]}, False),
    ],
)
def test_what_decides_is_in_the_name(changes: dict[str, object], is_same: bool) -> None:
    decisions = make_decisions()
    texts = frozenset({"title"})
    name = decisions.name(make_candidate(), without=texts)
    assert (decisions.name(make_candidate(**changes), without=texts) == name) is is_same
    assert make_decisions(version="2").name(make_candidate(), without=texts) != name


def test_a_folder_that_the_environment_names_must_be_writable(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MICROCODER_DECISIONS", str(tmp_path / "here"))
    assert find_shared_folder() == tmp_path / "here"
    (tmp_path / "file").touch()
    monkeypatch.setenv("MICROCODER_DECISIONS", str(tmp_path / "file"))
    with pytest.raises(DataError, match="name one, or unset it"):
        find_shared_folder()


def test_another_machine_takes_over_what_was_decided(judge: Judge, tmp_path: Path) -> None:
    rows = [
        make_candidate(solutions=[{"code": NEAR}]),
        make_candidate(id="made/wrong", solutions=[{"code": "print(3)"}]),
    ]
    shared = make_decisions(tmp_path)
    first = verify(rows, judge, SETTINGS, decisions=shared)
    with Judge(workers=1, cache_size=0, time_scale=3.0) as slower:
        renamed = [row.model_copy(update={"title": "Sums"}) for row in rows]
        second = verify(renamed, slower, SETTINGS, decisions=shared)
        assert slower.statistics.judged == 0
    kept = first[0]
    assert isinstance(kept, Candidate)
    assert kept.time_limit_seconds is not None
    assert second[0] == kept.model_copy(update={"title": "Sums"})
    assert getattr(second[1], "reason", "") == "reference_fails"
