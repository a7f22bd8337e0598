"""One einsum: its curve over tilings and loop orders."""
