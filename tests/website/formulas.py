r"""Formulas of pages become MathML when the site is built: a reader's browser sets them, and loads nothing.

A hook of mkdocs. Pages write ``$O / I$`` and ``$$ … $$``; `pymdownx.arithmatex` finds them.
"""

import re
from html import unescape

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\s*\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]\s*</(?P=tag)>', re.DOTALL
)


def on_page_content(html: str, **_: object) -> str:
    """Replace the formulas of a page; mkdocs calls this when the page has become HTML."""
    return _FORMULA.sub(lambda found: mathml(unescape(found["latex"]), inline=found["open"] == "("), html)


def mathml(latex: str, *, inline: bool) -> str:
    """Return a formula as MathML.

    Raises:
        ValueError: a command that the converter does not know.
    """
    converted = convert(" ".join(latex.split()), display="inline" if inline else "block")
    if "\\" in converted:
        raise ValueError(f"formula {latex!r}: a command that is unknown against commands of latex2mathml")
    return converted if inline else f'<div class="formula">{converted}</div>'
