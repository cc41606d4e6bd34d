"""Problems compared by what their programs compute; programs run in the evaluator's sandboxes and nowhere else."""

from microcoder.data.behaviour.comparison import BehaviourIndex, BehaviourSettings, find_behaviour, index_behaviour

__all__ = ["BehaviourIndex", "BehaviourSettings", "find_behaviour", "index_behaviour"]
