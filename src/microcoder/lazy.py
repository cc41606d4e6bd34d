"""Names of a package that are imported when first used.

So importing one module costs none of the others.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(
    package: str, names_of: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package (PEP 562).

    Args:
        package: its `__name__`.
        names_of: submodule -> the names that the package offers from it.
    """
    module_of: dict[str, str] = {}
    for module, names in names_of.items():
        module_of.update(dict.fromkeys(names, module))

    def get(name: str) -> object:
        if name not in module_of:
            # The one error that `hasattr` and `from ... import` understand.
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        # The next use finds it there, and does not come here.
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        # Completion at a prompt shows names before they are imported.
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, list_names
