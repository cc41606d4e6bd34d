"""What a run computes on, and how its processes are told; imports nothing of verl, which asks as it is imported."""

from __future__ import annotations

from dataclasses import dataclass

from microcoder.errors import ConfigError
from microcoder.training.config import RayConfig

CPU, CUDA = "cpu", "cuda"


@dataclass(frozen=True, slots=True)
class Devices:
    """Training processes, one a device."""

    kind: str
    """`cuda` or `cpu`."""
    num_nodes: int
    per_node: int

    @property
    def number(self) -> int:
        """Training processes in all."""
        return self.num_nodes * self.per_node


def find_devices(settings: RayConfig) -> Devices:
    """Return what a run will compute on, as the recipe and this machine have it.

    Raises:
        ConfigError: the recipe leaves open what cannot be seen from here.
    """
    import torch  # which the dry run of the command line does without

    num_gpus = torch.cuda.device_count()
    if settings.address is None:
        if settings.num_nodes > 1:
            raise ConfigError(
                f"ray.num_nodes = {settings.num_nodes} needs a running cluster; type --ray-address auto on one of its "
                "machines, or --ray-address HOST:PORT (docs/cluster.md)"
            )
        if settings.device == "cuda" and not num_gpus:
            raise ConfigError('ray.device = "cuda", but there is no GPU here; give --ray-address, or --ray.device cpu')
        kind = CPU if settings.device == "cpu" or not num_gpus else CUDA
    else:
        # The driver's machine may be the one without GPUs.
        kind = CPU if settings.device == "cpu" else CUDA
    seen = num_gpus if kind == CUDA else 1
    if not (settings.processes_per_node or seen):
        raise ConfigError(
            "this machine has no GPU to count, so say how many the cluster's have: --ray.processes-per-node 8; or, for "
            "a cluster without any, --ray.device cpu"
        )
    return Devices(kind=kind, num_nodes=settings.num_nodes, per_node=settings.processes_per_node or seen)


def count_processes(settings: RayConfig) -> int:
    """Return how many training processes a recipe means, as far as it can be told from here."""
    try:
        return find_devices(settings).number
    except (ConfigError, ModuleNotFoundError):
        return settings.num_nodes * (settings.processes_per_node or 1)
