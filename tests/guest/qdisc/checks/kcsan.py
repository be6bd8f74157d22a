"""Switch on KCSAN, which is off after boot, and read its counters.

Run as a check, it waits until KCSAN reports a race in the function named. Assert: `found` is true.
"""
import subprocess
import sys
import time
from pathlib import Path

import rig

SWITCH = Path("/sys/kernel/debug/kcsan")
FOUND_S = 300  # enough on a busy host


def on() -> bool:
    """Switch KCSAN on; return False if this kernel does not have it."""
    rig.run("mount -t debugfs debugfs /sys/kernel/debug", check=False)
    if SWITCH.exists():
        SWITCH.write_text("on")
    return SWITCH.exists()


def counters() -> dict[str, int]:
    """Return KCSAN's counters, such as accesses watched and races seen, reported or not."""
    pairs = (line.split(":", 1) for line in SWITCH.read_text().splitlines() if ":" in line)
    return {name.strip(): int(count) for name, count in pairs if count.strip().isdecimal()}


def found(function: str) -> bool:
    deadline = time.monotonic() + FOUND_S
    while time.monotonic() < deadline:
        said = subprocess.run(["dmesg", "-t"], capture_output=True, text=True, check=True).stdout.splitlines()
        if any(line.startswith("BUG: KCSAN") and function in line for line in said):
            return True
        time.sleep(1)
    return False


if __name__ == "__main__":
    rig.report(on=on(), found=found(sys.argv[1]), counters=counters())
