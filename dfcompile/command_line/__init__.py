"""What every command has in common: how options are taken, how words are completed, how a run ends."""
