"""The process that judges a run: whose it is, and when it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from qjump_mn.judging import judging


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo's part is root's")
def test_under_sudo_it_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    with judging(tmp_path) as process:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        process.kill()
    said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert (said["Uid"].split(), said["Gid"].split()) == (["12345"] * 4, ["12346"] * 4)
    assert said["Groups"].split() == []


def test_it_ends_with_what_waits_for_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), judging(tmp_path) as process:
        raise KeyboardInterrupt
    assert process.returncode == -signal.SIGKILL
