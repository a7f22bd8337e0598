"""Pictures of Gantt charts as a browser shows them, at the widths of a phone and of a desk, and a check of letters.

``make screenshots`` writes them to ``build/screenshots`` and fails if a text is cut off, or if two overlap.
"""

import sys
from pathlib import Path

from dfcompile.api.compile_model import compile_model
from dfcompile.api.runs import Picture
from dfcompile.api.schedule_dag import schedule
from dfcompile.generators.canonical_dags import cholesky
from tests.website.browser import Browser, browser
from tests.website.screenshots import FOLDER, ROOT, WIDTHS

HEIGHT = "document.documentElement.getBoundingClientRect().height"
FAULTS = """
(() => {
  const texts = [...document.querySelectorAll('text')].map(text => [text, text.getBoundingClientRect()])
    .filter(([text, box]) => box.width > 0);
  const picture = document.documentElement.getBoundingClientRect();
  const right = Math.max(picture.right, window.innerWidth);
  const cut = texts.filter(([text, box]) =>
    box.left < 0 || box.top < 0 || box.right > right || box.bottom > picture.bottom + 1);
  const over = [];
  texts.forEach(([one, a], number) => texts.slice(number + 1).forEach(([other, b]) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > a.height / 4) over.push(`${one.textContent} over ${other.textContent}`);
  }));
  return [...cut.map(([text]) => `cut off: ${text.textContent}`), ...over];
})()
"""


def main() -> int:
    """Check every chart at every width, and picture it; return the number of faults."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    faults = 0
    with browser() as window:
        for name, chart in _charts().items():
            file = FOLDER / f"{name}.svg"
            chart.save(file)
            for width in WIDTHS:
                for fault in _faults(window, file, width):
                    print(f"{name} at {width} pixels: {fault}")
                    faults += 1
    print(f"charts at {' and '.join(map(str, WIDTHS))} pixels: {faults} faults; pictures in {FOLDER}")
    return faults


def _charts() -> dict[str, Picture]:
    lenet = compile_model(ROOT / "examples" / "lenet" / "model.py", pes=16, expand="published").schedules[0].gantt()
    graph = cholesky(8, 2048, 1)
    charts = {"gantt-lenet": lenet}
    for name, barrier in (("overlapping", False), ("barriers", True)):
        charts[f"gantt-cholesky-{name}"] = schedule(graph, pes=16, barrier=barrier).schedules[0].gantt()
    return charts


def _faults(window: Browser, file: Path, width: int) -> list[str]:
    window.open(file, width)
    height = window.evaluate(HEIGHT)
    assert isinstance(height, int | float)
    file.with_name(f"{file.stem}-{width}.png").write_bytes(window.screenshot(width, int(height)))
    texts = window.evaluate(FAULTS)
    assert isinstance(texts, list)
    return [str(text) for text in texts]


if __name__ == "__main__":
    sys.exit(main() > 0)
