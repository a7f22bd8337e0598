"""The notebook that this room began as, with its mistakes: `--compat notebook`."""
