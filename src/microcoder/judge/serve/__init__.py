"""The evaluator for many: an HTTP service, the clients that others have for theirs, and a judge on a Ray cluster.

`app` serves (extra `serve`), `client` asks, `ray_judge` spreads programs over nodes (extra `ray`). Both are a
`microcoder.judge.fleet.protocols.Judging`, as `microcoder.judge.Judge` is. See docs/serving.md.
"""
