"""What is wrong with a published set, row by row, without building a corpus from it."""

from microcoder.dataset.audit.findings import KINDS, AuditedRow, Finding
from microcoder.dataset.audit.session import Audited, AuditSettings, audit

__all__ = ["KINDS", "AuditSettings", "Audited", "AuditedRow", "Finding", "audit"]
