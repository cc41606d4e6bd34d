"""The Ray cluster of a run: one that is running, or one of this machine's own that ends with the run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import ray

from microcoder.errors import ConfigError, TrainingError
from microcoder.serving.ray_start import allow_slow_start
from microcoder.training.config import RayConfig
from microcoder.training.engines.verl.devices import CPU, DEVICE_VARIABLE, THREADS_VARIABLE, Devices
from microcoder.training.observer import Observer

LOGICAL_CPUS = 16
"""What an own Ray believes to have, at least: verl reserves CPUs for processes that mostly wait."""
QUIET = {"VERL_LOGGING_LEVEL": "ERROR", "TOKENIZERS_PARALLELISM": "false", "HYDRA_FULL_ERROR": "1"}


@contextmanager
def open_cluster(
    settings: RayConfig, devices: Devices, *, num_threads: int | None, observer: Observer
) -> Iterator[None]:
    """Connect to the recipe's cluster, or start one here; let go of it at the end, whatever happens.

    Raises:
        ConfigError: there is no cluster at that address.
        TrainingError: it has too few devices.
    """
    environment = _environment(devices, num_threads)
    os.environ.update(environment)
    if settings.address is None:
        allow_slow_start(os.environ)
        ray.init(
            num_cpus=max(LOGICAL_CPUS, os.cpu_count() or 1),
            num_gpus=devices.per_node,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            runtime_env={"env_vars": environment},
        )
    else:
        try:
            ray.init(
                address=settings.address,
                log_to_driver=False,
                logging_level="error",
                runtime_env={"env_vars": environment},
            )
        except ConnectionError as error:
            raise ConfigError(
                f"no Ray cluster at ray.address = {settings.address!r} ({str(error).splitlines()[0]}); start one with "
                "`ray start --head`, or leave the address out"
            ) from None
    try:
        _await_devices(devices, seconds=settings.start_seconds, observer=observer)
        yield
    finally:
        ray.shutdown()


def _environment(devices: Devices, num_threads: int | None) -> dict[str, str]:
    variables = {**QUIET, "TRANSFER_QUEUE_ENABLE": "1"}
    if devices.kind == CPU:
        variables[DEVICE_VARIABLE] = CPU
    if num_threads is not None:
        variables |= {THREADS_VARIABLE: str(num_threads), "OMP_NUM_THREADS": str(num_threads)}
    return variables


def _await_devices(devices: Devices, *, seconds: float, observer: Observer) -> None:
    """Wait for the cluster's machines to join.

    Raises:
        TrainingError: they do not, in time.
    """
    deadline, is_told = time.monotonic() + seconds, False
    while (found := _count_devices(ray.cluster_resources())) < devices.number:
        if time.monotonic() > deadline:
            raise TrainingError(
                f"the Ray cluster has {found} devices and the run wants {devices.number} (ray.num_nodes "
                f"{devices.num_nodes} x ray.processes_per_node {devices.per_node}); add machines, or start Ray "
                "with --num-gpus 1 on machines without GPUs: logical ones"
            )
        if not is_told:
            observer.note(f"waiting for the Ray cluster: {found} of {devices.number} devices")
            is_told = True
        time.sleep(1.0)


def _count_devices(resources: Mapping[str, float]) -> int:
    return int(resources.get("GPU", 0))
