"""Configurations: a `config.json` becomes a `Model`."""
