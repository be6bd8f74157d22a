"""What a debug kernel has found once the given modules are removed; needs kmemleak and lockdep.

Assert: `before` and `after` (kmemleak's reports with and without the modules) are empty, `removed`
is true, and `lock_checker` is 1: lockdep disables itself after its first report, and after KASAN's.
"""
import sys
import time
from pathlib import Path

import rig

KMEMLEAK = Path("/sys/kernel/debug/kmemleak")


def leaks() -> str:
    time.sleep(6)  # kmemleak skips younger memory, whose pointer may still be in a register
    for _ in range(2):  # the first scan may run while a pointer is being moved
        KMEMLEAK.write_text("scan")
    return KMEMLEAK.read_text()


rig.run("mount -t debugfs debugfs /sys/kernel/debug")
before = leaks()
loaded = [name for name in sys.argv[1:] if Path("/sys/module", name).exists()]
removed = not loaded or rig.run(f"rmmod {' '.join(loaded)}", check=False).returncode == 0
statistics = dict(line.split(":", 1) for line in Path("/proc/lockdep_stats").read_text().splitlines() if ":" in line)
rig.report(before=before, after=leaks(), removed=removed, lock_checker=int(statistics[" debug_locks"]))
