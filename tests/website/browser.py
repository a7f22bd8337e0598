"""A headless Chromium that is driven over a pair of pipes (the DevTools protocol)."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
LAUNCHER = "import os, sys; os.dup2({0}, 3); os.dup2({1}, 4); os.execv(sys.argv[1], sys.argv[1:])"
HEIGHT = 900


class Browser:
    """One page in a browser."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        self._commands = commands
        self._answers = answers
        self._number = 0
        self.events: list[dict[str, object]] = []  # what happened since it was emptied
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = str(self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        self.call("Page.enable")

    def open(self, page: Path, width: int) -> None:
        """Show a file in a window of so many pixels, and wait until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str) -> object:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script!r}: {answer['exceptionDetails']}")
        result = answer["result"]
        assert isinstance(result, dict)
        return result.get("value")

    def screenshot(self, width: int, height: int) -> bytes:
        """Return a picture of the upper part of the page as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(str(answer["data"]))

    def call(self, method: str, **parameters: object) -> dict[str, object]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        session = {} if self._session is None else {"sessionId": self._session}
        command = {"id": self._number, "method": method, "params": parameters, **session}
        self._commands.write(json.dumps(command).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                break
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def _message(self) -> dict[str, object]:
        text = bytearray()
        while not text.endswith(b"\0"):
            byte = self._answers.read(1)
            if not byte:
                raise RuntimeError("the browser closed its pipe")
            text += byte
        message: dict[str, object] = json.loads(text[:-1])
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise SystemExit(f"none of {', '.join(NAMES)} is on PATH: a browser is needed for screenshots")
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        launcher = LAUNCHER.format(read_commands, write_answers)
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        running = subprocess.Popen(
            [sys.executable, "-c", launcher, *words, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            pass_fds=(read_commands, write_answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        with os.fdopen(write_commands, "wb") as commands, os.fdopen(read_answers, "rb") as answers:
            try:
                yield Browser(commands, answers)
            finally:
                running.terminate()
                running.wait()
