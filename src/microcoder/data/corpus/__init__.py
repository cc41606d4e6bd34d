"""Builds a corpus: the sources, the steps that rows go through, and the finished folder.

    sources -> shards -> collect, process, filter, deduplicate, ... verify -> tables and card

Read `build.py` first: `plan_build` and `run_build` make a corpus, `audit` reports what a build
would reject. `settings.py` has the options, `inputs.py` the shards of raw rows, and `steps.py` the
steps in order with the code that decides each.

`work.py` is what the steps do to one shard, `barriers.py` what needs all rows at once, and
`same_task.py` asks a model whether two problems set the same task. `findings.py` is the report of
an audit.
"""
