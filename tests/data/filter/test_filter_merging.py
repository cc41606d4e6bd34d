from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from microcoder.data.filter.duplicates import merge
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import Checker, TestCase

CHECKER = Checker(type="program", code="exit(42)", protocol="kattis")


def row(name: str, *pairs: tuple[str, str], **fields: object) -> Candidate:
    tests = tuple(TestCase(input=given, output=printed) for given, printed in pairs)
    return Candidate(id=name, dataset="set", tests=tests, **fields)  # type: ignore[arg-type]


ROWS = st.builds(
    lambda name, pairs, fn_name: row(name, *pairs, fn_name=fn_name),
    st.sampled_from(["set/a", "set/b", "set/c"]),
    st.lists(st.tuples(st.sampled_from("12345"), st.sampled_from("67")), max_size=4, unique_by=lambda pair: pair[0]),
    st.sampled_from([None, "f"]),
)


@given(ROWS, st.lists(ROWS, max_size=4, unique_by=lambda one: one.id))
def test_every_input_is_kept_once_and_the_kept_record_s_tests_come_first(
    kept: Candidate, others: list[Candidate]
) -> None:
    done = merge(kept, others)
    alike = [other for other in others if other.fn_name == kept.fn_name]
    inputs = [test.input for test in done.tests]
    assert done.tests[: len(kept.tests)] == kept.tests
    assert len(inputs) == len(set(inputs))
    assert set(inputs) == {test.input for one in (kept, *alike) for test in one.tests}
    assert merge(kept, others[::-1]) == done


def test_merging_again_adds_nothing_but_what_is_new() -> None:
    kept, other = row("a/1", ("1", "2")), row("b/1", ("1", "2"), ("3", "4"))
    once = merge(kept, [other])
    assert [test.input for test in once.tests] == ["1", "3"]
    again = merge(once, [other])
    assert (again.tests, again.merged) == (once.tests, ("b/1",))


def test_tests_called_in_another_way_are_left_and_counted() -> None:
    done = merge(row("a/1", ("1", "2"), fn_name="f"), [row("b/1", ("1\n", "2\n"), title="T")])
    assert len(done.tests) == 1
    assert {line.detail for line in done.lineage} == {"merged 1; 1 tests called in another way"}


def test_groups_go_with_their_tests() -> None:
    other = row("b/1", ("1", "2"), ("3", "4"), groups=("sample", "secret"))
    assert merge(row("a/1", ("1", "2")), [other]).groups == ("", "secret")
    assert merge(row("a/1", ("1", "2")), [row("b/1", ("3", "4"))]).groups == ()


def test_a_checker_comes_with_the_tests() -> None:
    other = row("b/1", ("1", "2"), checker=CHECKER)
    assert merge(row("a/1"), [other]).checker == CHECKER
    tokens = Checker(type="tokens")
    assert merge(row("a/1", checker=tokens), [other]).checker == tokens
    assert merge(row("a/1", fn_name="f"), [other]).checker == Checker()


def test_what_the_kept_record_did_not_know_is_filled_in() -> None:
    other = row("b/1", url="u", date="2024", title="T", platform="p", platform_difficulty="hard", licence="MIT",
                time_limit_seconds=2.0, memory_limit_mib=256, tags=("dp", "graphs"), pass_rates=("m=0.5",))  # fmt: skip
    done = merge(row("a/1", title="Mine", tags=("dp",)), [other])
    assert (done.title, done.url, done.date, done.platform) == ("Mine", "u", "2024", "p")
    assert (done.time_limit_seconds, done.memory_limit_mib, done.platform_difficulty) == (2.0, 256, "hard")
    assert (done.tags, done.pass_rates) == (("dp", "graphs"), ("m=0.5",))
    assert done.licence == ""


def test_solutions_are_kept_once_where_they_are_called_alike() -> None:
    shared, new = Solution(code="print(1)"), Solution(code="print(2)", known="wrong_answer")
    kept = row("a/1", solutions=(shared,))
    done = merge(kept, [row("b/1", solutions=(shared, new)), row("c/1", fn_name="f", solutions=(Solution(code="x"),))])
    assert done.solutions == (shared, new)


def test_merged_ids_are_those_of_merged_records_too() -> None:
    assert merge(row("a/1"), [row("c/1"), row("b/1", merged=("d/1",))]).merged == ("b/1", "d/1", "c/1")
