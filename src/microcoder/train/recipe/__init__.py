"""The recipe: every key of a training run, its default and its check, before anything is read.

    recipe.py   `TrainConfig` and its tables, how batches are cut, what has no effect: begin here
    judge.py    the tables that an evaluation has, too: judge and prompt
    refused.py  TRL's options that a recipe may not name

A contradiction between keys is found as a recipe is loaded. What is missing on disk or on this
machine is found by `train.run.preflight`.
"""
