"""Other users of this machine, who may run guests too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.result_store import VARIABLE


@dataclass
class Stranger:
    """Another user (the same one without root) with a folder of their own and a Python that they
    may run."""

    home: Path
    python: str
    user: str | None

    def run(self, code: str, given: bytes) -> str:
        """Run Python code as that user with `given` as its input; returns what it printed."""
        environment = {**os.environ, **dict.fromkeys(("HOME", "TMPDIR"), str(self.home))}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        del environment[VARIABLE]  # the session's folder is not theirs
        argv, groups = [self.python, "-c", code], () if self.user else None
        return subprocess.check_output(
            argv, input=given, env=environment, user=self.user, extra_groups=groups
        ).decode()


@contextmanager
def made() -> Iterator[Stranger]:
    """Skips where no Python that has what we need may be run by another user."""
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as folder:
        if user:
            shutil.chown(folder, user)
        for python in (sys.executable, "/usr/bin/python3"):
            someone = Stranger(Path(folder), python, user)
            with suppress(OSError, subprocess.CalledProcessError):
                someone.run("import qjump_mn.guest", b"")
                yield someone
                return
        pytest.skip(f"neither {sys.executable} nor /usr/bin/python3 can import qjump_mn as {user}")
