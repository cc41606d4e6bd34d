"""Linked lists and trees as LeetCode writes them: level-order lists to nodes and back.

There is no recursion. Arguments are of the class that the program defines under the name, where
that class can be made by its fields, else of the classes below. A result is taken apart by the
names of its fields, whichever class it is of. Whatever a class of the program does is done here, in
the program's own process. `build` makes an argument, `flatten` takes a result apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

_MOST_NODES = 1 << 21
"""Maximum number of nodes in a result, twenty times LeetCode's.

A property could make nodes for ever.
"""


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

# As a program would see classes of its own module.
for _class in GIVEN_NAMES.values():
    _class.__module__ = "solution"

_LIST_OF = "list["
"""How the name of a list's kind begins; it ends with a bracket."""


def build(kind: str, value: Any, names: Mapping[str, Any] | None = None) -> Any:
    """Return the argument of this kind for a checked JSON value.

    It is nodes, a list of them, or the value itself.

    Args:
        kind: the kind.
        value: the JSON value.
        names: those of the program; nodes are made of its own class, if it defines one.
    """
    if kind.startswith(_LIST_OF):
        if value is None:
            return None
        inner = kind[len(_LIST_OF) : -1]
        return [build(inner, item, names) for item in value]
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
    """Return a result of this kind with its nodes as lists, values in them unchanged.

    Raises:
        TypeError: it is of another type.
    """
    if kind == "json":
        return value
    if kind.startswith(_LIST_OF):
        if not isinstance(value, (list, tuple, deque)):
            raise TypeError(f"expected {kind}, got {type(value).__name__}")
        inner = kind[len(_LIST_OF) : -1]
        return [flatten(inner, item) for item in value]
    if value is None:
        return []
    if kind == "ListNode":
        return _flatten_list(value)
    return _flatten_tree(value)


def _read(node: Any, name: str, kind: str) -> Any:
    """Return a field of a node; TypeError if it has none of that name."""
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
    """Return the head of a list; None for no values."""
    head = None
    for value in reversed(values):
        head = make(val=value, next=head)
    return head


def _flatten_list(node: Any) -> list[Any]:
    """Return the values of a list, from its head on."""
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
    """Return the root of a tree; None for no values."""
    if not values or values[0] is None:
        return None
    children = _find_children(values)
    nodes: dict[int, Any] = {_NO_NODE: None}
    # From the leaves up: fields of some nodes cannot change later.
    for index in reversed(children):
        left, right = [*children[index], _NO_NODE, _NO_NODE][:2]
        nodes[index] = make(
            val=values[index], left=nodes.pop(left, None), right=nodes.pop(right, None)
        )
    return nodes[0]


_NO_NODE = -1
"""Index in place of a child that is missing."""


def _find_children(values: list[Any]) -> dict[int, list[int]]:
    """Return the children of each node of a tree in level order, by index: up to two."""
    children: dict[int, list[int]] = {0: []}
    # Each node is the parent of the next two values.
    parents = deque([0, 0])
    for index, value in enumerate(values[1:], 1):
        if not parents:
            break
        parent = parents.popleft()
        if value is None:
            children[parent].append(_NO_NODE)
            continue
        children[parent].append(index)
        children[index] = []
        parents += [index, index]
    return children


class _CannotMakeError(Exception):
    """The program's class cannot be made by the fields of a node."""


_Maker = Callable[..., Any]
"""Makes a node of its fields, given by name: `val` and `next`, or `val`, `left` and `right`."""
_MISSING = object()
"""In place of a field that a node lacks."""
_NAMES_OF = {
    "val": "val",
    "value": "val",
    "v": "val",
    "x": "val",
    "data": "val",
    "key": "val",
    "item": "val",
    "next": "next",
    "nxt": "next",
    "next_node": "next",
    "left": "left",
    "right": "right",
}
"""Names of a constructor's parameters -> the field that each is.

Other parameters are told by their position.
"""


def _maker(own: type) -> _Maker:
    """Return what makes nodes of a class that the program defines.

    It makes them by the first way that gives its nodes the fields.
    """
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
                # Nor will it make the next one.
                del ways[0]
        raise _CannotMakeError

    return make


def _make_by_names(own: type, fields: dict[str, Any]) -> Any:
    """Make a node by the parameters of the class's constructor, in whatever order they are."""
    code = getattr(own.__init__, "__code__", None) or getattr(own.__new__, "__code__", None)
    if code is None:
        raise TypeError(f"the parameters of {own.__name__} are not known")
    function = own.__init__ if hasattr(own.__init__, "__code__") else own.__new__
    # Without `self`, or the class.
    parameters = code.co_varnames[1 : code.co_argcount]
    num_required = len(parameters) - len(function.__defaults__ or ())
    arguments = {}
    unnamed = [name for name in fields if name not in map(_NAMES_OF.get, parameters)]
    for index, parameter in enumerate(parameters):
        field = _NAMES_OF.get(parameter)
        is_required = index < num_required
        if field not in fields and is_required and unnamed:
            field = unnamed.pop(0)
        if field in fields:
            arguments[parameter] = fields[field]
        elif is_required:
            arguments[parameter] = None
    for parameter in code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]:
        field = _NAMES_OF.get(parameter)
        if field in fields:
            arguments[parameter] = fields[field]
    num_positional = max(0, code.co_posonlyargcount - 1)
    positional = [arguments.pop(name) for name in parameters[:num_positional] if name in arguments]
    return own(*positional, **arguments)


def _set_fields(node: Any, fields: Mapping[str, Any]) -> None:
    """Give a node the fields that its constructor did not.

    It raises the class's error where that refuses.
    """
    for name, value in fields.items():
        if getattr(node, name, _MISSING) is not value:
            setattr(node, name, value)


def _flatten_tree(root: Any) -> list[Any]:
    """Return the values of a tree in level order, without the missing children at its end."""
    values: list[Any] = []
    seen: Nodes = {}
    level = [root]
    depth = 0
    num_nodes = 0
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
