"""The options of a judge: meaning, allowed values and defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypedDict

from pydantic import Field

from microcoder.judge.core.config import Config, load_config
from microcoder.judge.languages.packages import STANDARD
from microcoder.judge.run.order import make_key
from microcoder.judge.run.timing import CHECKER_SECONDS, MAX_SECONDS
from microcoder.judge.sandbox.protocol import LAYERS

StopRule = Literal["first_failure", "first_limit", "never"]
"""When a program's remaining tests are skipped.

`first_failure`: after its first failing test; `first_limit`: after a test that hit a limit, so that
an endless program costs one limit; `never`.
"""


class SandboxOptions(Config):
    """The options of a judge that recipes and evaluations have too."""

    workers: int | None = Field(default=None, ge=1)
    """Programs judged in parallel, per node with `ray`; by default one per processor that the judge
    may use."""
    nice: int = Field(default=0, ge=0, le=19)
    """Niceness of programs, 0 to 19, in favour of other work such as the trainer; never less than
    the calling process's own. Beside one busy process, a program gets half of a core at 0, a tenth
    at 10, a seventieth at 19."""
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of
    pinned packages (docs/languages.md). Installed on first use; a service must be started with the
    same."""
    batch_tests: bool = True
    """Run many quick tests of a program in one process (docs/sandbox.md); the verdicts are those of
    one process per test. A service has its own setting (`microcoder serve --no-batch-tests`)."""
    unsafe: bool = False
    """Start even if seccomp, resource limits or file protection are missing. Unsafe."""


class JudgeOptions(SandboxOptions):
    """How a judge runs programs."""

    processes: int | None = None
    """Processes for the workers, since one Python process keeps up with few; 0 for threads of this
    process, the default up to 8 workers. They start on demand."""
    stop: StopRule = "first_limit"
    """When a program's remaining tests are skipped."""
    time_scale: float | None = Field(
        default=None,
        ge=0.1,
        le=100,
    )
    """Factor on CPU limits; by default measured (see `timing`)."""
    cache_size: int = Field(default=4096, ge=0)
    """Verdicts to keep for identical pairs of program and problem; 0 judges each anew."""
    order_key: str = ""
    """Key of the secret order in which tests that share a process run; by default each judge draws
    one. Give the same key to repeat a run (docs/sandbox.md)."""
    tests_mib: int = Field(default=512, ge=1)
    """Memory for tests that are kept ready for further programs, at least those of one problem."""
    checker_seconds: float = Field(default=CHECKER_SECONDS, gt=0, le=MAX_SECONDS)
    """CPU time that a problem's checker program may take for a test on the reference machine."""
    build_seconds: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SECONDS,
    )
    """CPU time that a compiler may take; by default what the language's file says, 10 s for those
    of the package."""
    layers: tuple[str, ...] = tuple(LAYERS)
    """The layers of isolation; fewer only to test the others."""

    def with_order_key(self) -> JudgeOptions:
        """Return them with a new key of the order of tests, if they have none.

        All workers of a judge need one key: equal programs must not have two orders.
        """
        return self if self.order_key else self.model_copy(update={"order_key": make_key()})

    @classmethod
    def read(cls, keys: Mapping[str, Any]) -> JudgeOptions:
        """Return validated options from keys and values.

        Raises:
            ConfigError: a key or a value is not allowed; it says which are.
        """
        return load_config(cls, layers=[keys])


class JudgeKeys(TypedDict, total=False):
    """`JudgeOptions` as keyword arguments: editors complete them, type checkers know them."""

    workers: int | None
    nice: int
    packages: str
    batch_tests: bool
    unsafe: bool
    processes: int | None
    stop: StopRule
    time_scale: float | None
    cache_size: int
    order_key: str
    tests_mib: int
    checker_seconds: float
    build_seconds: float | None
    layers: Collection[str]
