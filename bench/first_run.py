"""Measures what a newcomer waits for: `./bootstrap` and `./bootstrap fig3a` from a clean clone with an empty
cache, and the same command once more. Writes bench/first_run.json and the sentences of README.

    python3 bench/first_run.py [--write]

Without `--write` the sentences of the last measurement go to standard output, and nothing is measured.
Measure on a machine that does nothing else; it takes a quarter of an hour, and needs root.
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

NUMBERS = ROOT / "bench/first_run.json"
EXPERIMENT = "fig3a"


class FirstRun(NamedTuple):
    """Seconds on ``cores`` processors, and bytes of disk: to install and build everything, to run the
    experiment for the first time, and once more; what the cache takes then."""

    cores: int
    build_s: float
    first_s: float
    again_s: float
    disk_bytes: int


def main(arguments: list[str]) -> None:
    """Print, or measure and write."""
    if "--write" not in arguments:
        print(sentences(read()))
        return
    NUMBERS.write_text(json.dumps(measure()._asdict(), indent=1) + "\n")
    marks.write(ROOT / "README.md", "first_run", sentences(read()))


def read() -> FirstRun:
    """The numbers of the last measurement."""
    return FirstRun(**json.loads(NUMBERS.read_text()))


def measure() -> FirstRun:
    """Do what README says, in a clone of this checkout's commit. Raises CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        clone, cache = Path(folder, "qjump-mn"), Path(folder, "cache")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        variables = {**os.environ, "QJUMP_MN_CACHE": str(cache)}

        def seconds(*words: str) -> float:
            began = time.monotonic()
            subprocess.run(["./bootstrap", *words], cwd=clone, env=variables, check=True, stdout=sys.stderr)
            return round(time.monotonic() - began, 1)

        build_s, first_s, again_s = seconds(), seconds(EXPERIMENT), seconds(EXPERIMENT)
        used = subprocess.check_output(["du", "-s", "--block-size=1", str(cache)], text=True)
        return FirstRun(len(os.sched_getaffinity(0)), build_s, first_s, again_s, int(used.split()[0]))


def sentences(run: FirstRun) -> str:
    """What README says of time and disk."""
    gigabytes = run.disk_bytes / 1e9
    return (
        f"On {run.cores} cores it took {minutes(run.build_s)} to install and build everything, once, and "
        f"{minutes(run.again_s)} to run Figure 3a.\nIt takes {gigabytes:.1f} GB of disk."
    )


def minutes(seconds: float) -> str:
    """In whole and half minutes."""
    halves = max(1, round(seconds / 30))
    return f"{halves / 2:g} minute{'' if halves == 2 else 's'}"


if __name__ == "__main__":
    main(sys.argv[1:])
