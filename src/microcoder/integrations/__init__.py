"""Integrations of the judge into other frameworks for training and evaluation.

Each file imports only its own framework: `trl`, `verl`, `skyrl`, `nemo_gym` and `openenv` score
responses in training; `verifiers`, `inspect`, `lm_eval` and `livecodebench` in evaluation.
`shared` has the one judge of a process, which all integrations of that process use: read it first.
See docs/integrations.md.
"""
