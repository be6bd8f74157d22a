"""Wrapped programs die with their parent and stay on their core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qjump_mn.errors import MachineError
from qjump_mn.process import die_with_parent, processes
from qjump_mn.process.die_with_parent import wrap_command

PARENT = """
import subprocess
from qjump_mn.process.die_with_parent import wrap_command
child = subprocess.Popen(wrap_command(["sleep", "60"], {core}), start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.parametrize("core", [None, min(os.sched_getaffinity(0))])
def test_child_dies_with_a_killed_parent(core: int | None) -> None:
    code = PARENT.format(core=core)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        deadline = time.monotonic() + 10
        while (
            Path(f"/proc/{pid}/comm").read_text().strip() != "sleep" and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        tag = processes.tag(pid)
        parent.send_signal(signal.SIGKILL)
    while processes.is_alive(tag) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert tag and not processes.is_alive(tag)


def test_nothing_starts_without_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 4_194_303)
    argv = wrap_command(["touch", str(tmp_path / "started")])
    assert subprocess.run(argv, check=False).returncode == 1
    assert not (tmp_path / "started").exists()


def test_core_is_the_only_one_and_wakeups_take_no_turn() -> None:
    core = max(os.sched_getaffinity(0))
    code = "import os; print(os.sched_getaffinity(0), os.sched_getscheduler(0) == os.SCHED_BATCH)"
    for number, expected in (
        (core, f"{{{core}}} True"),
        (None, f"{os.sched_getaffinity(0)} False"),
    ):
        argv = wrap_command([sys.executable, "-c", code], number)
        assert subprocess.check_output(argv, text=True).strip() == expected


def test_arguments_and_environment_arrive_as_they_are() -> None:
    code = "import os, sys; print(sys.argv[1:], os.environ['WORD'])"
    words = ["-x", "", "a b", "$PPID", "--", "'"]
    said = subprocess.check_output(
        wrap_command([sys.executable, "-c", code, *words]), text=True, env={"WORD": "*  *"}
    )
    assert said == f"{words} *  *\n"


def test_missing_program_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(die_with_parent, "_path", {"taskset": "/usr/bin/taskset"}.get)
    assert die_with_parent.missing() == ["setpriv", "chrt"]
    with pytest.raises(MachineError, match=r"^setpriv is not installed: install util-linux$"):
        wrap_command(["true"])
