"""Waits for a running Ray cluster to have the devices of a run: verl itself would give up at once."""

from __future__ import annotations

import time

from microcoder.errors import ConfigError, TrainingError
from microcoder.training.config import RayConfig
from microcoder.training.engines.verl.devices import Devices
from microcoder.training.observer import Observer


def await_devices(settings: RayConfig, devices: Devices, *, observer: Observer) -> None:
    """Wait for the machines of the recipe's cluster to join; where Ray is started for the run alone, for nothing.

    Raises:
        ConfigError: there is no cluster at that address.
        TrainingError: machines do not join, in time.
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
        deadline, is_told = time.monotonic() + settings.start_seconds, False
        while (found := int(ray.cluster_resources().get("GPU", 0))) < devices.number:
            if time.monotonic() > deadline:
                raise TrainingError(
                    f"the Ray cluster has {found} devices and the run wants {devices.number} (ray.num_nodes "
                    f"{devices.num_nodes} x ray.processes_per_node {devices.per_node}); add machines"
                )
            if not is_told:
                observer.note(f"waiting for the Ray cluster: {found} of {devices.number} devices")
                is_told = True
            time.sleep(1.0)
    finally:
        ray.shutdown()
