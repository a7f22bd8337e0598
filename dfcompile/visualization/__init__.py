"""Pictures and traces of what stages hand over."""
