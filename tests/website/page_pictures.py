"""Pictures of pages of --html for README and docs: ``python -m tests.website.page_pictures`` draws them anew.

``make screenshots`` does that as well. Each is what Chromium shows of the page of a command, as WebP; the same machine
draws the same bytes again.
"""

import base64
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dfcompile.cli.main import main as dfcompile
from tests.locations import ROOT
from tests.website.browser import Browser, browser

FOLDER: Final = ROOT / "docs" / "screenshots"
LARGEST_BYTES: Final = 150_000
LARGEST_SUM_BYTES: Final = 500_000
QUALITY: Final = 82  # of WebP: letters stay sharp
_READY_S = 30.0
_MARGIN = 12  # pixels around what is pictured
_OURS = ("page.html", "out", "cholesky.json")  # files that commands write


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture of a page.

    Attributes:
        name: of the file, without ``.webp``.
        commands: of dfcompile, run one after another in a folder of their own; the last one writes ``page.html``.
        shown: CSS selector of what is pictured.
        width: of the window, in pixels.
        height: at most, in pixels.
    """

    name: str
    commands: tuple[str, ...]
    shown: str
    width: int
    height: int


LENET = (f"{ROOT / 'examples' / 'lenet' / 'model.py'} --pes 16,64 --expand MatMul=mv,ip",)
CHOLESKY = ("generate cholesky --size 12 -o cholesky.json", "schedule cholesky.json --pes 16")
LLAMA = ("llm --config llama-3.1-70b --system h100-sxm --chips 8 --prefill 4096 --decode 4096x64",)
GPT3 = (f"{ROOT / 'tests/data/dfmodel/readme_gpt3_1t_sn30.txt'}",)
PICTURES: Final = (
    PagePicture("lenet", LENET, "body", 1200, 1000),
    PagePicture("dataflow-graph", LENET, "section:has(#graph)", 700, 560),
    PagePicture("schedule", CHOLESKY, "section:has(#timeline)", 1200, 700),
    PagePicture("roofline", GPT3, "figure:has([aria-label^=Roofline])", 700, 560),
    PagePicture("language-model", LLAMA, "body", 1200, 700),
)


def main(names: Sequence[str] = ()) -> int:
    """Draw all pictures, or those of these names; return how many are too large."""
    FOLDER.mkdir(exist_ok=True)
    wanted = [picture for picture in PICTURES if not names or picture.name in names]
    sizes = []
    with browser() as window:
        for commands, pictures in groupby(wanted, key=lambda picture: picture.commands):
            with page_of(commands) as page:
                for picture in pictures:
                    drawn = draw(window, page, picture)
                    (FOLDER / f"{picture.name}.webp").write_bytes(drawn)
                    print(f"{picture.name}: {len(drawn):,} bytes of at most {LARGEST_BYTES:,}")
                    sizes.append(len(drawn))
    return sum(size > LARGEST_BYTES for size in sizes)


@contextmanager
def page_of(commands: Sequence[str]) -> Iterator[Path]:
    """Give the page that the last of some commands writes."""
    with TemporaryDirectory() as folder:
        *before, last = commands
        for command in (*before, f"{last} --html page.html -o out"):
            words = [str(Path(folder) / word) if word in _OURS else word for word in shlex.split(command)]
            if dfcompile(words) != 0:
                raise SystemExit(f"dfcompile {command}: failed")
        yield Path(folder) / "page.html"


def draw(window: Browser, page: Path, picture: PagePicture) -> bytes:
    """Return a picture as WebP."""
    light = [{"name": "prefers-color-scheme", "value": "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]
    window.call("Emulation.setEmulatedMedia", features=light)
    window.open(page, picture.width)
    deadline = time.monotonic() + _READY_S
    while window.evaluate("document.documentElement.dataset.ready") != "yes":
        if time.monotonic() > deadline:
            raise SystemExit(f"{picture.name}: the page is not drawn after {_READY_S:.0f} s")
        time.sleep(0.02)
    window.evaluate("document.fonts.ready.then(() => 1)")
    box = window.evaluate(
        f"(box => [box.left + scrollX, box.top + scrollY, box.width, box.height])"
        f"(document.querySelector({picture.shown!r}).getBoundingClientRect())"
    )
    assert isinstance(box, list)
    left, top, width, height = (int(side) for side in box)
    margin = min(_MARGIN, left, top)
    clip = {
        "x": left - margin,
        "y": top - margin,
        "width": width + 2 * margin,
        "height": min(height + 2 * margin, picture.height),
        "scale": 1,
    }
    found = window.call(
        "Page.captureScreenshot", format="webp", quality=QUALITY, captureBeyondViewport=True, clip=clip
    )  # fmt: skip
    return base64.b64decode(str(found["data"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
