"""When each task starts and ends: steady state, or element by element."""
