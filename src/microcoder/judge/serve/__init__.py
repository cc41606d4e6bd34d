"""The judge for many: an HTTP service, over one `microcoder.judge.Judge`. See docs/serving.md.

What asks it, and the judge on a Ray cluster, are in `microcoder.judge.fleet`: all of them are a `Judging`.
"""
