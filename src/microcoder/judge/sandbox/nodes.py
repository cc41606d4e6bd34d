"""Linked lists, trees and graphs as LeetCode writes them: level-order lists to nodes and back, without recursion.

Arguments are of the classes below. A result is taken apart by the names of its fields, so a program may use a class
of its own; whatever its fields do is done here, in the program's own process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

END_OF_LEVEL = "#"
_MOST_NODES = 1 << 21
"""Twenty times what LeetCode gives; without a bound, a property could make nodes for ever."""


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


class _Parent:
    def __init__(self, val: Any = None, children: Any = None) -> None:
        self.val = val
        self.children = children if children is not None else []


class _Neighbor:
    def __init__(self, val: Any = 0, neighbors: Any = None) -> None:
        self.val = val
        self.neighbors = neighbors if neighbors is not None else []


class _Random:
    def __init__(self, x: Any = 0, next: Any = None, random: Any = None) -> None:
        self.val = x
        self.next = next
        self.random = random


class _Next:
    def __init__(self, val: Any = 0, left: Any = None, right: Any = None, next: Any = None) -> None:
        self.val = val
        self.left = left
        self.right = right
        self.next = next


Nodes = dict[int, Any]
"""Nodes by their identity; they are held, for an identity may be given again."""

NODES = {"Node.children": _Parent, "Node.neighbors": _Neighbor, "Node.random": _Random, "Node.next": _Next}
"""Class that `Node` names, by the kind of a problem's nodes."""
GIVEN_NAMES = {"ListNode": ListNode, "TreeNode": TreeNode, "Node": _Next}
"""Names that a program finds without defining them."""

for _class in (ListNode, TreeNode, *NODES.values()):
    _class.__module__ = "solution"
for _class in NODES.values():
    _class.__name__ = _class.__qualname__ = "Node"


def build(kind: str, value: Any, earlier: Iterable[Any] = ()) -> Any:
    """Return what a checked JSON value stands for; `TreeNode.val` finds its node in the arguments before it."""
    if kind.startswith("list["):
        inner = kind[5:-1]
        return None if value is None else [build(inner, item, earlier) for item in value]
    if kind == "TreeNode.val":
        return None if value is None else _find(value, earlier)
    return value if kind == "json" else _SHAPES[kind].build(value or [])


def flatten(kind: str, value: Any, seen: Nodes) -> Any:
    """Return a result as JSON has it; the values inside nodes are left as they are."""
    if kind == "json" or (value is None and kind == "TreeNode.val"):
        return value
    if kind.startswith("list["):
        if not isinstance(value, (list, tuple, deque)):
            raise TypeError(f"expected {kind}, got {type(value).__name__}")
        return [flatten(kind[5:-1], item, seen) for item in value]
    if kind == "TreeNode.val":
        return _read(value, "val", "TreeNode")
    if value is None:
        return []
    # Trees of one result may share nodes; within one, a node that comes again may mean a cycle.
    own: Nodes = {}
    values = _SHAPES[kind].flatten(value, own)
    seen.update(own)
    return values


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


def _flatten_list(node: Any, seen: Nodes) -> list[Any]:
    values: list[Any] = []
    while node is not None:
        if id(node) in seen or len(seen) > _MOST_NODES:
            raise _refuse_cycle("ListNode")
        seen[id(node)] = node
        values.append(_read(node, "val", "ListNode"))
        node = _read(node, "next", "ListNode")
    return values


def _build_tree(values: list[Any], make: Callable[[Any], Any] = TreeNode) -> Any:
    if not values or values[0] is None:
        return None
    root = make(values[0])
    places = deque([(root, "left"), (root, "right")])
    for value in values[1:]:
        parent, side = places.popleft() if places else (None, "")
        if value is not None and parent is not None:
            node = make(value)
            setattr(parent, side, node)
            places += [(node, "left"), (node, "right")]
    return root


def _flatten_tree(root: Any, seen: Nodes) -> list[Any]:
    values: list[Any] = []
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
    return _without_last_nulls(values)


def _find(value: Any, earlier: Iterable[Any]) -> Any:
    """Return the node with this value in the trees among the earlier arguments."""
    for tree in earlier:
        waiting = [tree] if isinstance(tree, TreeNode) else []
        while waiting:
            node = waiting.pop()
            if node is not None:
                if node.val == value:
                    return node
                waiting += [node.left, node.right]
    return None


def _without_last_nulls(values: list[Any]) -> list[Any]:
    while values and values[-1] is None:
        values.pop()
    return values


def _build_children(values: list[Any]) -> Any:
    if not values:
        return None
    root = _Parent(values[0])
    parents = deque([root])
    parent = None
    for value in values[1:]:
        if value is None:
            parent = parents.popleft()
        else:
            node = _Parent(value)
            parent.children.append(node)  # pyrefly: ignore[missing-attribute] - checked: the second item is null
            parents.append(node)
    return root


def _flatten_children(root: Any, seen: Nodes) -> list[Any]:
    values = [_read(root, "val", "Node"), None]
    seen[id(root)] = root
    waiting = deque([root])
    while waiting:
        for node in _read(waiting.popleft(), "children", "Node") or ():
            if id(node) in seen or len(seen) > _MOST_NODES:
                raise _refuse_cycle("tree of Nodes")
            seen[id(node)] = node
            values.append(_read(node, "val", "Node"))
            waiting.append(node)
        values.append(None)
    return _without_last_nulls(values)


def _build_neighbors(rows: list[list[int]]) -> Any:
    made = [_Neighbor(number) for number in range(1, len(rows) + 1)]
    for node, row in zip(made, rows, strict=True):
        node.neighbors = [made[number - 1] for number in row]
    return made[0] if made else None


def _flatten_neighbors(start: Any, seen: Nodes) -> list[Any]:
    seen[id(start)] = start
    waiting = deque([start])
    rows: dict[int, list[Any]] = {}
    while waiting:
        node = waiting.popleft()
        number = _read(node, "val", "Node")
        if type(number) is not int or number in rows:
            raise TypeError("Nodes of a graph are numbered from 1, each once")
        near = list(_read(node, "neighbors", "Node"))
        rows[number] = [_read(other, "val", "Node") for other in near]
        for other in near:
            if id(other) not in seen:
                seen[id(other)] = other
                waiting.append(other)
        if len(seen) > _MOST_NODES:
            raise _refuse_cycle("graph")
    if sorted(rows) != list(range(1, len(rows) + 1)) or _read(start, "val", "Node") != 1:
        raise TypeError("Nodes of a graph are numbered from 1, and the first is returned")
    return [rows[number] for number in sorted(rows)]


def _build_random(pairs: list[list[Any]]) -> Any:
    made = [_Random(value) for value, _ in pairs]
    for index, (node, (_, random)) in enumerate(zip(made, pairs, strict=True)):
        node.next = made[index + 1] if index + 1 < len(made) else None
        node.random = None if random is None else made[random]
    return made[0] if made else None


def _flatten_random(node: Any, seen: Nodes) -> list[Any]:
    places: dict[int, int] = {}
    while node is not None:
        if id(node) in seen or len(seen) > _MOST_NODES:
            raise _refuse_cycle("list of Nodes")
        places[id(node)] = len(seen)
        seen[id(node)] = node
        node = _read(node, "next", "Node")
    pairs = []
    for node in seen.values():
        random = _read(node, "random", "Node")
        if random is not None and id(random) not in places:
            raise TypeError("a Node's random leads out of its list")
        pairs.append([_read(node, "val", "Node"), None if random is None else places[id(random)]])
    return pairs


def _flatten_next(start: Any, seen: Nodes) -> list[Any]:
    """Walk each level by `next` alone, beginning at the first child of the level above."""
    values: list[Any] = []
    while start is not None:
        node, start = start, None
        while node is not None:
            if id(node) in seen or len(seen) > _MOST_NODES:
                raise _refuse_cycle("tree of Nodes")
            seen[id(node)] = node
            values.append(_read(node, "val", "Node"))
            left, right = _read(node, "left", "Node"), _read(node, "right", "Node")
            start = next((one for one in (start, left, right) if one is not None), None)
            node = _read(node, "next", "Node")
        values.append(END_OF_LEVEL)
    return values


class _Shape(NamedTuple):
    build: Callable[[list[Any]], Any]
    flatten: Callable[[Any, Nodes], list[Any]]


_SHAPES: Mapping[str, _Shape] = {
    "ListNode": _Shape(_build_list, _flatten_list),
    "TreeNode": _Shape(_build_tree, _flatten_tree),
    "Node.children": _Shape(_build_children, _flatten_children),
    "Node.neighbors": _Shape(_build_neighbors, _flatten_neighbors),
    "Node.random": _Shape(_build_random, _flatten_random),
    "Node.next": _Shape(lambda values: _build_tree(values, _Next), _flatten_next),
}
