"""What `vf-eval microcoder-code` and prime-rl import.

verifiers finds a taskset by the name of a top-level package. A module inside `microcoder` is not
found: verifiers first asks for a package of its own by that name, which fails for a name with dots.
"""

from microcoder.integrations.verifiers import CodeTaskset

__all__ = ["CodeTaskset"]
