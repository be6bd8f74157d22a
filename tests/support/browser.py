"""A browser without a window, driven by Chromium's DevTools protocol over a pair of pipes: no port,
no driver, no package.

Pages are opened from files, as a reader opens them, in a window of a given width; keys, wheel and
pointer are the browser's own events.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ANSWER_S = 120.0
"""The longest wait for an answer: on a busy machine the first page takes seconds."""

FLAGS = (
    "--headless",
    "--no-sandbox",  # tests may be run by root, in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)

_CODES = {"Home": 36, "End": 35, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, " ": 32, "Tab": 9}
_LEAST_DESCRIPTOR = 10


def found() -> str | None:
    """The browser's path; None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """A running browser with one page."""

    def __init__(self, process: int, reads: int, writes: int) -> None:
        self._process, self._reads, self._writes = process, reads, writes
        self._buffer, self._count, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, width: int, *, fragment: str = "", dark: bool = False) -> None:
        """Open a file in a window of that width, and wait until it and its script have done."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._go("about:blank")  # from the same page, another fragment would not load anything
        self._go(f"{path.resolve().as_uri()}{fragment}")
        self.settle()

    def _go(self, url: str) -> None:
        self._events.clear()
        self._call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._receive()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run(
            "new Promise(done => { const wait = () => "
            "['shown', 'clock'].some(name => document.getElementById(name)?.textContent === '…') "
            "? setTimeout(wait, 10) : "
            "requestAnimationFrame(() => requestAnimationFrame(done)); wait(); })"
        )

    def run(self, script: str) -> Any:
        """The value of an expression, or of its promise."""
        answer = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def errors(self) -> list[str]:
        """What scripts and the page's policy complained about since it was opened."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self._events if event["method"] in kinds]

    def press(self, key: str) -> None:
        """A key, down and up, to what has the focus."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        which = {"key": key, "windowsVirtualKeyCode": _CODES.get(key, ord(key[0])), "text": text}
        which["code"] = "Space" if key == " " else key
        self._call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **which)
        self._call("Input.dispatchKeyEvent", type="keyUp", **{**which, "text": ""})
        self.settle()

    def wheel(self, x: float, y: float, by: float, *, control: bool = False) -> None:
        """Turn the wheel over a point of the window."""
        self._mouse("mouseWheel", x, y, deltaX=0, deltaY=by, modifiers=2 if control else 0)
        self.settle()

    def drag(self, x: float, y: float, to_x: float) -> None:
        """Press, move and let go."""
        self._mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self._mouse("mouseMoved", to_x, y, button="left", buttons=1)
        self._mouse("mouseReleased", to_x, y, button="left", clickCount=1)
        self.settle()

    def point(self, x: float, y: float) -> None:
        """Move the pointer there."""
        self._mouse("mouseMoved", x, y)
        self.settle()

    def pinch(self, x: float, y: float, apart: float, then: float) -> None:
        """Two fingers, ``apart`` from each other, that move until they are ``then`` apart."""

        def touch(what: str, distance: float | None) -> None:
            places = [] if distance is None else [x - distance / 2, x + distance / 2]
            fingers = [{"x": place, "y": y, "id": number} for number, place in enumerate(places)]
            self._call("Input.dispatchTouchEvent", type=what, touchPoints=fingers)

        touch("touchStart", apart)
        touch("touchMove", (apart + then) / 2)
        touch("touchMove", then)
        touch("touchEnd", None)
        self.settle()

    def images(self) -> list[str]:
        """The name of every image, as assistive technology has it."""
        nodes = self._call("Accessibility.getFullAXTree")["nodes"]
        kinds = ("image", "img")
        return [
            node.get("name", {}).get("value", "")
            for node in nodes
            if node.get("role", {}).get("value") in kinds and not node.get("ignored")
        ]

    def picture(self, path: Path) -> None:
        """The whole page as a PNG file."""
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _mouse(self, what: str, x: float, y: float, **more: Any) -> None:
        self._call("Input.dispatchMouseEvent", type=what, x=x, y=y, **more)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        """The next message; events are kept as well."""
        deadline = time.monotonic() + ANSWER_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select(
                [self._reads], [], [], max(0.0, deadline - time.monotonic())
            )
            read = os.read(self._reads, 1 << 20) if ready else b""
            if not read:
                raise TimeoutError(
                    "the browser has ended" if ready else "the browser does not answer"
                )
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self._events.append(message)
        return message

    def close(self) -> None:
        """End the browser and whatever it has started."""
        os.close(self._writes)
        os.close(self._reads)
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


@contextmanager
def started(path: str, profile: Path) -> Iterator[Browser]:
    """The browser at ``path``, with its files in the folder ``profile``."""
    # It reads from descriptor 3 and writes to 4: ours must not have these numbers themselves.
    pipes = [
        fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _LEAST_DESCRIPTOR) for end in _pipe() + _pipe()
    ]
    reads_there, writes_here, reads_here, writes_there = pipes
    quiet = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [
        *((os.POSIX_SPAWN_DUP2, quiet, number) for number in (0, 1, 2)),
        (os.POSIX_SPAWN_DUP2, reads_there, 3),
        (os.POSIX_SPAWN_DUP2, writes_there, 4),
    ]
    argv = [path, *FLAGS, f"--user-data-dir={profile}"]
    process = os.posix_spawn(path, argv, dict(os.environ), file_actions=actions, setpgroup=0)
    for end in (reads_there, writes_there, quiet):
        os.close(end)
    browser = None
    try:
        browser = Browser(process, reads_here, writes_here)
        yield browser
    finally:
        if browser is not None:
            browser.close()


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)
