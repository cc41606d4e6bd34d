"""Linked lists and trees as LeetCode writes them: level-order lists to nodes and back, without recursion.

Arguments are of the classes below. A result is taken apart by the names of its fields, so a program may use a class
of its own; whatever its fields do is done here, in the program's own process.
"""

from __future__ import annotations

from collections import deque
from typing import Any

_MOST_NODES = 1 << 21
"""Maximum number of nodes in a result, twenty times LeetCode's: a property could make nodes for ever."""


class ListNode:
    """A node of a singly-linked list."""

    def __init__(self, val: Any = 0, next: Any = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    """A node of a binary tree."""

    def __init__(self, val: Any = 0, left: Any = None, right: Any = None) -> None:
        self.val = val
        self.left = left
        self.right = right


Nodes = dict[int, Any]
"""Nodes by `id`; they are held, since the id of a freed object may be reused."""

GIVEN_NAMES = {"ListNode": ListNode, "TreeNode": TreeNode}
"""Names that a program finds without defining them."""

for _class in GIVEN_NAMES.values():
    _class.__module__ = "solution"


def build(kind: str, value: Any) -> Any:
    """Return the argument of this kind for a checked JSON value: nodes, a list of them, or the value itself."""
    if kind.startswith("list["):
        inner = kind[5:-1]
        return None if value is None else [build(inner, item) for item in value]
    if kind == "json":
        return value
    return _build_list(value or []) if kind == "ListNode" else _build_tree(value or [])


def flatten(kind: str, value: Any) -> Any:
    """Return a result of this kind with its nodes as lists, values in them unchanged; TypeError for another type."""
    if kind == "json":
        return value
    if kind.startswith("list["):
        if not isinstance(value, (list, tuple, deque)):
            raise TypeError(f"expected {kind}, got {type(value).__name__}")
        return [flatten(kind[5:-1], item) for item in value]
    if value is None:
        return []
    return _flatten_list(value) if kind == "ListNode" else _flatten_tree(value)


def _read(node: Any, name: str, kind: str) -> Any:
    try:
        value = getattr(node, name)
    except AttributeError:
        raise TypeError(f"expected a {kind}, got {type(node).__name__} without {name}") from None
    if name == "val" and value is None:
        raise TypeError(f"a {kind} whose val is None")
    return value


def _refuse_cycle(kind: str) -> TypeError:
    return TypeError(f"the {kind} has a cycle, or more than {_MOST_NODES} nodes")


def _build_list(values: list[Any]) -> Any:
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head


def _flatten_list(node: Any) -> list[Any]:
    values: list[Any] = []
    seen: Nodes = {}
    while node is not None:
        if id(node) in seen or len(seen) > _MOST_NODES:
            raise _refuse_cycle("ListNode")
        seen[id(node)] = node
        values.append(_read(node, "val", "ListNode"))
        node = _read(node, "next", "ListNode")
    return values


def _build_tree(values: list[Any]) -> Any:
    if not values or values[0] is None:
        return None
    root = TreeNode(values[0])
    places = deque([(root, "left"), (root, "right")])
    for value in values[1:]:
        parent, side = places.popleft() if places else (None, "")
        if value is not None and parent is not None:
            node = TreeNode(value)
            setattr(parent, side, node)
            places += [(node, "left"), (node, "right")]
    return root


def _flatten_tree(root: Any) -> list[Any]:
    values: list[Any] = []
    seen: Nodes = {}
    level, depth, num_nodes = [root], 0, 0
    while level:
        depth += 1
        below = []
        for node in level:
            if node is None:
                values.append(None)
                continue
            seen[id(node)] = node
            num_nodes += 1
            values.append(_read(node, "val", "TreeNode"))
            below += [_read(node, "left", "TreeNode"), _read(node, "right", "TreeNode")]
        # Subtrees may be shared, but a tree deeper than it has nodes leads back into itself.
        if depth > len(seen) + 1 or num_nodes > _MOST_NODES:
            raise _refuse_cycle("TreeNode")
        level = below
    while values[-1] is None:
        values.pop()
    return values
