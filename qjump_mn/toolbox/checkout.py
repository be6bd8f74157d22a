"""List and copy the checkout's own files, for use on another computer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.install import environment, installation
from qjump_mn.toolbox import machines
from qjump_mn.toolbox.tree import host_program


def files() -> dict[str, Path]:
    """Return the files that git would commit, by name, without machine files and wheels.

    Raises MachineError if there is no git or no repository.
    """
    root = environment.CHECKOUT
    ignored = [f"--exclude={pattern}" for pattern in (machines.BESIDE, installation.WHEELS)]
    argv = [
        host_program("git"),
        "-C",
        str(root),
        "ls-files",
        "-coz",
        "--exclude-standard",
        *ignored,
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise MachineError(f"{root} is no checkout that git knows: {done.stderr.strip()}")
    return {
        name: root / name
        for name in sorted(done.stdout.split("\0"))
        if name and (root / name).is_file()
    }


def copy(folder: Path) -> None:
    """Copy the files into the folder. Raises as :func:`files` does."""
    for name, path in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)
