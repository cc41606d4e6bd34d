"""Benchmarks: which problems are asked, and how.

LiveCodeBench, HumanEval and MBPP with EvalPlus's tests, and rows of any format are each declared
once, in `questions`. A benchmark reads its file as questions, and writes their prompts.
"""

from microcoder.data.benchmarks.questions import (
    AnyBenchmark,
    Benchmark,
    HumanEval,
    LiveCodeBench,
    Mbpp,
    ProblemFile,
    Question,
    digest_questions,
    digest_statement,
    is_livecodebench,
)

__all__ = [
    "AnyBenchmark",
    "Benchmark",
    "HumanEval",
    "LiveCodeBench",
    "Mbpp",
    "ProblemFile",
    "Question",
    "digest_questions",
    "digest_statement",
    "is_livecodebench",
]
