"""System files that come with dfcompile, one machine per file."""
