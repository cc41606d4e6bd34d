"""A training run, whatever its engine: from the recipe's check to the files of the run directory.

training.py   `run_training`, to be read top to bottom: begin here
preflight.py  what would stop a run, found without weights; `context.py`, `model_files.py` and
              `trl_options.py` are parts of it
estimate.py   memory and disk, by formula; `starter.py` writes a recipe that fits
tasks.py      the problems of a run with their prompts
weights.py    models and tokenizers; `responses.py` samples in this process, `warm.py` trains
              the micro lab's model
recorder.py   what a step writes, with `alarms.py`; `checkpoints.py` and `manifest.py` the rest
probe.py      which temperature to train at; `look.py` what a model could learn
judging.py    the judge of a run; `mismatch.py` weights for another sampler
"""
