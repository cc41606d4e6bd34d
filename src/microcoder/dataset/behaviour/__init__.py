"""Problems compared by what their programs compute; programs run in the evaluator's sandboxes and nowhere else."""

from microcoder.dataset.behaviour.comparison import BehaviourIndex, BehaviourSettings, find_behaviour, index_behaviour
from microcoder.dataset.behaviour.runner import ProgramRunner

__all__ = ["BehaviourIndex", "BehaviourSettings", "ProgramRunner", "find_behaviour", "index_behaviour"]
