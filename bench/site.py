"""Build the documentation as a site from the repository's Markdown, and run the tutorial.

    python3 bench/site.py FOLDER

docs/conf.py says how. A warning is an error. The exit code is 1 for an error, and 3 if this machine
cannot have the packages of docs/requirements.lock, which lie in the cache, apart from the
environment of qjump-mn. If it cannot compile the simulator to WebAssembly (bench/web.py), the site
has no page simulator/index.html.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import web
from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.install import installation

LOCK = ROOT / "docs/requirements.lock"
KIND = "documents"
KEPT = 2
"""The number of environments that stay in the cache."""
_NEEDS_BYTES = 1200 << 20  # 680 MB of environment beside 200 MB of downloads, and some air


def main(arguments: list[str]) -> int:
    """Build the site; return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return build(Path(arguments[0]))
    except MachineError as error:
        print(error, file=sys.stderr)
        return 3


def build(folder: Path) -> int:
    """Build the site in a folder; return Sphinx's exit code. Its warnings go to standard error."""
    simulator = _simulator()
    with tempfile.TemporaryDirectory(prefix="qjump-mn-site-") as doctrees:
        argv = [str(python()), "-P", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
        argv += ["-t", "simulator"] if simulator else []
        argv += ["-c", str(ROOT / "docs"), "-d", doctrees, str(ROOT), str(folder)]
        # To standard output goes what the notebook's runs print, which is in the notebook too.
        done = subprocess.run(argv, env=variables(), stdout=subprocess.DEVNULL, check=False)
    if simulator:
        (folder / web.PLACE).parent.mkdir(parents=True, exist_ok=True)
        (folder / web.PLACE).write_text(simulator)
    return done.returncode


def _simulator() -> str:
    """Return the simulator's page; empty, with a message, if it cannot be made here."""
    try:
        return web.page()
    except MachineError as error:
        _say(f"without {web.PLACE}: {error}")
        return ""


def python() -> Path:
    """Return the Python with the locked packages; install them if they are missing. Raise
    MachineError if neither an index nor a cache has them."""
    key = cache.hash_of(LOCK.read_bytes(), f"3.{sys.version_info[1]}", os.uname().machine)
    made = cache.artefact(
        KIND,
        key,
        lambda folder: installation.fill(folder, LOCK, ROOT, _say),
        needs_bytes=_NEEDS_BYTES,
        progress=_say,
    )
    cache.prune(KIND, KEPT)
    return made / "bin/python"


def variables() -> dict[str, str]:
    """Return the environment for Sphinx: this checkout, and none of the caller's folders."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("QJUMP_MN_RUN_")
    }
    return {**kept, "PYTHONPATH": str(ROOT), "QJUMP_MN_PATH": ""}


def _say(line: str) -> None:
    print(f"site: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
