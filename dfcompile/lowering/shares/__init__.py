"""The share of one of several chips: level 1 on fewer iterations, on parts of arrays."""
