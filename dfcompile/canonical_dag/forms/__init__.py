"""The forms of a canonical DAG in files and for other tools."""
