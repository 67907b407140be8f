"""Headless Chromium over its debugging pipe: what a page says, asks for, and looks like."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
"""The browser; None where there is none."""

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)"
)

_PATIENCE = 60.0


class Browser:
    """A browser with one page.

    Attributes:
        complaints: Errors, and what the page wrote to the console.
        requests: Every address that was asked for.
    """

    def __init__(self, profile: Path) -> None:
        """Starts it, with a profile in an empty folder."""
        assert CHROMIUM is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = (
            "--headless=new --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run "
            f"--disable-dev-shm-usage --hide-scrollbars --user-data-dir={profile}"
        )
        command = f'exec "{CHROMIUM}" {options} 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=[to_read, to_write],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        os.set_blocking(self._read, False)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    @property
    def process(self) -> int:
        """The number of its first process."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the DevTools protocol and returns its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result

    def open(self, page: Path, *, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Opens a page and waits until it has drawn its charts."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("document.readyState === 'complete'")
        self.wait_for(
            "[...document.querySelectorAll('.charts')]"
            ".every(e => e.closest('details:not([open])') || e.dataset.drawn)"
        )
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        done = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def drag(self, selector: str, begin: float, end: float) -> None:
        """Drags the mouse over an element, from one share of its width to another."""
        steps = [begin + (end - begin) * step / 4 for step in range(5)]
        for kind, shares in (
            ("mouseMoved", [begin]),
            ("mousePressed", [begin]),
            ("mouseMoved", steps),
            ("mouseReleased", [end]),
        ):
            self.move(selector, shares, kind=kind, button="left", clickCount=1)

    def move(
        self, selector: str, shares: Sequence[float], *, kind: str = "mouseMoved", **more: Any
    ) -> None:
        """Moves the mouse over an element, to shares of its width, once it is there."""
        self.wait_for(f"!!document.querySelector({json.dumps(selector)})")
        left, top, width, height = self.evaluate(
            f"(async () => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'});"
            "await new Promise(done => requestAnimationFrame(() => setTimeout(done)));"
            "const b = e.getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]; })()"
        )
        for share in shares:
            at = {"x": left + share * width, "y": top + height / 2}
            self.call("Input.dispatchMouseEvent", type=kind, **at, **more)

    def screenshot(self, path: Path, *, height: int | None = None) -> None:
        """Writes a picture of the whole page, or of its top."""
        whole = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": whole["width"],
            "height": height or whole["height"],
            "scale": 1,
        }
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path: Path) -> None:
        """Prints the page."""
        printed = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        path.write_bytes(base64.b64decode(printed["data"]))

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            try:
                self._buffer += os.read(self._read, 1 << 20)
            except BlockingIOError:
                assert time.monotonic() < end, "the browser does not answer"
                time.sleep(0.005)
        line, _, self._buffer = self._buffer.partition(b"\0")
        said: dict[str, Any] = json.loads(line)
        self._note(said.get("method", ""), said.get("params", {}))
        return said

    def _note(self, method: str, told: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
