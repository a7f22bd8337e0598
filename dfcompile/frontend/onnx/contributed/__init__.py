"""The contributed operators that can be compiled, a table for each kind."""
