"""Every task a gang of its own: list schedules, their improvement, and what they take."""
