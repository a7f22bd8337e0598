"""Reports as pages: one self-contained HTML file, made from the JSON of a report."""
