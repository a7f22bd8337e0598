"""What the other known expansions would give, without building it."""
