"""Writes the measured part of ``docs/silicon.md`` anew: ``python -m benchmarks.silicon``."""

import sys

from benchmarks.measurement import ROOT
from benchmarks.silicon import chips, serving, training

PAGE = ROOT / "docs" / "silicon.md"
BEGIN, END = "<!-- {}: written by python -m benchmarks.silicon -->", "<!-- end -->"
PARTS = {"serving": serving.page, "unseen": serving.unseen, "chips": chips.page, "training": training.page}


def main() -> int:
    """Put every part between its marks."""
    text = PAGE.read_text()
    for name, part in PARTS.items():
        begin = BEGIN.format(name)
        before, _, rest = text.partition(begin)
        lines = "\n".join(part())
        text = f"{before}{begin}\n\n{lines}\n\n{END}{rest.partition(END)[2]}"
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
