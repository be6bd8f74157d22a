"""Print the report into ``report.pdf`` with a browser of the Chromium family."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.process import temp_dirs
from qjump_mn.process.die_with_parent import wrap_command

NAME = "report.pdf"

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "brave-browser",
)

TIMEOUT_S = 300
"""A page of 80 arms takes 10 s on a slow core that others use too."""


def browser() -> str:
    """Return the first of :data:`BROWSERS` that is installed. Raises :class:`MachineError` if none
    is."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise MachineError(
            "a PDF is printed by Chromium or Chrome, and this machine has neither: install the "
            "package chromium, or open report.html in a browser of yours and print it"
        )
    return found


def write(run: Path) -> Path:
    """Print ``report.html`` of the run directory ``run`` into ``report.pdf`` there, and return
    where that is.

    Raises :class:`MachineError` where there is no browser, or where it does not print.
    """
    # In the run directory: a browser from a snap sees no hidden file, and nothing of the machine's
    # /tmp.
    page, printed = (run / f"print-{os.getpid()}.{ending}" for ending in ("html", "pdf"))
    try:
        page.write_text(
            for_paper((run / "report.html").read_text(encoding="utf-8")), encoding="utf-8"
        )
        with temp_dirs.folder() as profile:
            said = _print(browser(), profile, page, printed)
        if not printed.is_file():
            raise MachineError(f"{browser()} did not print the report: {said or 'it says nothing'}")
        os.replace(printed, run / NAME)
    finally:
        page.unlink(missing_ok=True)
        printed.unlink(missing_ok=True)
    return run / NAME


def for_paper(page: str) -> str:
    """Return the page unfolded and without links into the run directory, which would name paths of
    this machine."""
    page = re.sub(r"<details(?: open)?>", "<details open>", page)
    return re.sub(r'(<a(?: class="[^"]*")?) href="(?!https?:|mailto:)[^"]*"', r"\1", page)


def _print(program: str, profile: str, page: Path, printed: Path) -> str:
    """Print with the browser, and return its last line."""
    argv = [
        program,
        "--headless",
        "--disable-gpu",
        "--disable-extensions",
        "--disable-background-networking",
        "--no-first-run",
        "--no-pdf-header-footer",
        f"--user-data-dir={profile}",
        f"--print-to-pdf={printed}",
        # Its sandbox needs another user than root; the page has no scripts.
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        page.as_uri(),
    ]
    try:
        done = subprocess.run(
            wrap_command(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {TIMEOUT_S} s"
    return (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
