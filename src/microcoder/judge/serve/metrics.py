"""What the service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from microcoder.judge.core.syntax import attribute_docstrings
from microcoder.judge.run.verdicts import Statistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class ServiceMetrics:
    """The counters of one service; a registry of their own, so that several may live in one process."""

    def __init__(self, statistics: Callable[[], Statistics]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "microcoder_requests", "Requests by route and status", ("route", "status"), registry=self.registry
        )
        self.request_seconds = Histogram(
            "microcoder_request_seconds",
            "From a request's first byte to its answer",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.outcomes = Counter(
            "microcoder_outcomes", "Verdicts and runs by outcome", ("outcome",), registry=self.registry
        )
        self.faults = Counter(
            "microcoder_faults",
            "Programs without a verdict by reason; details are in the log and in the verdicts",
            ("reason",),
            registry=self.registry,
        )
        self.queued = Gauge("microcoder_queued_programs", "Programs on their way", registry=self.registry)
        self.body_bytes = Gauge("microcoder_body_bytes", "Bytes of requests on their way", registry=self.registry)
        self.connections = Gauge("microcoder_connections", "Open connections", registry=self.registry)
        self.connections_closed = Counter(
            "microcoder_connections_closed",
            "Connections that were ended or refused: no_head, idle, not_read, no_room",
            ("why",),
            registry=self.registry,
        )
        self.tokens_refused = Counter(
            "microcoder_tokens_refused",
            "Requests without a valid token: wrong, or not_looked_at after too many wrong ones from an address",
            ("why",),
            registry=self.registry,
        )
        self.run_seconds = Histogram(
            "microcoder_run_seconds",
            "What a program's tests took on the clock",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.wait_seconds = Histogram(
            "microcoder_wait_seconds", "What a program waited besides", buckets=_SECONDS, registry=self.registry
        )
        self.registry.register(_JudgeCollector(statistics))

    def render(self) -> bytes:
        """Return the page that Prometheus reads."""
        return generate_latest(self.registry)


class _JudgeCollector(Collector):
    """The judge's own counts, read when they are asked for."""

    def __init__(self, statistics: Callable[[], Statistics]) -> None:
        self._statistics = statistics

    def collect(self) -> Iterable[Metric]:
        """Return one counter for each."""
        statistics = self._statistics()
        for name, text in attribute_docstrings(Statistics).items():
            yield CounterMetricFamily(f"microcoder_judge_{name}", text.rstrip("."), value=getattr(statistics, name))
