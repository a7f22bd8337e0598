"""One operator (or one family of like operators) per file."""
