"""Plug-in that verl loads in each of its processes (entry point group `verl.plugins`): registers our names.

Nothing of verl is imported here: each name is entered when verl itself imports the module that holds the registry. So a
process pays only for what it uses, and verl users who use none of it pay nothing.
"""

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from microcoder.train.verl.names import AGENT_LOOP, PACKAGE, REWARD_MANAGER


def _own(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{name}")


def _forget_trl(module: ModuleType) -> None:
    # verl patches a class for critics wherever TRL is installed; TRL has dropped it. Looked for without an import.
    trl = importlib.util.find_spec("trl")
    if trl is not None and not any(
        Path(place, "experimental", "ppo").exists()
        for place in trl.submodule_search_locations or ()
    ):
        module.is_trl_available = lambda: False  # type: ignore[attr-defined]


HOOKS: Mapping[str, Callable[[ModuleType], None]] = {
    "verl.utils.import_utils": _forget_trl,
    "verl.trainer.ppo.core_algos": lambda module: _own("settings").register(
        module.ADV_ESTIMATOR_REGISTRY
    ),
    "verl.trainer.ppo.v1": lambda _: _own("trainer").register(),
    "verl.experimental.agent_loop.agent_loop": lambda module: module._agent_loop_registry.update(
        {AGENT_LOOP: {"_target_": f"{PACKAGE}.sampling.SingleTurn"}}
    ),
    "verl.experimental.reward_loop.reward_manager": lambda module: module.register(REWARD_MANAGER)(
        _own("reward").JudgeRewardManager
    ),
}


class _Finder(MetaPathFinder):
    """Import finder: modules that have a hook are imported as usual, then passed to their hook, once."""

    def __init__(self, hooks: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._hooks = dict(hooks)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        hook = self._hooks.pop(fullname, None)
        if hook is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_enter(module: ModuleType) -> None:
                execute(module)
                hook(module)

            spec.loader.exec_module = execute_and_enter  # type: ignore[method-assign]
        return spec


def install(hooks: Mapping[str, Callable[[ModuleType], None]]) -> None:
    """Call each hook with its module: now if imported already, else after the import."""
    for name in [name for name in hooks if name in sys.modules]:
        hooks[name](sys.modules[name])
    sys.meta_path.insert(
        0, _Finder({name: hook for name, hook in hooks.items() if name not in sys.modules})
    )


install(HOOKS)
