"""Runs of a command that no guest ran, and a stand-in for what runs commands."""

from __future__ import annotations

import datetime
import io
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

import qjump_mn
from qjump_mn.install.provenance import Git
from qjump_mn.model.command import Command
from qjump_mn.results import command_directory
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.manifest import TrialRecord, sha256_of
from tests.support.synthetic import NOW

IMAGE = "1" * 64
SCRIPT = {"my.py": b"print('hello')\n", "lib/topology.py": b"HOSTS = 2\n"}
ARGV = ("python3", "my.py", "--n", "4")


def packed(files: Mapping[str, bytes]) -> bytes:
    """A folder as a tar file in canonical form."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    return content.getvalue()


def output(seed: int) -> dict[str, bytes]:
    """What the command leaves in raw/, by name."""
    return {
        "output": f"hello\nseed {seed}\nthe end\n".encode(),
        "ports.json": b"[]\n",
        "files/result.csv": f"seed\n{seed}\n".encode(),
    }


def job_sha256(command: Command, own: Path, seed: int) -> str:
    """The stand-in's hash of what the guest gets."""
    return sha256(f"{command.hash} {sha256_of(own / 'folder.tar')} {seed}".encode()).hexdigest()


def fill(out: Path, command: Command, own: Path, seed: int, left: Mapping[str, bytes]) -> None:
    """Write the files of a trial into its folder."""
    for name, content in left.items():
        path = out / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (out / "console.log").write_text("Linux\n")
    files = {f"raw/{name}": sha256(content).hexdigest() for name, content in left.items()}
    receipt = {"job": job_sha256(command, own, seed), "files": files}
    (out / "agent.json").write_bytes(msgspec.json.encode(receipt))


def make(
    out: Path,
    *,
    files: Mapping[str, bytes] = SCRIPT,
    own: Mapping[str, bytes] | None = None,
    now: datetime.datetime = NOW,
    image: str = IMAGE,
    done: Sequence[int] | None = None,
    left: Callable[[int], Mapping[str, bytes]] = output,
    **changes: object,
) -> CommandDirectory:
    """A command's run; ``changes`` are fields of the command, ``done`` the seeds that were run."""
    content = {"folder.tar": packed(files), **(own or {})}
    hashes = {
        field: sha256(content[name]).hexdigest()
        for name, field in command_directory.FILES.items()
        if name in content
    }
    command = replace(Command(argv=ARGV, folder_sha256=""), **hashes, **changes)
    run = command_directory.create(
        out,
        command,
        content,
        argv=("qjump-mn", "mn", *ARGV[1:]),
        git=Git(commit="0123456789abcdef0123456789abcdef01234567", dirty=False),
        versions={"qjump-mn": "0.1.0"},
        machine={"image": image},
        now=now,
    )
    for seed in command.seeds if done is None else done:
        fill(run.prepare(f"mn/{seed}"), command, run.own, seed, left(seed))
        run.finish(f"mn/{seed}", TrialRecord(status="done", exit_code=0, virtual_s=2.5, wall_s=1.5))
    run.close(now)
    return run


class Runner:
    """A stand-in for qjump_mn.mn.running, whose trials leave the same files each time."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.image, self.exit_code, self.loses = IMAGE, 0, 0
        self.left: Callable[[int], Mapping[str, bytes]] = output
        self.job_sha256 = job_sha256

    def prepare(self, command: Command, own: Path, progress: object) -> SimpleNamespace:
        return SimpleNamespace(identity=self.image)

    def trial(
        self,
        image: object,
        command: Command,
        own: Path,
        seed: int,
        out: Path,
        *,
        show: Callable[[bytes], None],
        stop: object = None,
    ) -> TrialRecord:
        self.ran.append(seed)
        if seed == self.loses:
            return TrialRecord(status="lost", exit_code=5, message="the guest [2] died")
        show(b"hello\n")
        fill(out, command, own, seed, self.left(seed))
        return TrialRecord(status="done", exit_code=self.exit_code, virtual_s=2.5, wall_s=1.5)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Put a stand-in in the place of what runs commands in the guest."""
    runner, name = Runner(), "qjump_mn.mn"
    package = sys.modules.get(name) or ModuleType(name)
    monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, f"{name}.running", runner)
    monkeypatch.setattr(package, "running", runner, raising=False)
    monkeypatch.setattr(qjump_mn, "mn", package, raising=False)
    return runner
