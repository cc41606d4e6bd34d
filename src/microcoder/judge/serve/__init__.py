"""The judge as an HTTP service for many clients, over one `microcoder.judge.Judge`. See docs/serving.md.

Its clients, and the judge on a Ray cluster, are in `microcoder.judge.fleet`: all of them are a `BaseJudge`.
"""
