"""One DAG pass per file; all that there are so far come from other packages."""
