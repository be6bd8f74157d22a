"""Write a release of the checkout's commit into a new folder, as root (it compiles the machine).

    python3 bench/release.py FOLDER

The folder gets wheels (qjump-mn, mininet-qos; qjump-sim for x86-64 and arm64), source
distributions, the machine files, an SPDX document of what all that is made of, RELEASE-NOTES.md
from CHANGELOG.md, and SHA256SUMS. The same commit gives the same bytes. The exit code is 2 if the
checkout or the folder cannot be used, and 3 if this machine cannot build it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import qjump_mn
from bench import sbom, simulator_wheel
from qjump_mn import cache
from qjump_mn.errors import MachineError, QJumpError, UsageError
from qjump_mn.install import provenance
from qjump_mn.toolbox import arm64, build, checkout, machines, processors, simulator

VERSION = qjump_mn.__version__
NOTES, SUMS = "RELEASE-NOTES.md", "SHA256SUMS"
MACHINES = {"x86_64": "qjump-mn-machine.tar.xz", "aarch64": "qjump-mn-machine-arm64.tar.xz"}
"""The machine files' names, by their hosts' processors."""


def main(arguments: list[str]) -> int:
    """Write the release; return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        release(Path(arguments[0]))
    except QJumpError as error:
        print(f"release: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def release(folder: Path) -> None:
    """Write the release into a new folder. Raises UsageError if that cannot be done from this
    checkout, and MachineError if something cannot be built."""
    commit = _commit()
    if changed := machines.differences(machines.read()):
        raise UsageError(
            f"the machine is not the locked one, {changed[0]} differs: run  qjump-mn machine lock"
        )
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made ({error.strerror}): name a new folder") from None
    epoch_s = _time_of(commit)
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(), VERSION)
    (folder / NOTES).write_text(notes)
    _build_python(folder, epoch_s)
    _build_simulator(folder, epoch_s)
    for processor in processors.ALL:
        _export_machine(folder, processor.name)
    document = sbom.document(VERSION, commit, epoch_s, sorted(folder.iterdir()))
    (folder / f"qjump-mn-{VERSION}.spdx.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / SUMS).write_text(sums(folder))


def notes_of(changelog: str, version: str) -> str:
    """Return the section of a version in the changelog; that of unreleased changes if there is
    none. Raises UsageError if there is neither."""
    for name in (version, "Unreleased"):
        pattern = rf"^## \[{re.escape(name)}\].*?\n(.*?)(?=^## |^\[[^]]+\]: |\Z)"
        if found := re.search(pattern, changelog, re.M | re.S):
            return f"# qjump-mn {version}\n\n{found[1].strip()}\n"
    raise UsageError(f"CHANGELOG.md has no section [{version}]: write it")


def sums(folder: Path) -> str:
    """Return the SHA-256 of each file in a folder, as sha256sum prints them."""
    paths = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{cache.hash_of_file(path)}  {path.name}\n" for path in paths)


def _commit() -> str:
    state = provenance.git(ROOT)
    if not state.commit or state.dirty:
        raise UsageError("the checkout differs from its commit: commit or remove the changes")
    return state.commit


def _time_of(commit: str) -> int:
    """Return when the commit was made, in Unix time."""
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    return int(subprocess.check_output([*git, "show", "-s", "--format=%ct", commit]))


def _build_python(folder: Path, epoch_s: int) -> None:
    """Build the pure Python packages from a copy of the commit's files."""
    with tempfile.TemporaryDirectory() as scratch:
        checkout.copy(Path(scratch))
        for source in (Path(scratch), Path(scratch, "mininet-qos")):
            options = ["-t", "sdist", "-t", "wheel", "-d", str(folder.absolute())]
            _call(["-m", "hatchling", "build", *options], source, epoch_s)


def _build_simulator(folder: Path, epoch_s: int) -> None:
    """Pack the simulator of each processor, as the toolbox compiled it."""
    identity = build.identity_of(simulator.recipe())
    for processor, package in (
        (processors.X86_64, simulator.package(_say)),
        (processors.AARCH64, arm64.simulator_package(_say)),
    ):
        simulator_wheel.write(folder, package, processor.name, identity, epoch_s)


def _export_machine(folder: Path, processor: str) -> None:
    """Write a machine file. Raises MachineError if it is not the locked one."""
    path = folder / MACHINES[processor]
    words = ["machine", "export", "--for", processor, str(path.absolute())]
    _call(["-m", "qjump_mn.run", *words], ROOT, None)
    if cache.hash_of_file(path) != machines.read().files[processor].sha256:
        raise MachineError(
            f"{path} is not the file that machine.lock names: compare their packages"
        )


def _call(words: list[str], folder: Path, epoch_s: int | None) -> None:
    """Run this Python in a folder. Raises MachineError if it fails."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables |= {} if epoch_s is None else {"SOURCE_DATE_EPOCH": str(epoch_s)}
    done = subprocess.run([sys.executable, "-P", *words], cwd=folder, env=variables, check=False)
    if done.returncode:
        raise MachineError(f"{' '.join(words[1:3])} ended with status {done.returncode}: see above")


def _say(line: str) -> None:
    print(f"release: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
