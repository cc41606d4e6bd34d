"""Linked lists and trees as LeetCode writes them: level-order lists to nodes and back, without recursion.

Arguments are of the class that the program defines under the name, where that class can be made by its fields, else of
the classes below. A result is taken apart by the names of its fields, whichever class it is of. Whatever a class of the
program does is done here, in the program's own process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
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


def build(kind: str, value: Any, names: Mapping[str, Any] | None = None) -> Any:
    """Return the argument of this kind for a checked JSON value: nodes, a list of them, or the value itself.

    `names` are those of the program; nodes are made of its own class, if it defines one.
    """
    if kind.startswith("list["):
        inner = kind[5:-1]
        return None if value is None else [build(inner, item, names) for item in value]
    if kind == "json":
        return value
    own = None if names is None else names.get(kind)
    make = _build_list if kind == "ListNode" else _build_tree
    if isinstance(own, type) and own is not GIVEN_NAMES[kind]:
        try:
            return make(value or [], _maker(own))
        except _CannotMakeError:
            pass
    return make(value or [], GIVEN_NAMES[kind])


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


def _build_list(values: list[Any], make: _Maker) -> Any:
    head = None
    for value in reversed(values):
        head = make(val=value, next=head)
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


def _build_tree(values: list[Any], make: _Maker) -> Any:
    if not values or values[0] is None:
        return None
    # Children of each value by index, or none: nodes whose fields cannot change later are made from the leaves up.
    children: dict[int, list[int]] = {0: []}
    places = deque([0, 0])
    for index, value in enumerate(values[1:], 1):
        if not places:
            break
        parent = places.popleft()
        children[parent].append(index if value is not None else -1)
        if value is not None:
            children[index] = []
            places += [index, index]
    made: dict[int, Any] = {-1: None}
    for index in reversed(children):
        left, right = [*children[index], -1, -1][:2]
        made[index] = make(
            val=values[index], left=made.pop(left, None), right=made.pop(right, None)
        )
    return made[0]


class _CannotMakeError(Exception):
    """The program's class cannot be made by the fields of a node."""


_Maker = Callable[..., Any]
"""Makes a node of its fields, given by name: `val` and `next`, or `val`, `left` and `right`."""
_MISSING = object()
_NAMES_OF = {
    "val": "val", "value": "val", "v": "val", "x": "val", "data": "val", "key": "val", "item": "val",
    "next": "next", "nxt": "next", "next_node": "next", "left": "left", "right": "right",
}  # fmt: skip
"""Names of a constructor's parameters -> the field that each is; other parameters are told by their place."""


def _maker(own: type) -> _Maker:
    """Return what makes nodes of a class that the program defines, by the first way that gives its nodes the fields."""
    ways: list[Callable[[dict[str, Any]], Any]] = [
        lambda fields: _make_by_names(own, fields),
        lambda fields: own(*fields.values()),
        lambda fields: own(fields["val"]),
        lambda fields: own(),
    ]

    def make(**fields: Any) -> Any:
        while ways:
            try:
                node = ways[0](fields)
                _set_fields(node, fields)
                return node
            except Exception:
                del ways[0]
        raise _CannotMakeError

    return make


def _make_by_names(own: type, fields: dict[str, Any]) -> Any:
    """Make a node by the parameters of the class's constructor, in whatever order they are."""
    code = getattr(own.__init__, "__code__", None) or getattr(own.__new__, "__code__", None)
    if code is None:
        raise TypeError(f"the parameters of {own.__name__} are not known")
    function = own.__init__ if hasattr(own.__init__, "__code__") else own.__new__
    parameters = code.co_varnames[1 : code.co_argcount]
    num_required = len(parameters) - len(function.__defaults__ or ())
    given = {}
    left = [name for name in fields if name not in map(_NAMES_OF.get, parameters)]
    for place, parameter in enumerate(parameters):
        field = _NAMES_OF.get(parameter)
        if field not in fields and place < num_required and left:
            field = left.pop(0)
        if field in fields:
            given[parameter] = fields[field]
        elif place < num_required:
            given[parameter] = None
    for parameter in code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]:
        field = _NAMES_OF.get(parameter)
        if field in fields:
            given[parameter] = fields[field]
    num_by_place = max(0, code.co_posonlyargcount - 1)
    by_place = [given.pop(name) for name in parameters[:num_by_place] if name in given]
    return own(*by_place, **given)


def _set_fields(node: Any, fields: Mapping[str, Any]) -> None:
    """Give a node the fields that its constructor did not; raises the class's error where it refuses."""
    for name, value in fields.items():
        if getattr(node, name, _MISSING) is not value:
            setattr(node, name, value)


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
