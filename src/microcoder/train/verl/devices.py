"""What a run computes on, and waiting for it; imports nothing of verl, which asks for its device as it is imported."""

from __future__ import annotations

import time
from dataclasses import dataclass

from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.train.recipe.recipe import RayConfig
from microcoder.train.run.observer import Observer

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Devices:
    """Training processes, one a device."""

    kind: str
    """`cuda`; or `cpu`, of our tests."""
    num_nodes: int
    per_node: int

    @property
    def number(self) -> int:
        """Training processes in all."""
        return self.num_nodes * self.per_node


def find_devices(settings: RayConfig) -> Devices:
    """Return the devices of a run, by its recipe and this machine."""
    import torch  # which the dry run of the command line does without

    seen = 1 if settings.device == CPU else torch.cuda.device_count()
    if settings.address is None:
        if settings.num_nodes > 1:
            raise ConfigError(
                f"ray.num_nodes = {settings.num_nodes} needs a running cluster; type --ray-address auto on one of its "
                "machines, or --ray-address HOST:PORT (docs/cluster.md)"
            )
        if not seen:
            raise ConfigError(
                "engine verl trains on GPUs, and there is none here; give --ray-address, or train with --engine trl"
            )
    # The driver's machine may be the one without GPUs.
    if not (settings.processes_per_node or seen):
        raise ConfigError(
            "this machine has no GPU to count, so say how many the cluster's have: --ray.processes-per-node 8"
        )
    return Devices(settings.device, settings.num_nodes, settings.processes_per_node or seen)


def count_processes(settings: RayConfig) -> int:
    """Return how many training processes a recipe means, as far as this machine knows."""
    try:
        return find_devices(settings).number
    except (ConfigError, ModuleNotFoundError):
        return settings.num_nodes * (settings.processes_per_node or 1)


def await_devices(settings: RayConfig, devices: Devices, *, observer: Observer) -> None:
    """Wait for the machines of the recipe's cluster to join: verl itself would give up at once.

    Where Ray is started for the run alone, there is nothing to wait for.
    """
    if settings.address is None:
        return
    import ray

    try:
        ray.init(address=settings.address, log_to_driver=False, logging_level="error")
    except ConnectionError as error:
        raise ConfigError(
            f"no Ray cluster at ray.address = {settings.address!r} ({str(error).splitlines()[0]}); start one with "
            "`ray start --head`, or leave the address out"
        ) from None
    try:
        deadline, noted = time.monotonic() + settings.start_seconds, -1
        while (found := int(ray.cluster_resources().get("GPU", 0))) < devices.number:
            if time.monotonic() > deadline:
                raise TrainingError(
                    f"the Ray cluster has {found} devices and the run wants {devices.number} (ray.num_nodes "
                    f"{devices.num_nodes} x ray.processes_per_node {devices.per_node}); add machines"
                )
            if found != noted:
                observer.note(f"waiting for the Ray cluster: {found} of {devices.number} devices")
                noted = found
            time.sleep(1.0)
    finally:
        ray.shutdown()
