"""Published measurements beside ours: what is bounded, how far estimates are off, and what was not modelled."""
