"""The audit of a report on a design: every number of it from the file, what was decided, and the machine."""

from dfcompile.audit.design.totals import audit_design as audit_design
