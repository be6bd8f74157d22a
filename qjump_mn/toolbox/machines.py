"""Find the reference machine, which machine.lock names, and take it from a file or an address.

There is a file for each kind of host, because the simulator in it is compiled for that processor.
machine.lock has the files' hashes, the hash of each input they were made from, and addresses. If an
input is different now, this checkout has another machine, which is built from packages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.install import environment
from qjump_mn.toolbox import (
    arm64,
    build,
    download,
    machine_file,
    origins,
    overlay,
    processors,
    selection,
    simulator,
    um,
)
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.machine_file import FACTS, Facts

LOCK = Path(__file__).with_name("machine.lock")
VARIABLE = "QJUMP_MN_MACHINE"
"""A machine file, or its address."""

BESIDE = "qjump-mn-machine*.tar.xz"
"""What a machine file is called that lies in the checkout or beside it, or in the current folder if
pip installed the package."""

_LOCKS = {"Debian's packages": toolbox.NAME, "Debian's packages for the kernel": um.LOCK}
_SIMULATOR = "simulator"
_NEEDS_BYTES = 300 << 20
Progress = Callable[[str], None]


class LockedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file for one kind of host: ``made_of`` has hashes of inputs that only it has, ``places``
    addresses of it."""

    sha256: str
    size_bytes: int
    made_of: dict[str, str] = {}
    places: tuple[str, ...] = ()


class MachineLock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of machine.lock: ``files`` by the host's processor; ``made_of`` as
    :func:`made_of` returns it.

    ``image`` identifies the machine in a run: the same on every host, also if built from packages.
    """

    files: dict[str, LockedFile]
    made_of: dict[str, str]
    image: str

    @property
    def sha256(self) -> str:
        """The hash of this host's file; "none" if there is no such file."""
        file = self.files.get(processors.here())
        return file.sha256 if file else "none"

    @property
    def size_bytes(self) -> int:
        """The size of this host's file; 0 if there is no such file."""
        file = self.files.get(processors.here())
        return file.size_bytes if file else 0


def read() -> MachineLock:
    """Return the content of machine.lock. Raises MachineError if it cannot be read."""
    try:
        return msgspec.json.decode(LOCK.read_bytes(), type=MachineLock)
    except (OSError, msgspec.MsgspecError) as error:
        raise MachineError(f"{LOCK} cannot be read: {error}") from error


def made_of() -> dict[str, str]:
    """Return a hash of each input of the machine, by name, without the inputs' prose.

    The code that builds from these inputs does not count, because the image's identity has what it
    makes.
    """
    locked = {what: cache.hash_of(locks.read(lock).identity) for what, lock in _LOCKS.items()}
    return (
        locked
        | overlay.identities()
        | {
            "Linux": um.identity(),
            _SIMULATOR: build.identity_of(simulator.recipe()),
            "the guest's choice of packages' files": selection.identity(),
        }
    )


def differences(lock: MachineLock) -> list[str]:
    """Return the names of this host's inputs that differ from the reference machine's."""
    now, then = made_of(), lock.made_of
    if processors.here() == processors.AARCH64.name and (file := lock.files.get(processors.here())):
        now, then = now | arm64.made_of(), then | file.made_of
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))


def reference(progress: Progress = lambda line: None) -> Path | None:
    """Return the unpacked reference machine, from the cache or a file; None if there is neither.

    A file is used if one is named, or if nothing was built from packages yet. Raises MachineError
    as :func:`given` does.
    """
    wants_file = bool(os.environ.get(VARIABLE)) or toolbox.found() is None
    return found() or (given(progress) if wants_file else None)


def is_at_hand() -> bool:
    """Return whether there is a machine, a toolbox (the longest build), or a machine file."""
    is_given = bool(os.environ.get(VARIABLE)) or any(_beside())
    return is_given or toolbox.found() is not None or found() is not None


def simulator_package(progress: Progress = lambda line: None) -> Path:
    """Return the folder from which Python imports `qjump_sim`: that of pip's wheel, else the
    reference machine's, else built now.

    Raises MachineError as :func:`reference` and `simulator.package` do.
    """
    with cache.sentences():
        if wheel := simulator.installed():
            return wheel
        machine = reference(progress)
        return machine / machine_file.SIMULATOR if machine else simulator.package(progress)


def simulator_identity() -> str:
    """Return what identifies this checkout's simulator in a run."""
    return build.identity_of(simulator.recipe())


def locked_simulator() -> str:
    """Return what identifies the reference machine's simulator."""
    return read().made_of.get(_SIMULATOR, "")


def found() -> Path | None:
    """Return the unpacked reference machine if it is in the cache and belongs to this checkout."""
    lock = read()
    path = cache.find("machine", lock.sha256)
    return path if path and not differences(lock) else None


def packages(lock: Lock) -> Path | None:
    """Return the archive of a lock's packages, if it is in the unpacked reference machine."""
    machine = found()
    path = machine and machine / machine_file.packages_of(lock)
    return path if path and path.is_file() else None


def given(progress: Progress = lambda line: None) -> Path | None:
    """Unpack the reference machine from a file into the cache, and return its folder.

    Returns None if there is no file, or if this checkout has another machine. Raises MachineError
    if the file in $QJUMP_MN_MACHINE is not the reference machine.
    """
    lock = read()
    if differences(lock):
        return None
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return taken(chosen, progress)
    file, refusals = lock.files.get(processors.here()), []
    for place in (*_beside(), *(file.places if file else ())):
        try:
            return taken(place, progress)
        except MachineError as error:
            refusals.append(str(error))
    for refusal in refusals:
        progress(refusal)
    return None


def taken(place: str, progress: Progress = lambda line: None) -> Path:
    """Unpack the reference machine from a path or an address into the cache. Raises MachineError
    for any other file."""
    lock = read()

    def fill(folder: Path) -> None:
        # In the folder itself, which is swept if we are killed.
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            path = (
                _fetched(place, Path(scratch, "file"), lock, progress)
                if "://" in place
                else Path(place)
            )
            _check(path, place, lock)
            facts = machine_file.unpack(path, folder)
        (folder / FACTS).write_bytes(msgspec.json.encode(facts))
        origins.note(folder, f"the file {place}")

    progress(f"takes the machine from {place}")
    return cache.artefact("machine", lock.sha256, fill, needs_bytes=_NEEDS_BYTES, progress=progress)


def facts(folder: Path) -> Facts:
    """Return the facts of an unpacked machine. Raises MachineError if they cannot be read."""
    try:
        return msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)
    except (OSError, msgspec.MsgspecError) as error:
        raise MachineError(f"{folder} is damaged: {cache.VERIFY}") from error


def name_reference(paths: Mapping[str, Path], image: str) -> MachineLock:
    """Write machine.lock for machine files made from today's inputs, by the hosts' processors.

    ``image`` identifies the machine in a run.
    """
    before = read().files if LOCK.exists() else {}
    own = {processors.AARCH64.name: arm64.made_of()}
    files = {
        name: LockedFile(
            sha256=cache.hash_of_file(path),
            size_bytes=path.stat().st_size,
            made_of=own.get(name, {}),
            places=before[name].places if name in before else (),
        )
        for name, path in paths.items()
    }
    lock = MachineLock(files=files, made_of=made_of(), image=image)
    LOCK.write_bytes(
        msgspec.json.format(msgspec.json.encode(lock, order="sorted"), indent=1) + b"\n"
    )
    return lock


def _beside() -> Iterator[str]:
    checkout = environment.CHECKOUT
    installed = not environment.LOCK.is_file()
    for folder in (Path(),) if installed else (checkout, checkout.parent):
        with suppress(FileNotFoundError):  # the current folder was removed
            yield from map(str, sorted(folder.glob(BESIDE)))


def _check(path: Path, place: str, lock: MachineLock) -> None:
    try:
        sha256 = cache.hash_of_file(path)
    except OSError as error:
        raise MachineError(
            f"{place} cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error
    for name, file in lock.files.items():
        if file.sha256 == sha256 != lock.sha256:
            raise MachineError(
                f"{place} is the machine for {name} hosts, and this one is {processors.here()}"
            )
    if sha256 != lock.sha256:
        raise MachineError(
            f"{place} is not the machine of this checkout: its SHA-256 is {sha256[:12]}…, "
            f"not {lock.sha256[:12]}…"
        )


def _fetched(place: str, target: Path, lock: MachineLock, progress: Progress) -> Path:
    progress(f"fetching the machine, {lock.size_bytes >> 20} MB")
    try:
        with target.open("wb") as file:
            # Whatever more there is, it is not the file.
            for data in download.chunks(place, lock.size_bytes + 1):
                file.write(data)
    except download.FetchError as error:
        raise MachineError(f"{place} cannot be had: {error}") from error
    return target
