"""The machine file for arm64 hosts: it is the locked one, has the guest of the one for x86-64, the
machine in which that runs there (test_outer.py), and a simulator whose module is for arm64. With
-rP pytest shows the processor's time of what the simulator leaves there: its programs are run here
by a translator of processors (qemu-user)."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import qjump_mn
from qjump_mn import cache, resolve, toolbox
from qjump_mn.guest import Image
from qjump_mn.toolbox import arm64, machine_file, machines, processors, simulator
from qjump_mn.toolbox import outer_machine as around
from qjump_mn.toolbox.machine_file import SIMULATOR
from tests.guest import trees
from tests.guest.command import succeeds
from tests.guest.test_same_bits import files_of
from tests.support import facts, result_store

pytestmark = [pytest.mark.guest, pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(3600)]

EM_AARCH64 = 183


def _bits(image: Image, **_: object) -> Iterable[str]:
    return [*result_store.describe(image), machines.read().files["aarch64"].sha256]


of_both = facts.of("bits of arm64", _bits)
"""For tests of what is so for x86-64's `image` and the machine for arm64."""


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Prints the processor's time that programs took in the block."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{what}: {taken_s:.1f} s of a processor")


@of_both
def test_the_file_for_arm64_is_the_locked_one_with_the_same_guest(
    image: Image, tmp_path: Path
) -> None:
    file = tmp_path / "machine.tar.xz"
    succeeds("machine", "export", "--for", "arm64", file)
    described = machine_file.unpack(file, tmp_path / "unpacked")
    assert {name: described.files[name] for name in image.sha256} == image.sha256
    machine = around.machine(print)
    for name in (machine_file.KERNEL, machine_file.INITRD):
        assert described.files[f"{machine_file.OUTER}/{name}"] == cache.hash_of_file(machine / name)
    (module,) = (tmp_path / "unpacked" / SIMULATOR).rglob("*.so")
    header = module.read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == EM_AARCH64
    lock = machines.read().files["aarch64"]
    assert (cache.hash_of_file(file), file.stat().st_size) == (lock.sha256, lock.size_bytes)


@of_both
def test_the_simulator_for_arm64_leaves_the_same_files(image: Image, tmp_path: Path) -> None:
    emulator = trees.needed(lambda progress: toolbox.made("arm64-emulator", progress))
    tree = trees.needed(lambda progress: toolbox.made("arm64-python", progress))
    trees.needed(lambda progress: toolbox.made(arm64.COMPILER, progress))
    assert tree.processor is processors.AARCH64
    translator = str(emulator.root / "usr/bin/qemu-aarch64")
    python = [translator, *tree.program("usr/bin/python3.13", "-S")]
    folder = tree.root / tree.processor.libraries
    python[python.index("--library-path") + 1] += f":{folder / 'blas'}:{folder / 'lapack'}"
    here, there = [simulator.package(print)], [arm64.simulator_package(print)]
    there.append(tree.root / "usr/lib/python3/dist-packages")
    for number, trial in enumerate(resolve.plan("fig9", "smoke", []).trials()[::7]):
        text = msgspec.json.encode(trial)
        ours, theirs = tmp_path / f"{number}", tmp_path / f"{number}-there"
        with measured("x86-64"):
            simulated([sys.executable], here, ours, text)
        with measured("arm64"):
            simulated(python, there, theirs, text, PYTHONHOME=str(tree.root / "usr"))
        assert (found := files_of(ours)) and files_of(theirs) == found


def simulated(python: list[str], places: list[Path], out: Path, text: bytes, **more: str) -> None:
    """Run a trial by this Python, which imports from these places and the checkout."""
    path = os.pathsep.join(map(str, (*places, Path(qjump_mn.__file__).parents[1])))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, **more}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    argv = [*python, "-m", "qjump_mn.simulation", str(out)]
    done = subprocess.run(argv, input=text, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
