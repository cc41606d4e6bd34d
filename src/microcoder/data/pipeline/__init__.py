"""The pipeline's engine: shards, steps, resume. It knows nothing of what a step does.

`steps` says what a step and a shard are, and what decides a step's result. `parts` writes and reads
the rows between two steps. `runner` takes shards through one step, in worker processes or on Ray.
`engine` runs all steps: read its `run_steps` first.
"""
