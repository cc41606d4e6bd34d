from pathlib import Path

import pytest

from microcoder.data.verify.store import VerdictStore, evaluator_version, verdict_key
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Problem, Program, TestResult, Verdict

PROBLEM = Problem.model_validate({"id": "p", "tests": [{"input": "1\udcff", "output": "1"}]})
FAILED = TestResult(Outcome.WRONG_ANSWER, 0.1, 0.2, 9.5, "", "line 1: \udcff")
VERDICT = Verdict(Outcome.WRONG_ANSWER, (FAILED,), 3, "test 1: line 1", "full")


def test_a_verdict_outlives_its_process(tmp_path: Path) -> None:
    key = verdict_key(Program("print(1)"), PROBLEM, stop="never", environment="Python 3.11.7")
    with VerdictStore(tmp_path / "a" / "store.sqlite") as store:
        assert store.find(key) is None
        store.keep(key, VERDICT)
    with VerdictStore(tmp_path / "a" / "store.sqlite") as store:
        assert store.find(key) == VERDICT
        assert len(store) == 1


def test_a_fault_of_the_sandbox_is_not_kept(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "store.sqlite") as store:
        store.keep(b"key", Verdict(Outcome.SANDBOX_FAULT, (), 1))
        assert len(store) == 0


def test_whatever_changes_a_verdict_changes_its_key() -> None:
    def key(code: str = "pass", stop: str = "never", environment: str = "Python 3.11.7", **changed: object) -> bytes:
        return verdict_key(Program(code), PROBLEM.model_copy(update=changed), stop=stop, environment=environment)

    keys = [
        key(),
        key("print()"),
        key(stop="first_limit"),
        key(tests=PROBLEM.tests * 2),
        key(memory_limit_mib=64),
        key(time_limit_seconds=1.0),
        key(fn_name="f"),
        key(language_version="3.13"),
        key(environment="Python 3.13.0"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(id="another", statement="text") == key()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database, but long enough to be looked at\n" * 30)
    with pytest.raises(DataError, match="remove it to start anew"):
        VerdictStore(tmp_path / "store.sqlite")


def test_the_evaluator_names_its_own_code() -> None:
    version, _, digest = evaluator_version().partition("+")
    assert version
    assert len(digest) == 12
