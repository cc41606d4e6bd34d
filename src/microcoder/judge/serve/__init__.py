"""The judge as an HTTP service for many clients, over one `microcoder.judge.Judge`.

See docs/serving.md. Read `service.py` first: a judge behind a bounded queue, whatever the routes.
Around it:

- `api.py`: the routes, as a FastAPI application;
- `sandbox_fusion.py`: the routes that SandboxFusion's clients ask;
- `app.py`: the server, which checks tokens, sizes and deadlines before a request is read;
- `settings.py`: the limits of the service, and the tokens of its clients.

Its clients, and the judge on a Ray cluster, are in `microcoder.judge.fleet`: all are a `BaseJudge`.
"""
