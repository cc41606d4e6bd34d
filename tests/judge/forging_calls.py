"""Forgeries of linked lists, trees, copies, design classes, and values that a checker program decides about."""

from __future__ import annotations

_PATCHES = """
import sys
def patch(names):
    for name in ("encode", "flatten", "_apply", "_operate", "_call", "_build_arguments", "_read", "_SHAPES", "build"):
        if name in names: names[name] = lambda *a, **k: True
frame = sys._getframe()
while frame is not None:
    patch(frame.f_globals)
    frame = frame.f_back
patch(ListNode.__init__.__globals__)
"""
_SEARCH = """
import gc, sys
def found():
    frame = sys._getframe()
    while frame is not None:
        yield from (*frame.f_globals.values(), *frame.f_locals.values())
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing) is dict: yield from thing.values()
        if type(thing) in (list, tuple): yield thing
"""
_ENDLESS = "class N:\n    val = 3\n    {field} = property(lambda self: N())\n    {rest}\n"

CALLS: dict[str, tuple[str, str]] = {
    # The list 1, 2, 3 is to be reversed.
    "the argument itself": ("list", "def turn(head): return head"),
    "a list that is a ring": ("list", "def turn(head):\n    head.next.next.next = head\n    return head.next.next"),
    "a node whose val counts its reads": (
        "list",
        "class N:\n    n = 0\n    next = None\n    @property\n    def val(self):\n        N.n += 1\n"
        "        return N.n\ndef turn(head):\n    a, b, c = N(), N(), N()\n    a.next, b.next = b, c\n    return a",
    ),
    "a node whose next changes with every read": (
        "list",
        "class N:\n    val = 3\n    n = 0\n    @property\n    def next(self):\n        N.n += 1\n"
        "        return None if N.n > 2 else N()\ndef turn(head): return N()",
    ),
    "a list without end": ("list", _ENDLESS.format(field="next", rest="") + "def turn(head): return N()"),
    "a node whose val equals everything": (
        "list",
        "class Any:\n    __eq__ = lambda self, other: True\n    __hash__ = None\nclass I(int):\n"
        "    __eq__ = lambda self, other: True\n    __hash__ = lambda self: 0\n"
        "def turn(head): return ListNode(I(9), ListNode(I(9), ListNode(I(9))))",
    ),
    "a node whose val is the list": ("list", "def turn(head): return ListNode([3, 2, 1])"),
    "a node whose val is a node": ("list", "def turn(head): return ListNode(ListNode(3))"),
    "a list instead of nodes": ("list", "def turn(head): return [3, 2, 1]"),
    "a node class that lies about itself": (
        "list",
        "class N(ListNode):\n    __class__ = list\n    __getattribute__ = lambda self, name: True\n"
        "def turn(head): return N()",
    ),
    "a runner of nodes that is patched": ("list", _PATCHES + "def turn(head): return head"),
    "node classes that are patched": (
        "list",
        "ListNode.val = property(lambda self: 3, lambda self, value: None)\ndef turn(head): return head",
    ),
    "expected nodes in frames and heap": (
        "list",
        _SEARCH + "def turn(head):\n    for thing in found():\n        if type(thing) is list and thing == [3, 2, 1]:\n"
        "            return ListNode(3, ListNode(2, ListNode(1)))",
    ),
    "an iterator of nodes": ("list", "def turn(head): return iter([ListNode(3), ListNode(2), ListNode(1)])"),
    # The tree 1, null, 2 is to be mirrored.
    "a node that stands for null": ("tree", "def turn(root): return TreeNode(1, TreeNode(2, TreeNode(None)))"),
    "a tree in itself": ("tree", "def turn(root):\n    root.left = root\n    return root"),
    "a tree without end": ("tree", _ENDLESS.format(field="left", rest="right = left") + "def turn(root): return N()"),
    "a tree that grows with every read": (
        "tree",
        "class N:\n    val = 1\n    def __getattr__(self, name): return N()\ndef turn(root): return N()",
    ),
    "nulls without end": ("tree", "class N:\n    val = None\n    left = right = None\ndef turn(root): return N()"),
    # A list of nodes with random pointers is to be copied.
    "the original instead of a copy": ("copy", "def copy_list(head): return head"),
    "the original behind a new head": (
        "copy",
        "def copy_list(head):\n    new = Node(head.val, head.next)\n    new.random = head.random\n    return new",
    ),
    "a copy whose random leads to the original": (
        "copy",
        "def copy_list(head):\n    a, b = Node(head.val), Node(head.next.val)\n    a.next, b.random = b, head\n"
        "    return a",
    ),
    # A stack with push, pop.
    "a design class that patches the runner": (
        "design",
        _PATCHES + "class Stack:\n    def push(self, n): return 1\n    def pop(self): return True",
    ),
    "a design class that has every method": (
        "design",
        "class Any(int):\n    __eq__ = lambda self, other: True\n    __hash__ = lambda self: 0\n"
        "class Stack:\n    def __getattr__(self, name): return lambda *given: Any()",
    ),
    "expected results in frames and heap": (
        "design",
        _SEARCH + "class Stack:\n    def push(self, n): pass\n    def pop(self):\n        for thing in found():\n"
        "            if type(thing) in (list, tuple) and len(thing) == 5 and thing[0] is None: return thing[-1]",
    ),
    "a design class that is a function": ("design", "def Stack(): return [None, None, None, 2, 1]"),
    "all results at once": (
        "design",
        "class Stack:\n    def push(self, n): return [None, None, 2, 1]\n    pop = lambda self: exit()",
    ),
    # Two numbers with this sum, decided by a checker program.
    "text that is the value": ("valued", "def split(n): return '[3, 7]'"),
    "text that ends the value": ("valued", "def split(n): return '\"], [3, 7'"),
    "not a number for the checker": ("valued", "def split(n): return [float('nan'), float('inf')]"),
    "an int that lies to the checker": (
        "valued",
        "class I(int):\n    __add__ = __radd__ = lambda self, other: 10\n    __repr__ = __str__ = lambda self: '5'\n"
        "def split(n): return [I(1), I(1)]",
    ),
    "bytes for the checker": ("valued", "import os\nos.write(3, b'\\xff[3, 7]')\nos._exit(0)"),
    "a frame for the checker": ("valued", "import os\nos.write(3, b'{\"any\": [3, 7]}')\nos._exit(0)"),
    "a list that is too long for the checker": ("valued", "def split(n): return [[]] * 10 ** 6"),
    "the answer file": ("valued", "def split(n): return [open(name).read() for name in ('answer', '/tmp/answer')]"),
    "keys that are no text": ("valued", "def split(n): return {3: 7, (3, 7): [3, 7]}"),
}
