"""What Python programs and notebooks call; the command line calls the same."""
