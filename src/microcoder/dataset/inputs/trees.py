"""Trees: the edges of one, and a binary tree's nodes level by level."""

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from typing import Any


def draw_edges(first: int, length: int, source: random.Random, *, is_path: bool) -> list[tuple[int, int]]:
    """Return the edges of a tree, its nodes numbered from `first`: grown at random, long, a path, or a star.

    Args:
        first: the least number of a node.
        length: how many edges.
        source: of all random choices.
        is_path: as a level of one value has one branch, so a tree of few ties is long.
    """
    order = source.sample(range(first, first + length + 1), length + 1)
    way = "path" if is_path else source.choice(("grown", "grown", "long", "path", "star"))
    rows = []
    for number in range(1, len(order)):
        least = {"path": number - 1, "long": max(0, number - 4)}.get(way, 0)
        parent = 0 if way == "star" else source.randint(least, number - 1)
        rows.append((order[parent], order[number]))
    return rows


def arrange_nodes(items: list[Any], facts: AbstractSet[str], source: random.Random) -> list[Any]:
    """Return values as a binary tree level by level: grown at random, a path, or full; None for no node.

    Args:
        items: the values of the nodes.
        facts: `distinct`: equal values are left out; `search`: that too, and in order from left to right.
        source: of all random choices.
    """
    if {"search", "distinct"} & facts:
        items = list(dict.fromkeys(items))
    children: list[list[int | None]] = [[None, None] for _ in items]
    way = source.choice(("grown", "grown", "path", "full"))
    for node in range(1, len(items)):
        parent, side = (node - 1) // 2, (node - 1) % 2
        while way != "full":
            parent = node - 1 if way == "path" else source.randrange(node)
            side = source.randrange(2)
            if children[parent][side] is None:
                break
        children[parent][side] = node
    if "search" in facts:
        items = _in_order(sorted(items), children)
    order: list[int | None] = [0] if items else []
    for node in order:
        order += children[node] if node is not None else []
    while order and order[-1] is None:
        order.pop()
    return [None if node is None else items[node] for node in order]


def _in_order(values: list[Any], children: list[list[int | None]]) -> list[Any]:
    """Give sorted values to the nodes from left to right."""
    found: list[Any] = [None] * len(children)
    left, stack, node = iter(values), [], 0 if children else None
    while stack or node is not None:
        while node is not None:
            stack.append(node)
            node = children[node][0]
        node = stack.pop()
        found[node] = next(left)
        node = children[node][1]
    return found
