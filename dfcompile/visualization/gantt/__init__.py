"""The Gantt chart of a schedule as an SVG picture."""
