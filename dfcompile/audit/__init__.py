"""Computes every number of a finished report anew, by code that shares nothing with what made it."""

from dfcompile.audit.reports import audit_report, audit_schedules

__all__ = ["audit_report", "audit_schedules"]
