"""Functions that the tasks of this folder call.

lm-evaluation-harness loads them from files beside the tasks.
"""

from microcoder.integrations.lm_eval import ask, grade

__all__ = ["ask", "grade"]
