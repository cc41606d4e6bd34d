"""Reports and studies over run directories: they read files, never live objects."""

from microcoder.insights.frames import rollouts_df
from microcoder.insights.report import write_report
from microcoder.insights.statistics import Estimate, estimate_accuracy, estimate_difference, pass_at_k

__all__ = ["Estimate", "estimate_accuracy", "estimate_difference", "pass_at_k", "rollouts_df", "write_report"]
