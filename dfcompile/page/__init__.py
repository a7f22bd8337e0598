"""Reports as pages: one self-contained HTML file, made from the report's JSON."""

from dfcompile.page.document import Content, html_page
from dfcompile.page.provenance import Provenance, provenance_of
from dfcompile.page.reading import read_report

__all__ = ["Content", "Provenance", "html_page", "provenance_of", "read_report"]
