"""Plug-in that verl loads in each of its processes, to register our names.

It is in the entry point group `verl.plugins`. It imports nothing of verl. Each name is registered
when verl itself imports the module with the registry. So a process pays only for what it uses, and
verl users who use none of it pay nothing.
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
    """Return a module of ours, which may import verl."""
    return importlib.import_module(f"{PACKAGE}.{name}")


def _forget_trl(module: ModuleType) -> None:
    """Tell verl that TRL is not installed, where TRL lacks the class that verl patches.

    verl patches a class for critics wherever TRL is installed, but TRL has dropped it. The class is
    looked for without importing TRL.
    """
    trl = importlib.util.find_spec("trl")
    if trl is None:
        return
    for folder in trl.submodule_search_locations or ():
        if Path(folder, "experimental", "ppo").exists():
            return
    module.is_trl_available = lambda: False  # type: ignore[attr-defined]


def _register_estimators(module: ModuleType) -> None:
    _own("settings").register(module.ADV_ESTIMATOR_REGISTRY)


def _register_trainers(module: ModuleType) -> None:
    _own("trainer").register()


def _register_agent_loop(module: ModuleType) -> None:
    module._agent_loop_registry[AGENT_LOOP] = {"_target_": f"{PACKAGE}.sampling.SingleTurn"}


def _register_reward_manager(module: ModuleType) -> None:
    module.register(REWARD_MANAGER)(_own("reward").JudgeRewardManager)


HOOKS: Mapping[str, Callable[[ModuleType], None]] = {
    "verl.utils.import_utils": _forget_trl,
    "verl.trainer.ppo.core_algos": _register_estimators,
    "verl.trainer.ppo.v1": _register_trainers,
    "verl.experimental.agent_loop.agent_loop": _register_agent_loop,
    "verl.experimental.reward_loop.reward_manager": _register_reward_manager,
}
"""Module of verl -> what is done with it once it is imported."""


class _Finder(MetaPathFinder):
    """Import finder that passes modules with a hook to their hook, once.

    They are imported as usual before.
    """

    def __init__(self, hooks: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._hooks = dict(hooks)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # Once: the search below asks the finders again.
        hook = self._hooks.pop(fullname, None)
        if hook is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            # The hook needs the module whole.
            execute = spec.loader.exec_module

            def execute_and_enter(module: ModuleType) -> None:
                execute(module)
                hook(module)

            spec.loader.exec_module = execute_and_enter  # type: ignore[method-assign]
        return spec


def install(hooks: Mapping[str, Callable[[ModuleType], None]]) -> None:
    """Call each hook with its module: now if imported already, else after the import."""
    imported = [name for name in hooks if name in sys.modules]
    for name in imported:
        hooks[name](sys.modules[name])
    waiting = {name: hook for name, hook in hooks.items() if name not in sys.modules}
    sys.meta_path.insert(0, _Finder(waiting))


install(HOOKS)
