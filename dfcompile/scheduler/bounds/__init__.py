"""What no schedule can beat."""
