"""What is asked of every page of --html: nothing is complained of or fetched, and it answers soon."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.website.browser import Browser

MOST_BYTES = 6_000_000
FIRST_PAINT_MS, INTERACTION_MS = 2000, 200  # on two cores that have nothing else to do
DOMAINS = ("Runtime", "Log", "Network")  # of the protocol, whose events say what went wrong
# Each interaction from its event until the frame that shows what it did.
INTERACTIONS = """
(async () => {
  const took = {};
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const time = async (name, act) => {
    await frame();
    const begin = performance.now();
    act();
    document.body.getBoundingClientRect();
    await frame();
    took[name] = performance.now() - begin;
  };
  const key = (place, name) => place.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  // What is measured begins when the page stands.
  while ([...document.querySelectorAll("figure.chart .drawing")].some((place) => !place.firstChild)) await frame();
  await new Promise((done) => requestIdleCallback(done));
  const largest = [...document.querySelectorAll("details.table")].sort(
    (a, b) => Number(b.querySelector("summary").textContent.replace(/.*\\(|[^0-9]/g, "")) -
      Number(a.querySelector("summary").textContent.replace(/.*\\(|[^0-9]/g, "")))[0];
  if (largest) {
    if (!largest.open) await time("open a table", () => { largest.open = true; });
    await time("sort", () => largest.querySelector("thead button").click());
    const filter = largest.querySelector("input");
    await time("filter", () => {
      filter.value = "1";
      filter.dispatchEvent(new Event("input"));
    });
  }
  const charts = [...document.querySelectorAll("figure.chart")];
  const marks = (figure) => dfcompile.charts[Number(figure.dataset.chart)].marks.x.length;
  const chart = charts.sort((a, b) => marks(b) - marks(a))[0];
  if (chart) {
    chart.scrollIntoView();
    const svg = chart.querySelector("svg");
    const { x, y, width, height } = svg.getBoundingClientRect();
    await time("point at a chart", () => svg.dispatchEvent(new PointerEvent("pointermove", {
      clientX: x + width / 2, clientY: y + height / 2, pointerType: "mouse", bubbles: true,
    })));
    await time("walk a chart", () => key(chart.querySelector(".drawing"), "ArrowRight"));
  }
  const canvas = document.querySelector("canvas");
  if (canvas) {
    canvas.scrollIntoView();
    await time("zoom in", () => key(canvas, "+"));
    await time("move", () => key(canvas, "ArrowRight"));
    const { x, y } = canvas.getBoundingClientRect();
    await time("point at the schedule", () => canvas.dispatchEvent(new PointerEvent("pointermove", {
      clientX: x + 200, clientY: y + 100, bubbles: true,
    })));
  }
  const box = document.querySelector("#graph g.branch");
  if (box) await time("open or close a box", () => box.dispatchEvent(new Event("click")));
  return JSON.stringify(took);
})()
"""


@dataclass(frozen=True, slots=True)
class Tried:
    """A page that was opened and used.

    Attributes:
        size_bytes: of the file.
        first_paint_ms: after the navigation began.
        interactions_ms: from the event to the next frame, by name.
        complaints: of the console, and what was fetched.
    """

    size_bytes: int
    first_paint_ms: float
    interactions_ms: dict[str, float]
    complaints: list[object]

    @property
    def slowest(self) -> tuple[str, float]:
        """The interaction that takes longest."""
        return max(self.interactions_ms.items(), key=lambda pair: pair[1])


def tried(running: Browser, page: Path, width: int = 1600) -> Tried:
    """Open a page, use what it has, and return what was seen."""
    for domain in DOMAINS:
        running.call(f"{domain}.enable")
    running.events.clear()
    running.open(page, width)
    found = running.call(
        "Runtime.evaluate", expression=INTERACTIONS, returnByValue=True, awaitPromise=True
    )  # the promise ends after the page has drawn all it has
    result = found["result"]
    assert isinstance(result, dict)
    assert isinstance(result.get("value"), str), found
    paint = running.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert isinstance(paint, int | float)
    return Tried(page.stat().st_size, paint, json.loads(result["value"]), complaints(running, page))


def complaints(running: Browser, page: Path) -> list[object]:
    """Return what the console says, and what was asked of the network."""
    found: list[object] = []
    for event in running.events:
        parameters = event["params"]
        assert isinstance(parameters, dict)
        if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            found.append(parameters)
        elif event["method"] == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith("data:") and url != page.resolve().as_uri():
                found.append(url)
    return found
