"""A guest's input, output, and all the ways in which it ends.

test_same_bits.py has its repeatability, test_fence.py what it can reach, test_standstill.py its
clock.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from qjump_mn.errors import LostError, UsageError
from qjump_mn.guest import Image, Job, Setup, Stop, run
from qjump_mn.guest.cores import WAITS, StoppedError, core
from qjump_mn.process.processes import stat
from tests.guest.strangers import Stranger

pytestmark = [pytest.mark.guest, pytest.mark.fresh]

SPIN = Job(script="while True: pass", virtual_deadline_s=10_000)
SMALL_MB = 640
"""Little more than what the initramfs takes, so that it is soon full."""
EAT = """
eaten = []
while True:
    eaten.append(bytearray(1 << 20))
"""
# Process 1 finds its stack empty when its child, the agent, has ended.
PANIC = r"""
import os, re
maps = open("/proc/1/maps").read()
start, end = (int(word, 16) for word in re.search(r"(\w+)-(\w+) .*\[stack\]", maps).groups())
with open("/proc/1/mem", "r+b", buffering=0) as memory:
    memory.seek(start)
    memory.write(bytes(end - start))
os.kill(os.getppid(), 9)
"""


def processes() -> Iterator[tuple[str, str, str, str]]:
    """Of each its pid, state, parent and session, but of those that end meanwhile."""
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := stat(int(folder.name)):
            yield folder.name, fields[0], fields[1], fields[3]


def sessions(parent: int) -> set[str]:
    """Those of the processes that ``parent`` has started in sessions of their own: of guests, here."""
    mine = str(parent)
    return {pid for pid, _, ppid, session in processes() if (ppid, session) == (mine, pid)}


def members(wanted: set[str]) -> list[str]:
    """The processes of these sessions that run."""
    return [pid for pid, state, _, session in processes() if session in wanted and state != "Z"]


def test_a_script_comes_back_with_its_files_and_exit_code(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    script = """import os, helper
print("qjump-mn: half way", file=open("/dev/console", "w"))
os.makedirs("a/b")
open("a/b/c", "wb").write(bytes(range(256)) * 8192)
print(helper.word)
raise SystemExit(3)
"""
    seen: list[str] = []
    job = Job(script=script, files={"helper.py": "word = 'hello'"})
    result = run(image, booted, job, tmp_path / "out", progress=seen.append)
    assert result.exit_code == 3
    assert (tmp_path / "out/stdout").read_text() == "hello\n"
    assert (tmp_path / "out/a/b/c").read_bytes() == bytes(range(256)) * 8192
    # On a busy machine it says, too, for which core it waits.
    assert [line for line in seen if not line.startswith(WAITS)] == ["half way"]
    assert 0 < result.virtual_s < 5
    assert set(result.sha256) == {"kernel", "initrd", "setup", "job", "result"}


def test_an_entry_gets_context_arguments_and_folder(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    result = run(image, booted, Job(entry="builtins:print", args={"n": 1}), tmp_path)
    assert result.exit_code == 0
    assert "{'answer': 42} {'n': 1} /tmp/out" in result.console.read_text()


def test_exception_in_entry_is_exit_code_5_with_traceback(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    result = run(image, booted, Job(entry="operator:truediv"), tmp_path)
    assert result.exit_code == 5
    assert "TypeError: truediv expected 2 arguments, got 3" in result.console.read_text()


def test_clock_reports_the_jobs_time(image: Image, booted: Setup, tmp_path: Path) -> None:
    told: list[float] = []
    job = Job(script="import time\ntime.sleep(1)", tick_s=0.3)
    assert run(image, booted, job, tmp_path, clock=told.append).exit_code == 0
    assert told == [0.3, 0.6, 0.9]


def test_ordinary_user_can_use_what_root_built(image: Image, stranger: Stranger) -> None:
    code = (
        "import sys; from pathlib import Path; from qjump_mn.guest import *\n"
        "image = prepare(print)\n"
        "run(image, Setup(), Job(script='pass'), Path(sys.stdin.readline())); print(image.identity)"
    )
    # It must find all in the cache: it may build nothing.
    assert stranger.run(code, str(stranger.home / "out").encode()) == f"{image.identity}\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import time; time.sleep(1000)", "overran its deadline in virtual time"),
        (PANIC, "kernel panicked: Attempted to kill init"),
        (EAT, "ran out of memory"),
        ("import os; os.kill(os.getppid(), 9)", "ended without a result"),
    ],
)
def test_failed_guest_is_lost_with_the_reason(
    image: Image, booted: Setup, tmp_path: Path, script: str, reason: str
) -> None:
    job = Job(script=script, virtual_deadline_s=20)
    with pytest.raises(LostError, match=reason) as caught:
        run(image, booted, job, tmp_path, memory_mb=SMALL_MB)
    assert (tmp_path / "console.log").read_text().rstrip().splitlines()[-1] in str(caught.value)
    assert not sessions(os.getpid())


def test_wall_deadline_ends_a_guest_whose_time_stands_still(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    with pytest.raises(LostError, match="deadline of 3 s"):
        run(image, booted, SPIN, tmp_path, wall_deadline_s=3)
    assert not sessions(os.getpid())


def test_failed_setup_is_lost(image: Image, tmp_path: Path) -> None:
    with pytest.raises(LostError, match="No module named 'nowhere'"):
        run(image, Setup(entry="nowhere:nothing"), Job(script="pass"), tmp_path)


def test_stop_ends_guests_and_prevents_new_ones(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    stop = Stop()
    timer = threading.Timer(3, stop.now)
    timer.start()
    with pytest.raises(LostError):
        run(image, booted, SPIN, tmp_path, stop=stop)
    timer.join()
    assert not sessions(os.getpid())
    with pytest.raises(StoppedError):
        run(image, booted, SPIN, tmp_path, stop=stop)


@contextmanager
def taken_cores() -> Iterator[None]:
    with ExitStack() as stack:
        for _ in os.sched_getaffinity(0):
            stack.enter_context(core())
        yield


def test_waiting_for_a_core_is_reported(image: Image, booted: Setup, tmp_path: Path) -> None:
    seen: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        with taken_cores():
            running = pool.submit(
                run, image, booted, Job(script="pass"), tmp_path, progress=seen.append
            )
            time.sleep(3)
            assert not running.done()
        result = running.result()
    assert result.waited_s >= 2 and seen[0].startswith(WAITS)


def test_no_guest_process_survives_its_killed_harness(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    code = (
        "import pickle, sys, threading; from pathlib import Path; from qjump_mn.guest import run\n"
        "image, setup, job, out = pickle.load(sys.stdin.buffer)\n"
        "threading.Thread(target=run, args=(image, setup, job, Path(out))).start()"
    )
    job = Job(script="import time\nprint('qjump-mn: here')\n" + "while True: time.monotonic()\n")
    job = msgspec.structs.replace(job, virtual_deadline_s=10_000)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    harness = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment)
    assert harness.stdin is not None
    harness.stdin.write(pickle.dumps((image, booted, job, str(tmp_path))))
    harness.stdin.close()
    try:
        until = time.monotonic() + 60
        # The kernel, and what it has for programs: of one look, for while it boots some are there for a moment.
        while (
            len(found := members(started := sessions(harness.pid))) < 3 and time.monotonic() < until
        ):
            time.sleep(0.05)
        assert len(found) >= 3
    finally:
        harness.kill()
        harness.wait()
    until = time.monotonic() + 30
    while members(started) and time.monotonic() < until:
        time.sleep(0.01)
    assert not members(started)


def test_bad_jobs_and_missing_kernel_are_one_sentence(image: Image, tmp_path: Path) -> None:
    both, timeless = (
        Job(script="pass", entry="builtins:str"),
        Job(script="pass", virtual_deadline_s=0),
    )
    for job in (Job(), both, timeless):
        with pytest.raises(UsageError):
            run(image, Setup(), job, tmp_path)
    missing = msgspec.structs.replace(image, kernel=tmp_path / "linux")
    with pytest.raises(LostError, match="linux cannot be started: no such file or directory"):
        run(missing, Setup(), Job(script="pass"), tmp_path)
