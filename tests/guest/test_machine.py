"""The guest as a machine: what goes in, what comes out, and what ends it. That it does the same thing twice
is in test_same_bits.py."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qjump_mn.errors import LostError, MachineError, UsageError
from qjump_mn.guest import Image, Job, Setup, Snapshot, run, snapshots
from qjump_mn.guest.machine import TAG, orphans
from tests.guest.checks import OF_DEBIAN
from tests.guest.strangers import Stranger

pytestmark = [pytest.mark.guest, pytest.mark.fresh]

# Most of the memory goes at once, as huge pages; touching a gigabyte page by page would take half a minute.
EAT = """
open("/proc/sys/vm/nr_hugepages", "w").write("350")
eaten = []
while True:
    eaten.append(bytearray(1 << 20))
"""


def ours(pid: int) -> list[int]:
    """The QEMUs of one harness."""
    wanted = f"{TAG}={pid}.".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_script_comes_back_with_its_files_and_exit_code(
    image: Image, booted: Snapshot, tmp_path: Path
) -> None:
    script = "import os, helper\nos.makedirs('a/b')\nopen('a/b/c', 'wb').write(bytes(range(256)) * 8192)\nprint(helper.word)\nraise SystemExit(3)"
    seen: list[str] = []
    script = "print('qjump-mn: half way', file=open('/dev/console', 'w'))\n" + script
    result = run(
        image,
        Job(script=script, files={"helper.py": "word = 'hello'"}),
        tmp_path / "out",
        snapshot=booted,
        progress=seen.append,
    )
    assert result.exit_code == 3
    assert (tmp_path / "out/stdout").read_text() == "hello\n"
    assert (tmp_path / "out/a/b/c").read_bytes() == bytes(range(256)) * 8192
    # On a busy machine it says, too, for which core it waits.
    assert [line for line in seen if not line.startswith("waits for a core")] == ["half way"]
    assert 0 < result.virtual_s < 5
    assert set(result.sha256) == {"qemu", "kernel", "initrd", "snapshot", "job", "result"}


def test_every_kernel_module_and_every_program_loads(image: Image, booted: Snapshot, tmp_path: Path) -> None:
    programs = (
        "ovs-vswitchd ovs-vsctl ovs-ofctl iperf3 ping tc ip ethtool tcpdump mnexec qjau ps pkill".split()
    )
    script = f"""
import shutil, subprocess, mininet.net, msgspec
subprocess.run(["modprobe", "-a", *{[*OF_DEBIAN, "sch_qjump", "sch_wire"]!r}], check=True)
raise SystemExit(" ".join(name for name in {programs!r} if not shutil.which(name)) or 0)
"""
    result = run(image, Job(script=script), tmp_path, snapshot=booted)
    assert (tmp_path / "stderr").read_text().strip() == ""
    assert result.exit_code == 0


def test_an_entry_gets_context_arguments_and_folder(image: Image, booted: Snapshot, tmp_path: Path) -> None:
    result = run(image, Job(entry="builtins:print", args={"n": 1}), tmp_path, snapshot=booted)
    assert result.exit_code == 0
    assert "{'answer': 42} {'n': 1} /tmp/out" in result.console.read_text()


def test_an_entry_that_raises_is_code_5_with_its_traceback(
    image: Image, booted: Snapshot, tmp_path: Path
) -> None:
    result = run(image, Job(entry="operator:truediv"), tmp_path, snapshot=booted)
    assert result.exit_code == 5
    assert "TypeError: truediv expected 2 arguments, got 3" in result.console.read_text()


def test_another_user_may_use_what_root_built(image: Image, booted: Snapshot, stranger: Stranger) -> None:
    code = (
        "import pickle, sys; from pathlib import Path; from qjump_mn.guest import *\n"
        "image = prepare(print); base = snapshot(image, Setup(entry='builtins:str', args={'answer': 42}), "
        "print)\n"
        "run(image, Job(script='pass'), Path(sys.stdin.readline()), snapshot=base); print(base.sha256)"
    )
    # It must find both in the cache: it may build neither.
    assert stranger.run(code, str(stranger.home / "out").encode()).strip().splitlines() == [booted.sha256]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import time; time.sleep(1000)", "overran its deadline in virtual time"),
        ("open('/proc/sysrq-trigger', 'w').write('c')", "kernel panicked"),
        (EAT, "ran out of memory"),
        ("import os; os.kill(os.getppid(), 9)", "ended without a result"),
    ],
)
def test_a_guest_that_does_not_get_through_is_lost(
    image: Image, booted: Snapshot, tmp_path: Path, script: str, reason: str
) -> None:
    with pytest.raises(LostError, match=reason) as caught:
        run(image, Job(script=script, virtual_deadline_s=20), tmp_path, snapshot=booted)
    last = (tmp_path / "console.log").read_text().replace("\r", "").rstrip().splitlines()[-1]
    assert last in str(caught.value)
    assert not ours(os.getpid())


def test_the_wall_deadline_holds_when_virtual_time_crawls(
    image: Image, booted: Snapshot, tmp_path: Path
) -> None:
    with pytest.raises(LostError, match="deadline of 3 s"):
        run(
            image,
            Job(script="while True: pass", virtual_deadline_s=10_000),
            tmp_path,
            snapshot=booted,
            wall_deadline_s=3,
        )
    assert not ours(os.getpid())


@pytest.mark.slow
def test_a_setup_that_fails_is_lost_and_leaves_no_snapshot(image: Image) -> None:
    with pytest.raises(LostError, match="No module named 'nowhere'"):
        snapshots.take(image, Setup(entry="nowhere:nothing"), print, memory_mb=512, wall_deadline_s=300)


def test_no_qemu_survives_a_harness_that_is_killed(image: Image, booted: Snapshot, tmp_path: Path) -> None:
    code = (
        "import pickle, sys, threading; from pathlib import Path; from qjump_mn.guest import run\n"
        "image, job, base, out = pickle.load(sys.stdin.buffer)\n"
        "threading.Thread(target=run, args=(image, job, Path(out)), kwargs={'snapshot': base}).start()"
    )
    job = Job(script="while True: pass", virtual_deadline_s=10_000)
    harness = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert harness.stdin is not None
    harness.stdin.write(pickle.dumps((image, job, booted, str(tmp_path))))
    harness.stdin.close()
    until = time.monotonic() + 30
    while not ours(harness.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert ours(harness.pid)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    until = time.monotonic() + 30
    while ours(harness.pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not ours(harness.pid)


def test_an_orphan_is_known_by_its_tag_alone() -> None:
    stray = subprocess.Popen(
        ["sleep", "60"], env={TAG: f"{os.getpid()}.1"}
    )  # a harness of our pid that started at boot
    try:
        until = time.monotonic() + 30
        while stray.pid not in orphans() and time.monotonic() < until:
            time.sleep(0.01)  # between fork and exec it still has our environment
        assert stray.pid in orphans()
    finally:
        stray.kill()
        stray.wait()


def test_bad_jobs_and_a_missing_qemu_are_one_sentence(image: Image, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(image, Job(), tmp_path)
    with pytest.raises(UsageError, match="too long"):
        run(image, Job(script=os.urandom(100_000).hex()), tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(MachineError, match="QEMU does not start"):
        run(
            Image(Path("/nonexistent"), image.kernel, image.initrd, {}, "", [], "", [], ""),
            Job(script="pass"),
            tmp_path,
        )
