"""The machine for arm64 hosts gives the bits of the one for x86-64: its programs are run here by a translator of
processors (qemu-user), about 75 times slower.

Boot, memory of a snapshot, and forks in both directions are compared; and what the simulator leaves. With -rP
pytest shows the processor's time of each, as docs/machine.md has it.
"""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

import qjump_mn
from qjump_mn import cache, toolbox
from qjump_mn.backends import guest as backend
from qjump_mn.guest import Image, Job, Result, Snapshot, images, run, snapshot, snapshots, store
from qjump_mn.guest.cores import core
from qjump_mn.guest.machine import Stop, machine
from qjump_mn.guest.qmp import Qmp
from qjump_mn.model import resolve
from qjump_mn.steps.compile import trial_steps
from qjump_mn.toolbox import Tree, arm64, machine_file, machines, processors, simulator
from tests import facts
from tests.guest import trees
from tests.guest.test_same_bits import PROBE, files_of

pytestmark = [pytest.mark.guest, pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(6 * 3600)]

DEADLINE_S = 5 * 3600.0
SHORT = ["warmup=100ms", "duration=100ms"]
"""Of an arm: what is left is its set-up, 6 s of a processor without the translator."""

Unpacked = Callable[[], Image]


def _bits(image: Image, **_: object) -> Iterable[str]:
    return [*store.code(), *store.described(image), machines.read().files["aarch64"].sha256]


of_both = facts.of("bits of arm64", _bits)
"""For tests of what is so for x86-64's `image` and the machine for arm64."""


@pytest.fixture(scope="module")
def translator() -> Iterator[None]:
    """Starts the programs of trees for arm64 by the translator, and gives them time."""
    tree, program = trees.needed(lambda progress: toolbox.made("arm64-emulator", progress)), Tree.program

    def translated(self: Tree, path: str, *arguments: str) -> list[str]:
        argv = program(self, path, *arguments)
        return (
            [str(tree.root / "usr/bin/qemu-aarch64"), *argv] if self.processor is processors.AARCH64 else argv
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tree, "program", translated)
        patch.setattr(import_module("qjump_mn.guest.machine"), "Qmp", functools.partial(Qmp, deadline_s=1800))
        yield


@pytest.fixture(scope="module")
def unpacked(translator: None, tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    """The image of the machine for arm64, from its file, which is written now if a test asks for it."""

    @functools.cache
    def made() -> Image:
        folder = tmp_path_factory.mktemp("arm64")
        file = folder / "machine.tar.xz"
        argv = [sys.executable, "-m", "qjump_mn.run", "machine", "export", "--for", "arm64", str(file)]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lock = machines.read().files["aarch64"]
        assert (cache.hash_of_file(file), file.stat().st_size) == (lock.sha256, lock.size_bytes)
        described = machine_file.unpack(file, folder / "unpacked")
        (folder / "unpacked" / machine_file.FACTS).write_bytes(msgspec.json.encode(described))
        return images._of_machine(folder / "unpacked")

    return made


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Prints the processor's time that programs took in the block."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{what}: {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s of a processor"
    )


def both(image: Image, theirs: Image, job: Job, ready: Snapshot, folder: Path) -> None:
    """Run a job in forks of a snapshot on both; what they leave must be the same."""
    with measured("x86-64"):
        here = run(image, job, folder / "here", snapshot=ready)
    with measured("arm64"):
        there = run(theirs, job, folder / "there", snapshot=ready, wall_deadline_s=DEADLINE_S)
    assert told(there) == told(here)
    assert files_of(folder / "there") == files_of(folder / "here")


def told(result: Result) -> tuple[object, ...]:
    """What must be the same on every host."""
    assert result.exit_code == 0
    return result.sha256["result"], result.virtual_s, result.console.read_text()


@of_both
def test_the_file_for_arm64_is_the_locked_one_and_has_the_same_guest(
    image: Image, unpacked: Unpacked
) -> None:
    theirs = unpacked()
    assert theirs.identity == image.identity and theirs.qemu_version == image.qemu_version
    assert [theirs.sha256[name] == image.sha256[name] for name in ("kernel", "initrd", "qemu")] == [
        True,
        True,
        False,
    ]
    for name in machine_file._FIRMWARE:
        assert (theirs.tree / name).read_bytes() == (image.tree / name).read_bytes()
    assert Tree(theirs.tree).processor is processors.AARCH64


@of_both
def test_a_snapshot_of_x86_64_goes_on_on_arm64(
    image: Image, unpacked: Unpacked, booted: Snapshot, tmp_path: Path
) -> None:
    both(image, unpacked(), Job(script=PROBE, seed=1), booted, tmp_path)


@of_both
def test_a_machine_that_arm64_booted_is_the_same_and_goes_on_on_x86_64(
    image: Image, unpacked: Unpacked, booted: Snapshot, tmp_path: Path
) -> None:
    theirs = unpacked()
    with core() as number, measured("arm64"):
        start = functools.partial(machine, core=number, stop=Stop())
        snapshots._bring_up(theirs, booted.setup, tmp_path, print, booted.memory_mb, DEADLINE_S, start)
    made = msgspec.json.decode((tmp_path / "facts.json").read_bytes(), type=snapshots._Facts)
    assert (made.sha256, made.reproducible) == (booted.sha256, True)
    assert (tmp_path / "console").read_text() == (booted.path / "console").read_text()
    job, brought = Job(script=PROBE, seed=1), msgspec.structs.replace(booted, path=tmp_path)
    ours = run(image, job, tmp_path / "ours", snapshot=booted)
    assert told(run(image, job, tmp_path / "brought", snapshot=brought)) == told(ours)


@pytest.mark.parametrize("arm", ["idle", "contended"])
@of_both
def test_an_arm_of_figure_3a_has_the_same_results(
    arm: str, image: Image, unpacked: Unpacked, tmp_path: Path
) -> None:
    theirs, plan = unpacked(), resolve.plan("fig3a", "smoke", SHORT)
    trial = next(trial for trial in plan.trials() if trial.arm.name == arm)
    job = Job(
        entry=backend.RUN_TRIAL,
        args={"steps": msgspec.to_builtins(trial_steps(trial))},
        seed=trial.seed,
        virtual_deadline_s=trial.background_ns / 1e9 + backend.VIRTUAL_MARGIN_S,
    )
    ready = snapshot(image, backend.setup(trial.network.skeleton()), print)
    both(image, theirs, job, ready, tmp_path)


@of_both
def test_the_simulator_for_arm64_leaves_the_same_files(
    image: Image, translator: None, tmp_path: Path
) -> None:
    tree = trees.needed(lambda progress: toolbox.made("arm64-python", progress))
    trees.needed(lambda progress: toolbox.made(arm64.COMPILER, progress))
    python = tree.program("usr/bin/python3.13", "-S")
    folder = tree.root / tree.processor.libraries
    python[python.index("--library-path") + 1] += f":{folder / 'blas'}:{folder / 'lapack'}"
    here, there = [simulator.package(print)], [arm64.simulator_package(print)]
    there.append(tree.root / "usr/lib/python3/dist-packages")
    for number, trial in enumerate(resolve.plan("fig9", "smoke", []).trials()[::7]):
        text, ours, theirs = msgspec.json.encode(trial), tmp_path / f"{number}", tmp_path / f"{number}-there"
        with measured("x86-64"):
            simulated([sys.executable], here, ours, text)
        with measured("arm64"):
            simulated(python, there, theirs, text, PYTHONHOME=str(tree.root / "usr"))
        assert (found := files_of(ours)) and files_of(theirs) == found


def simulated(python: list[str], places: list[Path], out: Path, text: bytes, **more: str) -> None:
    """Run a trial by this Python, which imports from these places and the checkout."""
    path = os.pathsep.join(map(str, (*places, Path(qjump_mn.__file__).parents[1])))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}
    argv = [*python, "-m", "qjump_mn.simulation", str(out)]
    done = subprocess.run(argv, input=text, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
