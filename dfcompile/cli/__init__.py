"""The command line: one module per command, and what all commands have in common."""
