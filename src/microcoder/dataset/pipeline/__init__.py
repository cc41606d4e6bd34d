"""The pipeline's engine: shards, steps, resume. It knows nothing of what a step does."""

from microcoder.dataset.pipeline.engine import Missing, StepCounts, count_missing, run_steps
from microcoder.dataset.pipeline.parts import Part, read_part, write_part
from microcoder.dataset.pipeline.steps import BarrierStep, InputShard, MapStep, Row, Step
from microcoder.dataset.pipeline.workers import Runner

__all__ = [
    "BarrierStep",
    "InputShard",
    "MapStep",
    "Missing",
    "Part",
    "Row",
    "Runner",
    "Step",
    "StepCounts",
    "count_missing",
    "read_part",
    "run_steps",
    "write_part",
]
