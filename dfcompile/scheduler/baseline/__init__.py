"""The baseline: no streaming, every edge through memory."""
