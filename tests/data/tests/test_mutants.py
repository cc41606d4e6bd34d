"""Wrong programs made from right ones."""

from __future__ import annotations

from microcoder.data.tests.killing import make_mutants

CODE = """from functools import cache

class Solution:
    def best(self, nums, k):
        seen = set(nums)

        @cache
        def go(i):
            if i >= len(nums) or k < 0:
                return 0
            return max(go(i + 1), nums[i] + go(i + 2))

        for i in range(1, len(nums)):
            if nums[i] in seen and nums[i - 1] <= k:
                k += 1
        return go(0) % (10**9 + 7)
"""


def test_mutants_are_other_programs_that_compile_and_name_what_was_changed() -> None:
    mutants = make_mutants(CODE, limit=200)
    assert len(mutants) > 20
    assert len({one.code for one in mutants}) == len(mutants)
    for one in mutants:
        compile(one.code, one.name, "exec")
        assert int(one.name.rpartition("@")[2]) <= CODE.count("\n")
    kinds = {one.name.split("/")[0] for one in mutants}
    assert {"compare", "operator", "logic", "constant", "branch", "bound", "greedy", "slow", "call", "index"} <= kinds


def test_a_limit_takes_some_of_each_kind_and_the_same_every_time() -> None:
    few = make_mutants(CODE, limit=12, seed=3)
    assert len(few) == 12
    assert len({one.name.split("/")[0] for one in few}) >= 6
    assert few == make_mutants(CODE, limit=12, seed=3)
    assert few != make_mutants(CODE, limit=12, seed=4)


def test_what_is_no_python_has_no_mutants() -> None:
    assert make_mutants("int main() { return 0; }", limit=5) == []
