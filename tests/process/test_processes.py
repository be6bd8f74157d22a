"""What a process used, told when it ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from qjump_mn.process import processes

BUSY = "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until: pass\n"


def started(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", program])


def test_the_processors_time_and_the_memory_of_a_child_are_told() -> None:
    used = processes.wait(started(f"much = bytearray(100 << 20)\n{BUSY}raise SystemExit(3)"))
    assert used is not None and used.cpu_s >= 0.2 and used.memory_mb >= 100


def test_its_end_is_known_as_after_wait() -> None:
    with started("raise SystemExit(3)") as process:
        processes.wait(process)
        assert (process.returncode, process.wait()) == (3, 3)
    with started("import time; time.sleep(60)") as process:
        process.kill()
        processes.wait(process)
        assert process.returncode == -9


def test_one_whose_end_is_known_already_is_not_waited_for() -> None:
    with started("") as process:
        process.wait()
        assert processes.wait(process) is None


def test_one_that_does_not_end_is_an_error() -> None:
    with started("import time; time.sleep(60)") as process:
        with pytest.raises(subprocess.TimeoutExpired):
            processes.wait(process, 0.05)
        process.kill()


def test_process_of_another_pid_namespace_may_be_alive() -> None:
    """A container's pid says nothing here: what belongs to it is not removed."""
    ours = processes.tag(os.getpid()).rpartition(".")[2]
    assert processes.is_alive("4194304.1.1")
    assert not processes.is_alive(f"4194304.1.{ours}")
