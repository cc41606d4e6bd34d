"""The machines of the Ray cluster that this process is connected to, and actors that stay on one of them."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


def find_nodes() -> dict[str, int]:
    """Return the ids of the living nodes that have a processor, and how many Ray counts there."""
    counted = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
    return {name: number for name, number in counted.items() if number}


def start_actor(kind: type, node: str, *arguments: Any, num_processors: float = 0, **options: Any) -> Any:
    """Start an actor on a node; Ray neither moves it nor starts it again.

    Args:
        kind: its class.
        node: where.
        *arguments: what it is made with.
        num_processors: what Ray reserves for it.
        **options: of `ray.remote`.
    """
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    remote = ray.remote(num_cpus=num_processors, max_restarts=0, scheduling_strategy=there, **options)(kind)
    return remote.remote(*arguments)


def kill_actor(handle: Any) -> None:
    """End an actor, whatever it does; one that is gone already, with its cluster or alone, is no error."""
    try:
        ray.kill(handle)
    except (RayError, ValueError, RuntimeError):
        return
