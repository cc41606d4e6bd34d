"""Benchmarks, each declared once: LiveCodeBench, HumanEval and MBPP with EvalPlus's tests, rows of any format."""

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
    "AnyBenchmark", "Benchmark", "HumanEval", "LiveCodeBench", "Mbpp", "ProblemFile", "Question",
    "digest_questions", "digest_statement", "is_livecodebench",
]  # fmt: skip
