"""Checks TRL's own options that a recipe names in [trl].

Does TRL have them, and is a logger's package installed? This is read from the source of the
installed packages: to import them takes seconds, which a dry run should not.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import nearest
from microcoder.judge.core.syntax import parse_source

_SOURCES = (
    ("trl", "trainer/grpo_config.py"),
    ("trl", "trainer/base_config.py"),
    ("transformers", "training_args.py"),
)
"""Files whose classes have the options as fields: `GRPOConfig` and what it extends."""
_LOGGERS: Mapping[str, str] = {
    "wandb": "wandb",
    "tensorboard": "tensorboard",
    "trackio": "trackio",
    "mlflow": "mlflow",
    "comet_ml": "comet_ml",
    "swanlab": "swanlab",
    "clearml": "clearml",
    "neptune": "neptune",
    "dvclive": "dvclive",
    "codecarbon": "codecarbon",
}
"""Loggers in wide use and the package that each needs; transformers has some more."""


def find_option_faults(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options and loggers of [trl] that the installed TRL does not have."""
    loggers = list_loggers()
    for name in _asked_loggers(options):
        if loggers is not None and name not in loggers:
            yield (
                f"[trl] report_to = {name!r} is no logger of transformers; use one of "
                f"{', '.join(loggers)}"
            )
    known = list_options()
    if known is None:
        return
    for name in options:
        if name not in known:
            near = nearest(name, sorted(known))
            hint = f"did you mean {near}?" if near else "see the fields of trl.GRPOConfig"
            yield f"[trl] {name} is no option of the installed TRL; {hint}"


def find_missing_loggers(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the loggers of [trl] report_to whose package this machine lacks."""
    for name in _asked_loggers(options):
        package = _LOGGERS.get(name)
        if package is not None and find_spec(package) is None:
            yield f'trl.report_to = "{name}" needs {package} (type: pip install {package})'


def _asked_loggers(options: Mapping[str, Any]) -> list[str]:
    asked = options.get("report_to", "none")
    # TRL takes the name of a logger, or a list of several.
    names = asked if isinstance(asked, list | tuple) else [asked]
    return [str(name) for name in names]


@cache
def list_loggers() -> tuple[str, ...] | None:
    """Return the names that `report_to` takes.

    None if this version of transformers has them elsewhere.
    """
    tree = _parse("transformers", "integrations/integration_utils.py")
    if tree is None:
        return None
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Dict):
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name) and target.id == "INTEGRATION_TO_CALLBACK":
            names = [key.value for key in statement.value.keys if isinstance(key, ast.Constant)]
            return ("none", "all", *map(str, names))
    return None


@cache
def list_options() -> frozenset[str] | None:
    """Return the names of TRL's options for GRPO; None if its source is not here."""
    # GRPOConfig inherits most of them.
    names: set[str] = set()
    for package, file in _SOURCES:
        tree = _parse(package, file)
        if tree is None:
            return None
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef):
                names.update(_list_fields(statement))
    return frozenset(names)


def _parse(package: str, file: str) -> ast.Module | None:
    """Return the syntax tree of an installed package's file; None if it is not there."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    source = Path(next(iter(spec.submodule_search_locations)), file)
    if not source.exists():
        return None
    return parse_source(source.read_text(encoding="utf-8"))


def _list_fields(options: ast.ClassDef) -> Iterator[str]:
    """Yield the names of a class's annotated fields."""
    for statement in options.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
