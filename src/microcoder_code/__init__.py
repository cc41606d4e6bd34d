"""What `vf-eval microcoder-code` and prime-rl import.

verifiers finds a taskset by the name of a top-level package.
"""

from microcoder.integrations.verifiers import CodeTaskset

__all__ = ["CodeTaskset"]
