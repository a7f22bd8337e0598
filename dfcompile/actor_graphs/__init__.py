"""Foreign designs as graphs of actors: read, executed, and the sizes of their channels."""
