"""Readers of published benchmarks: LiveCodeBench, HumanEval and MBPP, with EvalPlus's tests. Reading runs nothing."""

from microcoder.data.benchmarks.livecodebench import Selection, is_livecodebench, read_livecodebench
from microcoder.data.benchmarks.rows import Question, read_humaneval, read_mbpp

__all__ = ["Question", "Selection", "is_livecodebench", "read_humaneval", "read_livecodebench", "read_mbpp"]
