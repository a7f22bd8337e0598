"""Networks: shapes of their dimensions, and how long collectives take in them."""
