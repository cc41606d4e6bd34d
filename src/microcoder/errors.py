"""The error tree.

    MicroCoderError
    ├── ConfigError      a recipe, flag or option is wrong          (also ValueError)
    ├── DataError        a problem file or checkpoint is wrong      (also ValueError)
    ├── EvaluatorFault   our sandbox failed, not a program          (also RuntimeError)
    └── TrainingError    a run cannot start, continue or resume     (also RuntimeError)

A bad program is never an error: it is a `Verdict`. Every message says what was wrong (with the value),
what is allowed, and what to type next; the command line prints it without a traceback.
"""


class MicroCoderError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(MicroCoderError, ValueError):
    """A recipe, flag or option is wrong; the user can fix it."""


class DataError(MicroCoderError, ValueError):
    """A problem file, checkpoint folder or record is wrong; the user can fix it."""


class EvaluatorFault(MicroCoderError, RuntimeError):
    """The sandbox itself failed; the program has no verdict."""


class TrainingError(MicroCoderError, RuntimeError):
    """A training run cannot start, continue or be resumed."""
