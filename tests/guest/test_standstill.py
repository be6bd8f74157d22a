"""Linux as a program whose clock stands still: what its patches promise, in instances of it.

A job is a Python program in an instance with Debian's packages and nothing of ours: it reads nothing, its
standard output is what comes out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import LostError
from qjump_mn.guest import instance
from qjump_mn.toolbox import cpio, image, um
from qjump_mn.toolbox.cpio import Node
from tests.guest import trees

_INIT = b"""#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8 PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
exec >/dev/host-log 2>&1
sleep 0.05 # until the first ticks, timers are no finer than these
cat /dev/host-in >/tmp/job.py
python3 /tmp/job.py >/dev/host-out || echo "the job ended with status $?"
python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)' # RB_POWER_OFF
"""

# What sleeps of a job took, in ns.
_SLEEPS = """
import json, threading, time
def slept(ns):
    began = time.monotonic_ns()
    time.sleep(ns / 1e9)
    return time.monotonic_ns() - began
open("/proc/self/timerslack_ns", "w").write("1")
print(json.dumps([slept(ns) for ns in (51, 1_000, 123_457, 10_000_000) for _ in range(20)]))
"""

_SPIN = """
import time
time.sleep(0.01)
while True:
    pass
"""

_SPIN_FOR_THREAD = """
import threading, time
flag = []
threading.Thread(target=lambda: (time.sleep(0.01), flag.append(1))).start()
while not flag:
    pass
"""

Run = Callable[..., instance.Outcome]


@pytest.fixture(scope="module")
def initrd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = trees.needed(toolbox.toolbox)
    path = tmp_path_factory.mktemp("standstill") / "initrd"
    with path.open("wb") as file, image.base(tree, print).open("rb") as base:
        file.writelines(iter(lambda: base.read(1 << 20), b""))
        file.writelines(cpio.archive({"init": Node.file(_INIT, 0o755)}))
    return path


@pytest.fixture(scope="module")
def run(initrd: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    trees.needed(lambda progress: toolbox.made(um.LOCK, progress))
    kernel = um.kernel(print)

    def one(job: str, *words: str, **options: Any) -> instance.Outcome:
        folder = tmp_path_factory.mktemp("instance")
        return instance.run(kernel, initrd, job.encode(), folder, words=words, **options)

    return one


def values(outcome: instance.Outcome) -> Any:
    data = outcome.out.read_bytes()
    assert data, outcome.log.read_text()
    return json.loads(data)


def test_code_takes_no_time(run: Run) -> None:
    job = """
import json, time
readings = [time.monotonic_ns() for _ in range(1000)]
began = time.monotonic_ns()
sum(number * number for number in range(1_000_000))
print(json.dumps([readings[-1] - readings[0], time.monotonic_ns() - began]))
"""
    readings, sums = values(run(job))
    assert readings == 999 * 10  # a reading of the clock takes 10 ns
    assert sums == 10


def test_a_sleep_takes_what_was_asked_for(run: Run) -> None:
    asked = [ns for ns in (51, 1_000, 123_457, 10_000_000) for _ in range(20)]
    late = {took - ns for took, ns in zip(values(run(_SLEEPS)), asked, strict=True)}
    # Two readings of the clock of this program's, and Python's own two for its deadline; the slack is 1 ns.
    assert all(0 < one <= 60 for one in late), late


def test_clocks_and_periodic_timers_keep_step(run: Run) -> None:
    job = """
import ctypes, json, struct, time
clocks = (time.CLOCK_MONOTONIC, time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)
began = [time.clock_gettime_ns(clock) for clock in clocks]
time.sleep(0.3)
passed = [time.clock_gettime_ns(clock) - ns for clock, ns in zip(clocks, began)]
libc = ctypes.CDLL(None)
timer = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
began = time.monotonic_ns()
libc.timerfd_settime(timer, 0, struct.pack("4q", 0, 250_000, 0, 250_000), None)
with open(timer, "rb", buffering=0) as file:
    print(json.dumps([passed, [(file.read(8), time.monotonic_ns() - began)[1] for _ in range(40)]]))
"""
    passed, times = values(run(job))
    assert all(0 <= ns - 300_000_000 <= 100_000 for ns in passed) and len(passed) == 3
    assert max(passed) - min(passed) <= 60
    assert all(0 <= at - 250_000 * number <= 60 for number, at in enumerate(times, 1)), times


def test_declared_times_are_drawn_from_the_seed(run: Run) -> None:
    def took(*words: str) -> list[int]:
        return list(values(run(_SLEEPS, *words)))

    nothing = took()
    wakes = took("time_travel.wake_ns=2000", "time_travel.seed=1")
    extra = [one - other for one, other in zip(wakes, nothing, strict=True)]
    assert all(-60 <= ns <= 4_060 for ns in extra)
    assert 1_000 < sum(extra) / len(extra) < 3_000 and len(set(extra)) > 40
    assert took("time_travel.wake_ns=2000", "time_travel.seed=1") == wakes
    calls = took("time_travel.syscall_ns=500", "time_travel.seed=1")
    assert sum(calls) > sum(nothing) + 80 * 250


def test_a_seed_of_the_parameter_moves_no_bring_up(run: Run) -> None:
    """Written once it runs, it changes nothing before, unlike one on the command line."""
    job = """
import os
before = os.urandom(16).hex()
open("/sys/module/time_travel/parameters/seed", "w").write("%d")
open("/sys/module/time_travel/parameters/wake_ns", "w").write("2000")
import time
began = time.monotonic_ns()
for _ in range(10):
    time.sleep(0.001)
print(before, time.monotonic_ns() - began)
"""
    one, same, other = (run(job % seed).out.read_bytes().split() for seed in (1, 1, 2))
    assert one == same
    assert one[0] == other[0] and one[1] != other[1]


def test_nothing_of_the_host_is_seen(run: Run) -> None:
    job = """
import os, pathlib, json
cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
print(json.dumps([cpuinfo, list(os.uname()), sorted(os.listdir("/")), sorted(os.listdir("/dev"))]))
"""
    cpuinfo, uname, _, devices = values(run(job))
    assert "flags\t\t:\n" in cpuinfo and "host\t\t: \n" in cpuinfo
    assert os.uname().release not in uname and os.uname().nodename not in uname
    ours = {name for name in devices if name.startswith("host-")}
    assert ours == {"host-in", "host-log", "host-out"}


@pytest.mark.parametrize("job", [_SPIN, _SPIN_FOR_THREAD], ids=["alone", "for another thread"])
def test_a_program_that_spins_ends_the_run_by_name(run: Run, job: str) -> None:
    spins = r"panicked: time-travel: python3\[\d+\] took 2 s of processor"
    with pytest.raises(LostError, match=spins):
        run(job, "time_travel.spin_s=2", wall_deadline_s=120)


def test_a_loop_of_calls_that_succeed_ends(run: Run) -> None:
    """As a server of iperf3's does that reads the end of a stream until another thread stops it."""
    job = """
import os, threading, time
done = []
threading.Thread(target=lambda: (time.sleep(0.001), done.append(time.monotonic_ns()))).start()
began, empty = time.monotonic_ns(), os.open("/dev/null", os.O_RDONLY)
while not done:
    os.read(empty, 1)
print(done[0] - began)
"""
    assert 1_000_000 < int(run(job).out.read_bytes()) < 10_000_000


def test_who_polls_lets_others_run_after_a_program_that_yields(run: Run) -> None:
    """Mininet polls its shells; iputils' ping yields while it waits 10 ms or less."""
    job = """
import os, time
if not os.fork():
    for _ in range(100_000):
        os.sched_yield()
    os._exit(0)
os.wait()
for _ in range(10_000):
    time.sleep(1e-6)
began, child = time.monotonic_ns(), os.fork()
if not child:
    os._exit(0)
while not os.waitpid(child, os.WNOHANG)[0]:
    pass
print(time.monotonic_ns() - began)
"""
    assert int(run(job, wall_deadline_s=120).out.read_bytes()) < 10_000_000
