"""Reports and studies over run directories: they read files, never live objects."""

from microcoder.insights.report import write_report
from microcoder.insights.statistics import Estimate, estimate_accuracy, estimate_difference, pass_at_k

__all__ = ["Estimate", "estimate_accuracy", "estimate_difference", "pass_at_k", "write_report"]
