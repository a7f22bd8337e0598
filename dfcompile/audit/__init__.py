"""Computes every number of a finished report anew, by code that shares nothing with what made it.

`dfcompile.audit.reports` has the entry for models, `dfcompile.audit.schedules` that for graphs: it needs no front end.
"""
