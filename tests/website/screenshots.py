"""Pictures of pages of the built site, at the widths of a phone and of a desk, and a check that nothing is cut off.

``make screenshots`` writes ``build/screenshots`` and fails if a page is wider than its window, or if something
sticks out that cannot be scrolled to, or something is fetched from elsewhere.
"""

import sys
from pathlib import Path

from tests.website.browser import Browser, browser

ROOT = Path(__file__).parent.parent.parent
SITE, FOLDER = ROOT / "build" / "site", ROOT / "build" / "screenshots"
PICTURED = ("index", "tutorial", "extraction", "scheduling", "reference/scheduler")
WIDTHS = (400, 1400)
HIGHEST = 8000  # pixels of a picture

OVERFLOW = "document.scrollingElement.scrollWidth - window.innerWidth"
# What sticks out of the window, unless something around it scrolls.
CUT_OFF = """
[...document.querySelectorAll('.md-content *')].filter(element => {
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.right <= window.innerWidth + 1) return false;
  for (let around = element; around; around = around.parentElement) {
    if (['auto', 'scroll'].includes(getComputedStyle(around).overflowX)
        && around.getBoundingClientRect().right <= window.innerWidth + 1) return false;
  }
  return true;
}).map(element => `${element.tagName.toLowerCase()}.${element.className}: ${element.textContent.slice(0, 60)}`)
"""
# Code whose lines are longer than its box, which has to scroll then.
CLIPPED = """
[...document.querySelectorAll('.md-content pre, .md-content pre code, .md-content .formula')].filter(element =>
  element.scrollWidth > element.clientWidth + 1
  && ![element, ...element.querySelectorAll('code')].some(
    box => ['auto', 'scroll'].includes(getComputedStyle(box).overflowX))
).map(element => `does not scroll: ${element.textContent.slice(0, 60)}`)
"""
# What a reader without a network would miss.
FETCHED = """
performance.getEntriesByType('resource').map(entry => entry.name).filter(name => !name.startsWith('file:'))
  .map(name => `fetches ${name}`)
"""


def main() -> int:
    """Check every page at every width, and picture some; return the number of faults."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")
    faults = 0
    with browser() as window:
        for page in pages:
            name = page.relative_to(SITE).with_suffix("").as_posix()
            for width in WIDTHS:
                window.open(page, width)
                for fault in _faults(window):
                    print(f"{name} at {width} pixels: {fault}")
                    faults += 1
                if name in PICTURED:
                    height = window.evaluate("document.scrollingElement.scrollHeight")
                    assert isinstance(height, int)
                    picture = window.screenshot(width, min(height, HIGHEST))
                    (FOLDER / f"{name.replace('/', '-')}-{width}.png").write_bytes(picture)
    print(f"{len(pages)} pages at {' and '.join(map(str, WIDTHS))} pixels: {faults} faults; pictures in {FOLDER}")
    return faults


def _faults(window: Browser) -> list[str]:
    overflow = window.evaluate(OVERFLOW)
    assert isinstance(overflow, int)
    found = [f"{overflow} pixels wider than the window"] if overflow > 0 else []
    for script in (CUT_OFF, CLIPPED, FETCHED):
        texts = window.evaluate(script)
        assert isinstance(texts, list)
        found.extend(map(str, texts))
    return found


if __name__ == "__main__":
    sys.exit(main() > 0)
