"""A training run, whatever its engine: from the recipe's check to the files of the run directory."""
