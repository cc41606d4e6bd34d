"""Problems compared by what their programs compute; programs run in the evaluator's sandboxes and nowhere else."""
