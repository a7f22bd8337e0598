"""The audit of the part on a mapping: every number of it from the lowering, its schedule and the machine."""

from dfcompile.audit.mapping.bounds import IdealAudit
from dfcompile.audit.mapping.totals import audit_mapping

__all__ = ["IdealAudit", "audit_mapping"]
