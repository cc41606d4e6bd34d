"""Programs that bring their own `ListNode` or `TreeNode`,
which their arguments are then made of.
"""

from typing import Final

_INIT: Final = "    def __init__(self{}):\n        self.val = {}\n        self.next = {}\n"
_DATACLASS = (
    "from dataclasses import dataclass\n"
    "@dataclass({})\n"
    "class ListNode:\n"
    "    val: int{}\n"
    "    next: object{}\n"
)
LIST_CLASSES: Final = {
    "LeetCode's": "class ListNode:\n" + _INIT.format(", val=0, next=None", "val", "next"),
    "another order": "class ListNode:\n" + _INIT.format(", next=None, val=0", "val", "next"),
    "the value alone": "class ListNode:\n" + _INIT.format(", x", "x", "None"),
    "another name": "class ListNode:\n" + _INIT.format(", number, n=None", "number", "n"),
    "no parameters": "class ListNode:\n" + _INIT.format("", "0", "None"),
    "any parameters": "class ListNode:\n" + _INIT.format(", *all, **named", "0", "None"),
    "by place alone": "class ListNode:\n" + _INIT.format(", next, val, /", "val", "next"),
    "a node before it": "class ListNode:\n"
    + _INIT.format(", val, prev=None, next=None", "val", "next"),
    "no constructor": "class ListNode:\n    pass\n",
    "slots": "class ListNode:\n    __slots__ = ('val', 'next')\n"
    + _INIT.format(", val, next=None", "val", "next"),
    "slots alone": "class ListNode:\n    __slots__ = ('val', 'next')\n",
    "a dataclass": _DATACLASS.format("", " = 0", " = None"),
    "a frozen dataclass with slots": _DATACLASS.format(
        "frozen=True, slots=True",
        " = 0",
        " = None",
    ),
    "a dataclass by name alone": _DATACLASS.format("kw_only=True", "", ""),
    "a named tuple": (
        "from collections import namedtuple\nListNode = namedtuple('ListNode', 'val next')\n"
    ),
    "a derived class": "class N:\n"
    + _INIT.format(", val, next=None", "val", "next")
    + "class ListNode(N):\n    pass\n",
}
"""How the class is written -> its source."""

_LIST = LIST_CLASSES["LeetCode's"]
_TREE = """\
class TreeNode:
    __match_args__ = ("val", "left", "right")
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""
_FROZEN_TREE = """\
from dataclasses import dataclass
@dataclass(frozen=True)
class TreeNode:
    val: int
    left: "TreeNode" = None
    right: "TreeNode" = None
"""
MERGE = f"""\
import heapq
{_LIST}
    def __lt__(self, other):
        return self.val < other.val
class Solution:
    def solve(self, lists):
        queue = [node for node in lists if node]
        heapq.heapify(queue)
        head = tail = ListNode()
        while queue:
            tail.next = tail = heapq.heappop(queue)
            if tail.next:
                heapq.heappush(queue, tail.next)
        return head.next
"""
SUM_OF_A_TREE = f"""\
{_TREE}
def solve(root):
    match root:
        case TreeNode(val, left, right):
            return val + solve(left) + solve(right)
    return 0
"""
TOTAL = f"""\
{_LIST}
    def total(self):
        return self.val + (self.next.total() if self.next else 0)
def solve(head):
    return head.total()
"""
EQUAL = f"{_FROZEN_TREE}def solve(roots):\n    return roots[0] == roots[1]\n"
SAME_TREE = (
    f"{_FROZEN_TREE}def solve(root):\n    assert isinstance(root, TreeNode)\n    return root\n"
)
GIVEN_RESULT = f"Given = ListNode\n{_LIST}def solve(head):\n    return Given(head.val, head.next)\n"
NEVER_MADE = """\
class ListNode:
    def __init__(self, *all, **named):
        raise TypeError("no")
def solve(head):
    return head
"""
CYCLE = f"{_LIST}def solve(head):\n    head.next = head\n    return head\n"
