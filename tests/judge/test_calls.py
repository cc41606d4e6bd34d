"""Function-call problems: usual names, values, nodes, changes in place, design classes, iterators,
checker programs.
"""

import json
from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from microcoder.judge import Judge, check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Call, Checker, Outcome, Problem, Program
from tests.judge import node_classes
from tests.judge.conftest import make_problem, run


def call(
    arguments: list[object],
    expected: object,
    call: Mapping[str, object] | None = None,
    **options: object,
) -> Problem:
    test = ("\n".join(map(json.dumps, arguments)), json.dumps(expected))
    return make_problem(test, fn_name="solve", call=call and Call.model_validate(call), **options)


Asked = tuple[str, list[tuple[object, object]], Mapping[str, object]]
"""A program, its tests (argument, result), and its call."""
LIST = {"parameters": ["ListNode"], "returns": "ListNode"}
TREE = {"parameters": ["TreeNode"], "returns": "TreeNode"}
REVERSE = """
class Solution:
    def solve(self, head: Optional[ListNode]) -> Optional[ListNode]:
        last = None
        while head: head.next, last, head = last, head, head.next
        return last
"""
MIRROR = """
class Solution:
    def solve(self, root: Optional['TreeNode']) -> Optional['TreeNode']:
        waiting = [root] if root else []
        for node in waiting:
            node.left, node.right = node.right, node.left
            waiting += [child for child in (node.left, node.right) if child]
        return root
"""
OWN_CLASS = """
class ListNode:
    __slots__ = ('val', 'next')
    def __init__(self, val, next=None): self.val, self.next = val, next
"""
DEEP = [n if n % 2 else None for n in range(1, 50_000)]
"""A tree that only ever goes right: 1, null, 3, null, 5, ..."""


@pytest.mark.parametrize(
    ("code", "arguments", "expected", "said"),
    [
        (REVERSE, [[1, 2, 3]], [3, 2, 1], LIST),
        (REVERSE, [[]], [], LIST),
        (OWN_CLASS + REVERSE, [[1, 2, 3]], [3, 2, 1], LIST),
        (
            OWN_CLASS + "def solve(n): return ListNode(n, ListNode(5))",
            [4],
            [4, 5],
            {"returns": "ListNode"},
        ),
        (REVERSE, [list(range(50_000))], list(range(49_999, -1, -1)), LIST),
        (MIRROR, [[1, 2, 3, None, 4]], [1, 3, 2, None, None, 4], TREE),
        ("def solve(root): return root", [DEEP], DEEP, TREE),
        ("def solve(root): return root.right.val", [[1, None, 2]], 2, {"parameters": ["TreeNode"]}),
        (
            "def solve(lists): return lists[1]",
            [[[1], [2, 3]]],
            [2, 3],
            {**LIST, "parameters": ["list[ListNode]"]},
        ),
        (
            (
                "def solve():\n"
                "    leaf = TreeNode(0)\n"
                "    return [TreeNode(1, leaf, leaf), None, leaf]"
            ),
            [],
            [[1, 0, 0], [], [0]],
            {"returns": "list[TreeNode]"},
        ),
        ("def solve(nums): nums.reverse()", [[1, 2, 3]], [3, 2, 1], {"result": 0}),
        (
            "def solve(k, nums):\n    nums[:] = nums[k:] + nums[:k]\n    return 5",
            [1, [1, 2, 3]],
            [2, 3, 1],
            {"result": 1},
        ),
        (
            "def solve(head): head.next = None",
            [[1, 2, 3]],
            [1],
            {"parameters": ["ListNode"], "result": 0},
        ),
    ],
)
def test_kinds(
    judge_one: Judge,
    code: str,
    arguments: list[object],
    expected: object,
    said: dict[str, object],
) -> None:
    verdict = run(judge_one, code, call(arguments, expected, said))
    assert verdict.is_accepted, verdict.detail


def test_wrong_nodes(judge_one: Judge) -> None:
    circle = "def solve(head):\n    n = TreeNode(3)\n    n.right = n\n    return n"
    for code, said, detail in (
        ("def solve(head): return head", LIST, "expected 3, got 1"),
        (
            "def solve(head):\n    head.next.next.next = head\n    return head",
            LIST,
            "ListNode has a cycle",
        ),
        ("def solve(head): return [3, 2, 1]", LIST, "expected a ListNode, got list"),
        ("def solve(head): return 3", LIST, "expected a ListNode, got int"),
        (
            "def solve(head): return ListNode(3, ListNode(2, ListNode(None)))",
            LIST,
            "whose val is None",
        ),
        (circle, {"returns": "TreeNode"}, "has a cycle"),
        ("def solve(head): return ListNode(3)", {}, "type ListNode, which cannot be compared"),
    ):
        verdict = run(judge_one, code, call([[1, 2, 3]], [3, 2, 1], said))
        assert verdict.outcome in (Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR)
        assert detail in verdict.detail


ITERATORS = """
class It:
    n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 2
        if self.n > 6: raise StopIteration
        return self.n
def solve(a):
    found = [
        (x * 2 for x in a), map(lambda x: x * 2, a), filter(None, [2, 0, 4, 6]), \
itertools.chain([2], iter([4, 6])),
        reversed([6, 4, 2]), It(),
    ]
    return found if a[-1] == 3 else found[0]
"""


def test_iterators_are_their_items(judge_one: Judge) -> None:
    assert run(judge_one, ITERATORS, call([[1, 2, 3]], [[2, 4, 6]] * 6)).is_accepted
    assert run(judge_one, ITERATORS, call([[1, 2]], [2, 4])).is_accepted
    assert run(judge_one, ITERATORS, call([[1, 2]], [2])).outcome is Outcome.WRONG_ANSWER


def test_what_never_ends_is_ended(judge_one: Judge) -> None:
    node = "class N:\n    val = 1\n    {} = property(lambda self: N())\ndef solve(): return N()"
    ends = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT, Outcome.RUNTIME_ERROR)
    for code, said in (
        ("def solve():\n    while True: yield 1", None),
        ("def solve(): return itertools.repeat(None)", None),
        (node.format("next"), {"returns": "ListNode"}),
        (node.format("left = right"), {"returns": "TreeNode"}),
    ):
        verdict = run(
            judge_one,
            code,
            call([], [1], said, time_limit_seconds=0.1, memory_limit_mib=256),
        )
        assert verdict.outcome in ends, verdict.detail
        assert run(judge_one, "def solve(): return [1]", call([], [1])).is_accepted


COUNTER = """
class Counter2:
    def __init__(self, start): self.n, self.history = start, []
    def add(self, k):
        self.n += k
        self.history.append(self.n)
    def seen(self) -> List[int]: return self.history
"""


def design(results: list[object], **options: object) -> Problem:
    operations = ["Counter2", "add", "seen", "add", "seen"]
    test = (f"{json.dumps(operations)}\n[[5], [1], [], [2], []]", json.dumps(results))
    return make_problem(test, fn_name="Counter2", call=Call(style="design"), **options)


def test_design_classes(judge_one: Judge) -> None:
    assert run(judge_one, COUNTER, design([None, None, [6], None, [6, 8]])).is_accepted
    verdict = run(judge_one, COUNTER, design([None, None, [6], None, [6, 9]]))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert "value[4][1]: expected 9, got 8" in verdict.detail
    assert (
        "defines no class Counter2"
        in run(judge_one, "class Other: pass", design([None] * 5)).detail
    )
    # One that takes nodes.
    head = (
        "class BSTIterator:\n\n"
        "    def __init__(self, root: Optional[TreeNode]):\n\n"
        "    def next(self) -> int:\n"
    )
    code = (
        "class BSTIterator:\n"
        "    def __init__(self, root): self.n = root.left.val\n"
        "    def next(self): return self.n"
    )
    test = ('["BSTIterator", "next"]\n[[[7, 3, 15]], []]', "[null, 3]")
    assert run(
        judge_one,
        code,
        make_problem(test, fn_name="BSTIterator", starter_code=head),
    ).is_accepted


def starter(head: str, before: str = "") -> str:
    return f"{before}class Solution:\n    def solve(self, {head}:\n        "


NARY = (
    '"""\n# Definition for a Node.\nclass Node:\n    def __init__(self, val=None, children=None):\n'
    '        self.val = val\n        self.children = children\n"""\n'
)


@pytest.mark.parametrize(
    ("source", "expected", "said"),
    [
        (starter("head: Optional[ListNode]) -> 'ListNode'"), "[1]", Call.model_validate(LIST)),
        (
            starter("a: List[Optional[TreeNode]], k: int) -> int"),
            "1",
            Call(parameters=("list[TreeNode]", "json")),
        ),
        (
            starter("head: typing.Optional[ListNode]) -> None | ListNode"),
            "[1]",
            Call.model_validate(LIST),
        ),
        (
            starter("k: int, nums: list) -> None"),
            "[1]",
            Call(parameters=("json", "json"), result=1),
        ),
        (starter("root: TreeNode | None) -> bool"), "true", Call(parameters=("TreeNode",))),
        (starter("nums: List[int]) -> None"), "[1]", Call(parameters=("json",), result=0)),
        (
            starter("k: int, head: ListNode) -> None"),
            "[1]",
            Call(parameters=("json", "ListNode"), result=1),
        ),
        (starter("nums: List[int]) -> None"), "null", None),
        (starter("root: Node) -> int"), "1", None),
        (starter("nums: List[int]) -> List[int]"), "[1]", None),
        ("this is no code (", "1", None),
    ],
)
def test_starter_code_says_how_a_function_is_called(
    source: str,
    expected: str,
    said: Call | None,
) -> None:
    assert (
        find_call(make_problem(("[1]\n2", expected), fn_name="solve", starter_code=source)) == said
    )


def test_what_the_problem_says_wins_over_its_starter_code(judge_one: Judge) -> None:
    problem = make_problem(
        ("[1]", "[1]"),
        fn_name="solve",
        starter_code=starter("root: 'Node') -> List[int]", NARY),
    )
    with pytest.raises(
        DataError, match="its starter code defines a class Node; only ListNode and TreeNode"
    ):
        check_problem(problem)
    check_problem(problem.model_copy(update={"call": Call()}))
    problem = make_problem(
        ("[4]", "4"),
        fn_name="solve",
        starter_code=starter("head: ListNode) -> int"),
    )
    assert run(judge_one, "def solve(head): return head.val", problem).is_accepted
    assert run(
        judge_one,
        "def solve(head): return head[0]",
        problem.model_copy(update={"call": Call()}),
    ).is_accepted


OPERATIONS = {"fn_name": "Counter2", "call": Call(style="design")}


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            call([5], [], TREE, id="bad"),
            r"problem bad, test 1, argument 1 is no TreeNode: 5 \(no list\); write it as",
        ),
        (
            call([[1, None, None, 2]], [], TREE),
            r"argument 1 is no TreeNode: \[1, None, None, 2\]; write it as a level",
        ),
        (call([[1]], 7, TREE), "the expected output is no TreeNode: 7"),
        (call([[1, None]], [], LIST), "argument 1 is no ListNode"),
        (call([[1]], [1], {"result": 3}), "the result is argument 3, counted from 0, of 1"),
        (
            make_problem(("[1]\nx", "1"), fn_name="solve"),
            "problem p, test 1, input line 2 is not a JSON argument",
        ),
        (
            make_problem(("1", "one"), fn_name="solve"),
            "problem p, test 1: the expected output is not JSON",
        ),
        *(
            (
                make_problem(test, **OPERATIONS),
                "takes a line of operations, the first 'Counter2', and a line with their",
            )
            for test in (
                ('["Counter2"]', "[null]"),
                ('["Counter2", "add"]\n[[]]', "[null, null]"),
                ('["add", "Counter2"]\n[[], []]', "[null, null]"),
                ('["Counter2", "add"]\n[[], 1]', "[null, null]"),
                ('["Counter2", 1]\n[[], []]', "[null, null]"),
                ('["Counter2"]\n[[]]', "[1]"),
                ('["Counter2"]\n[[]]', "null"),
                ("[]\n[]", "[]"),
            )
        ),
        (design([None] * 5, checker=Checker(type="unordered")), "could swap"),
    ],
)
def test_a_problem_that_does_not_fit_its_call_is_refused_before_anything_runs(
    problem: Problem, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        check_problem(problem)


def test_records_that_contradict_themselves() -> None:
    for said, message in (
        ({"parameters": ["Tree"]}, "not a kind"),
        ({"parameters": ["list[TreeNode"]}, "not a kind"),
        ({"methods": [{"name": "add"}]}, "takes no methods"),
        ({"style": "design", "result": 0}, "takes no result"),
    ):
        with pytest.raises(ValidationError, match=message):
            Call.model_validate(said)
    with pytest.raises(ValidationError, match="give fn_name"):
        make_problem(("1", "1"), call=Call())


def judge_all(
    programs: list[tuple[str, list[tuple[object, object]], Mapping[str, object]]],
    *,
    is_shared: bool,
) -> list[Outcome]:
    """Return the outcomes of programs, each with its tests (argument, result) and its call."""
    asked = []
    for _, tests, said in programs:
        written = [(json.dumps(given), json.dumps(expected)) for given, expected in tests]
        asked.append(make_problem(*written, fn_name="solve", call=Call.model_validate(said)))
    with Judge(workers=2, batch_tests=is_shared) as judge:
        found = judge.judge([Program(code) for code, _, _ in programs], asked)
    return [verdict.outcome for verdict in found]


@pytest.mark.parametrize("is_shared", [True, False])
def test_nodes_are_of_the_class_that_the_program_defines(is_shared: bool) -> None:
    tests: list[tuple[object, object]] = [
        ([1, 2, 3], [True, 1, 2, 3]),
        ([4], [True, 4]),
        ([7], [True, 7]),
    ]
    solve = """
def solve(head):
    found = [isinstance(head, ListNode)]
    while head is not None:
        found.append(head.val)
        head = head.next
    return found
"""
    said = {"parameters": ["ListNode"]}
    programs: list[Asked] = []
    for written in node_classes.LIST_CLASSES.values():
        programs.append((f"{written}{solve}", tests, said))
    found = judge_all(programs, is_shared=is_shared)
    accepted = dict(zip(node_classes.LIST_CLASSES, found, strict=True))
    assert accepted == dict.fromkeys(node_classes.LIST_CLASSES, Outcome.ACCEPTED)


@pytest.mark.parametrize("is_shared", [True, False])
def test_what_the_class_of_a_program_can_do_its_arguments_can(is_shared: bool) -> None:
    lists = {"parameters": ["list[ListNode]"], "returns": "ListNode"}
    tree = {"parameters": ["TreeNode"]}
    roots = {"parameters": ["list[TreeNode]"]}
    programs: list[Asked] = [
        (node_classes.MERGE, [([[1, 4], [1, 3]], [1, 1, 3, 4]), ([], []), ([[]], [])], lists),
        (node_classes.SUM_OF_A_TREE, [([1, 2, 3], 6), ([], 0), ([1, None, 2], 3)], tree),
        (node_classes.TOTAL, [([1, 2], 3), ([5], 5)], {"parameters": ["ListNode"]}),
        (node_classes.EQUAL, [([[1, 2], [1, 2]], True), ([[1], [2]], False)], roots),
        (node_classes.SAME_TREE, [([1, None, 2, 3], [1, None, 2, 3]), ([5], [5])], TREE),
        (node_classes.GIVEN_RESULT, [([1, 2], [1, 2]), ([3], [3])], LIST),
        (node_classes.NEVER_MADE, [([1, 2], [1, 2]), ([3], [3])], LIST),
    ]
    found = judge_all(programs, is_shared=is_shared)
    assert found == [Outcome.ACCEPTED] * len(programs)
    cycle: Asked = (node_classes.CYCLE, [([1, 2], [1, 2])], LIST)
    assert judge_all([cycle], is_shared=is_shared) == [Outcome.RUNTIME_ERROR]
