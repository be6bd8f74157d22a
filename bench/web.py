"""Write the simulator as a page that runs in a browser, from simulator/web.

    python3 bench/web.py FILE

The page is one file with everything in it: it opens from a disk or any static host. The first time,
root compiles the simulator to WebAssembly, in minutes. The exit code is 3 if this machine cannot.
"""

from __future__ import annotations

import base64
import gzip
import sys
from pathlib import Path

import jinja2
from markupsafe import Markup

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from qjump_mn.errors import MachineError
from qjump_mn.report import pages, templating
from qjump_mn.toolbox import webassembly

SOURCES = ROOT / "simulator/web"
PLAYER = """globalThis.player = {
  showRecording, shown, go, state, micros, sides, scaleOf, cornerOf, ROW, LEAST_ROW,
};
"""
"""What the rest of the page, and tests, use of the player."""
PLACE = "simulator/index.html"
"""The page's path below the documentation's site."""


def main(arguments: list[str]) -> int:
    """Write the page; return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        Path(arguments[0]).write_text(page())
    except MachineError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


def page() -> str:
    """Return the page. Raises MachineError if the simulator cannot be compiled."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([SOURCES, templating.FOLDER]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    module = gzip.compress(webassembly.module(_say).read_bytes(), mtime=0)
    style = _player("report.css", "timeline.css", "player.css") + _sources("page.css")
    # In a block, the player's names are its own.
    player = f"{{\n{_player('player.js', 'player-view.js')}{PLAYER}}}\n"
    page = _sources("equations.js", "scenario.js", "pictures.js", "page.js")
    text: str = environment.get_template("page.html.jinja").render(
        module=base64.b64encode(module).decode(),
        worker=Markup(_sources("equations.js", "scenario.js", "frames.js", "worker.js")),
        script=pages.inline('"use strict";\n' + player + page),
        style=pages.inline(style),
    )
    return text


def _player(*names: str) -> str:
    return "".join((templating.FOLDER / name).read_text() for name in names)


def _sources(*names: str) -> str:
    return "".join((SOURCES / name).read_text() for name in names)


def _say(line: str) -> None:
    print(f"web: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
