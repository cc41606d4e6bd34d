"""Readers of published benchmarks: LiveCodeBench, HumanEval and MBPP, with EvalPlus's tests. Reading runs nothing."""

from microcoder.dataset.benchmarks.functions import read_humaneval, read_mbpp
from microcoder.dataset.benchmarks.livecodebench import Selection, is_livecodebench, read_livecodebench
from microcoder.dataset.benchmarks.rows import Question

__all__ = ["Question", "Selection", "is_livecodebench", "read_humaneval", "read_livecodebench", "read_mbpp"]
