"""Gangs: tasks that must be on the machine together, and schedules of them without barriers."""
