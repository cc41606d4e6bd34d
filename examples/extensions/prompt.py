"""A prompt of your own: `prompt.style = "prompt.py:ask"` in a recipe or an evaluation."""

from microcoder.judge.core.types import Problem


def ask(problem: Problem, *, ending: str = "Think first, then answer with one code block.") -> str:
    """Return the user's turn; a whole chat may be returned too."""
    return f"{problem.statement.strip()}\n\n{ending}"
