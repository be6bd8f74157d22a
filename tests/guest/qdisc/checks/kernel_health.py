"""What a debug kernel has found by the time the modules named are removed; needs kmemleak and lockdep.

Assert: `before` and `after` (kmemleak's report with the modules loaded, and without them) are empty, `removed` is true, and
`lock_checker` is 1: lockdep switches itself off with its first report, and with KASAN's.
"""
import sys
import time
from pathlib import Path

import rig

KMEMLEAK = Path("/sys/kernel/debug/kmemleak")


def leaks() -> str:
    time.sleep(6)  # younger memory is not looked at, for its pointer may still be in a register
    for _ in range(2):  # the first scan may run while an object changes hands
        KMEMLEAK.write_text("scan")
    return KMEMLEAK.read_text()


rig.run("mount -t debugfs debugfs /sys/kernel/debug")
before = leaks()
loaded = [name for name in sys.argv[1:] if Path("/sys/module", name).exists()]
removed = not loaded or rig.run(f"rmmod {' '.join(loaded)}", check=False).returncode == 0
statistics = dict(line.split(":", 1) for line in Path("/proc/lockdep_stats").read_text().splitlines() if ":" in line)
rig.report(before=before, after=leaks(), removed=removed, lock_checker=int(statistics[" debug_locks"]))
