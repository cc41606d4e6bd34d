"""The CPU as a verl platform, so that tests run the whole loop where there is no accelerator.

verl 0.9.1 knows CUDA, ROCm and NPU. What it asks of a device is answered here for the CPU: there is
one logical device a process (a Ray resource of the name GPU that the launch declares), memory is
the machine's, and processes talk over gloo.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import torch
import torch.distributed
from verl.plugin.platform import set_platform
from verl.plugin.platform.platform_cuda import PlatformCUDA

CPU = "cpu"


class _CpuDevice(ModuleType):
    """What verl uses of `torch.cuda`, on the CPU; the rest is `torch.cpu`'s."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


def _cpu_device() -> ModuleType:
    module = _CpuDevice("microcoder_cpu_device")
    of_memory = []
    for what in ("memory", "max_memory"):
        for which in ("allocated", "reserved"):
            of_memory.append(f"{what}_{which}")
    others = [
        "empty_cache",
        "ipc_collect",
        "manual_seed",
        "manual_seed_all",
        "synchronize",
        "set_device",
    ]
    for name in (*of_memory, "reset_peak_memory_stats", *others):
        setattr(module, name, lambda *args, **kwargs: 0)
    page = os.sysconf("SC_PAGE_SIZE")
    pages = os.sysconf("SC_PHYS_PAGES")
    answers = {
        "mem_get_info": lambda *args: (os.sysconf("SC_AVPHYS_PAGES") * page, pages * page),
        "get_rng_state": torch.get_rng_state,
        "set_rng_state": torch.set_rng_state,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: "cpu",
        "get_device_name": lambda *args: "cpu",
    }
    for name, answer in answers.items():
        setattr(module, name, answer)
    return module


class CpuPlatform(PlatformCUDA):
    """One logical device a process, which Ray counts as a GPU, and no device memory."""

    device_name = CPU
    vendor_name = CPU
    device_module = _cpu_device()

    def _nothing(self, *_: Any, **__: Any) -> None:
        """What there is nothing to do for on a CPU."""

    set_device = synchronize = set_allocator_settings = empty_cache = _nothing
    profiler_start = profiler_stop = cudart = _nothing
    manual_seed = manual_seed_all = staticmethod(torch.manual_seed)

    def is_available(self) -> bool:
        return True

    def current_device(self) -> str:
        return CPU

    def device_count(self) -> int:
        return 1

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def nvtx_range(self, msg: str) -> AbstractContextManager[None]:
        return nullcontext()

    def is_ipc_supported(self) -> bool:
        return False


def use_cpu() -> None:
    """Make the CPU verl's device; process groups of "cpu:gloo,cpu:gloo", as verl asks for,
    become gloo's.
    """
    # Not by VERL_PLATFORM: verl reads that before it loads plugins.
    set_platform(CpuPlatform())
    start = torch.distributed.init_process_group

    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
        start("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    torch.distributed.init_process_group = init_process_group
