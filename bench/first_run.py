"""Measure a newcomer's wait: `./bootstrap` from a clean clone with an empty cache. Write
bench/first_run.json and the sentences of README.

    python3 bench/first_run.py [--write]

Without `--write`, print the sentences of the last measurement, and measure nothing. Needs root,
some minutes, and an idle machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn.backends import estimate

NUMBERS = ROOT / "bench/first_run.json"


class FirstRun(NamedTuple):
    """Number of ``cores``; seconds to install and build everything; bytes of disk that the cache
    then takes."""

    cores: int
    build_s: float
    disk_bytes: int


def main(arguments: list[str]) -> None:
    """Print, or measure and write."""
    if "--write" not in arguments:
        print(sentences(read()))
        return
    NUMBERS.write_text(json.dumps(measure()._asdict(), indent=1) + "\n")
    marks.write(ROOT / "README.md", "first_run", sentences(read()))


def read() -> FirstRun:
    """Read the numbers of the last measurement."""
    return FirstRun(**json.loads(NUMBERS.read_text()))


def measure() -> FirstRun:
    """Do what README says in a clone of this checkout's commit. Raise CalledProcessError if it
    fails."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        clone, cache = Path(folder, "qjump-mn"), Path(folder, "cache")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        variables = {**os.environ, "QJUMP_MN_CACHE": str(cache)}
        began = time.monotonic()
        subprocess.run(["./bootstrap"], cwd=clone, env=variables, check=True, stdout=sys.stderr)
        build_s = round(time.monotonic() - began, 1)
        used = subprocess.check_output(["du", "-s", "--block-size=1", str(cache)], text=True)
        return FirstRun(len(os.sched_getaffinity(0)), build_s, int(used.split()[0]))


def sentences(run: FirstRun) -> str:
    """Return README's sentences about time and disk."""
    time = estimate.time_in_words(run.build_s)
    return (
        f"The first time, installing and building everything took about {time} on {run.cores} "
        f"cores\nand {run.disk_bytes / 1e9:.1f} GB of disk."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
