"""Copies of the checkout that only say how they were called, caches that have this Python's
environment."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.install import environment

STUB = """
import sys
from qjump_mn.install import environment
if __name__ == "__main__":
    environment.ensure()
def main():
    import json, os
    told = {"argv": sys.argv[1:], "prefix": sys.prefix, "cwd": os.getcwd(), "path": sys.path}
    print(json.dumps({**told, "modules": sorted(sys.modules)}))
if __name__ == "__main__":
    main()
"""


def copy(folder: Path, lock: str | None = None) -> Path:
    """What bootstrap needs of the checkout in `folder`, with a command line that prints what it was
    given."""
    package = folder / "qjump_mn"
    for name in ("cache", "executor", "install", "process"):
        (package / name).mkdir(parents=True)
    for name in tuple(
        (
            "__init__.py errors.py cache/__init__.py install/__init__.py process/__init__.py "
            "cache/holds.py cache/sums.py syntax.py install/environment.py process/heartbeat.py "
            "install/launcher.py process/variables.py install/installation.py "
            "executor/__init__.py executor/errors.py"
        ).split()
    ):
        shutil.copy(environment.CHECKOUT / "qjump_mn" / name, package / name)
    shutil.copy(environment.CHECKOUT / "bootstrap", folder)
    (folder / "requirements.lock").write_text(
        lock if lock is not None else environment.LOCK.read_text()
    )
    (package / "run.py").write_text(STUB)
    return folder


def small_lock() -> str:
    """The real lock, but one small package only, and pip."""
    return locked("msgspec") + locked("pip")


def locked(name: str) -> str:
    """What the real lock says of one package."""
    found = re.search(rf"^{name}==.*?(?=^\S)", environment.LOCK.read_text(), re.M | re.S)
    assert found
    return found[0]


def warm_cache(folder: Path) -> Path:
    """A cache in which this very Python stands where the environment of the checkout should be."""
    (folder / "environment").mkdir(parents=True)
    (folder / "environment" / environment._key(sys.version_info[1])).symlink_to(sys.prefix)
    return folder


def said(output: str) -> dict[str, list[str]]:
    """What the copy's command line printed."""
    told: dict[str, list[str]] = json.loads(output.splitlines()[-1])
    return told


def installed_python(minor: int) -> str:
    """A Python of this version, on the PATH or among pyenv's; the test is skipped where there is
    none."""
    names = [
        shutil.which(f"python3.{minor}"),
        *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"),
    ]
    for name in names:
        if (
            name
            and subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return str(name)
    pytest.skip(f"this machine has no python3.{minor}")
