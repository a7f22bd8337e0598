"""Loop nests: level 2 of lowering, what expansions of canonical operators build."""
