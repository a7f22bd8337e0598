"""The audit of the part on a mapping: every number of it from the lowering, its schedule and the machine."""

from dfcompile.audit.mapping.bounds import IdealAudit as IdealAudit
from dfcompile.audit.mapping.totals import audit_mapping as audit_mapping
