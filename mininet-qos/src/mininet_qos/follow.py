"""Open a link's gate as its trace says: ``python3 follow.py < JSON``.

The JSON has the frames that may leave in each ms, and tc's lines for each number of them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time


def main() -> None:
    """Follow the trace until the interface is gone."""
    trace, lines = json.load(sys.stdin)
    tc = subprocess.Popen(["tc", "-batch", "-"], stdin=subprocess.PIPE, text=True)
    assert tc.stdin
    start, ms = time.monotonic(), 0
    while True:
        ms += 1
        count = trace[ms % len(trace)]
        if count:
            time.sleep(max(0.0, start + ms / 1000 - time.monotonic()))
            tc.stdin.write("".join(f"{line}\n" for line in lines[str(count)]))
            tc.stdin.flush()


if __name__ == "__main__":
    # tc ends at the first line that fails.
    with contextlib.suppress(BrokenPipeError):
        main()
