"""What is wrong with a published set, row by row, without building a corpus from it."""

from microcoder.data.audit.session import AuditSettings, audit

__all__ = ["AuditSettings", "audit"]
