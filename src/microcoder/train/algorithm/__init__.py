"""The algorithm: pure functions beside their equations, the same for every engine.

No torch and no files. Each file is one idea of the paper, or of another that it is compared with:

    scoring.py     all decisions about a step's rollouts, in order: begin here
    advantages.py  rewards of a group -> advantages
    masking.py     which truncated responses are masked, or get a penalty
    selection.py   which problems a step learns from
    sampling.py    temperature and length over the run
    config.py      the keys of [algorithm], with the losses
"""
