"""The isolation of programs, and whether it suffices to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from microcoder.errors import EvaluatorFault
from microcoder.evaluator.sandbox import layers

_FILE_PROTECTION = (layers.MOUNT_NAMESPACE, layers.LANDLOCK)
_ALWAYS_REQUIRED = (layers.SECCOMP, layers.RESOURCE_LIMITS)

DEGRADED_MEANS = (
    "everything is judged, and no program reads or changes a file, signals a process or opens a socket that is not its "
    "own; but it may see names and sizes of files, and what it writes is on disk until its test ends (docs/sandbox.md)"
)


@dataclass(frozen=True, slots=True)
class Isolation:
    """The layers that hold in a sandbox; kept with every result."""

    enforced: tuple[str, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Layer to the reason why it could not be put on."""

    @property
    def level(self) -> str:
        """`full`: every layer; `degraded`: the required ones; `unsafe`: less, on the user's own word."""
        if self.unmet_requirements():
            return "unsafe"
        return "degraded" if self.missing else "full"

    def unmet_requirements(self) -> tuple[str, ...]:
        """Return the required layers that are missing: seccomp, resource limits, and one form of file protection."""
        unmet = [layer for layer in _ALWAYS_REQUIRED if layer not in self.enforced]
        if not any(layer in self.enforced for layer in _FILE_PROTECTION):
            unmet.append(" or ".join(_FILE_PROTECTION))
        return tuple(unmet)

    def describe_missing(self) -> str:
        """Return the missing layers, those with the same reason together."""
        by_reason: dict[str, list[str]] = {}
        for layer, reason in self.missing.items():
            by_reason.setdefault(reason, []).append(layer)
        return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())

    def require(self, *, unsafe: bool) -> None:
        """Refuse a sandbox that lacks a required layer.

        Raises:
            EvaluatorFault: a required layer is missing and the caller did not accept that.
        """
        unmet = self.unmet_requirements()
        if unmet and not unsafe:
            raise EvaluatorFault(
                f"the sandbox lacks isolation here: {', '.join(unmet)} missing ({self.describe_missing()}). "
                "Use a Linux kernel >= 5.13 with Landlock, or allow user namespaces and mounts (in a container: the "
                "options in docs/serving.md; gVisor has neither, use another runtime); only for programs you trust: "
                "unsafe=True (--unsafe)"
            )

    def as_record(self) -> dict[str, Any]:
        """Return the plain form for files."""
        return {"level": self.level, "enforced": list(self.enforced), "missing": dict(self.missing)}
