"""Graders that are wrong on purpose, for studies of what training does with them. None of them judges anything.

A recipe names one as any reward of a user's own: `rewards = ["microcoder.lab.flawed.naive_grader:fooled_in_process"]`.
"""
