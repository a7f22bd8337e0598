"""Parts of a laboratory of its own, one kind in each file."""
