"""Settings and budgets of the generate stage. All values are our choice."""

from typing import Literal

from pydantic import Field

from microcoder.data.completions import EndpointSettings
from microcoder.judge.core.config import Config

PACKAGE_INPUTS = 60
"""Most inputs that generators are run for, spread over their groups."""
MOST_MADE = 72
"""Most inputs made by mutation; the best of both kinds are kept."""
MOST_RANDOM = 160
"""Most small random inputs that validators are asked about."""
MOST_CHANGED = 128
"""Most inputs made by changes of a text in a round, which validators are asked about."""
MOST_WALKED = 512
"""Most inputs made so before the first round."""
STEPS_OF_WALK = 8
"""In how many steps these are made, each step also of those that were valid in the one before."""
ROUNDS = 3
"""How often further inputs are made while wrong programs pass all tests so far."""
MOST_TINY = 96
"""Most tiny inputs that validators are asked about."""
MOST_TINY_KEPT = 24
"""Most tiny inputs that are answered."""
MOST_LARGE_MADE = 15
"""Most inputs that generators are run for where only large ones are missing."""
MOST_OF_LARGE_ALONE = 10
"""Made tests that are kept where nearly all are large."""
MOST_CHOSEN = 40
"""Made tests that are kept, where there are so many: few programs are wrong on many inputs."""
MOST_OF_MAKER = 10
"""Of these, tests of a package's or model's generators each, and of inputs between others."""
MOST_LARGE = 4
"""Most large tests that are kept, to catch slow programs."""
MOST_LARGE_FOR_SLOW = 6
"""The same where slow or partial submissions are known: which shape is slow is not."""
LARGE_BYTES = 20_000
"""A longer input is meant to catch slow programs."""
LONGEST_BYTES = 6 << 20
"""Longest input of a generator, and longest answer."""
AT_ONCE = 8
"""Runs whose outputs are in memory at the same time."""
MOST_BYTES = 32 << 20
"""Bytes of one problem's made inputs together, and of their answers.

A shard must fit into memory.
"""
PROGRAM_MIB = 2048
"""Memory of a generator, a validator, or a reference."""


class GenerateSettings(Config):
    """Settings of the stage that makes tests for problems with too few."""

    mode: Literal["where_few", "off"] = "where_few"
    """`where_few`: for problems with fewer hidden tests than `min_hidden_tests`; `off`: the stage
    changes nothing."""
    min_hidden_tests: int = Field(default=10, ge=1)
    """Number of tests not shown in the prompt from which on a problem gets no further ones."""
    keep_unchecked: bool = False
    """Whether inputs that no validator certifies become tests too, where two references agree on
    their answers."""
    endpoint: EndpointSettings | None = None
    """A model that writes validators where a package has none, and generators for problems that
    still have too few tests; None: no model."""
