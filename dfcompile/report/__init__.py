"""The report: figures, their JSON contract, and the forms that people read."""
