"""Pack and unpack the machine file: kernel, initramfs and simulator; the packages that scripts
expect; for arm64 the outer machine.

It is a tar archive, compressed by the toolbox's xz, with members sorted by name and without times
or owners, so the same machine gives the same bytes. `machine.json` comes first and has the hash of
every other member.
"""

from __future__ import annotations

import io
import lzma
import subprocess
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, cast

import msgspec

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.tree import Tree

KERNEL, INITRD, SIMULATOR, PACKAGES, OUTER = (
    "kernel",
    "initrd",
    "simulator",
    "packages",
    "outer",
)
"""What the members lie in, or are."""

FACTS = "machine.json"
_MOST_BYTES = 1 << 30
"""Of one member: whoever says more is no machine of ours."""

_COMPRESS = """
import lzma, shutil, sys
with lzma.open(sys.stdout.buffer, "w") as file:
    shutil.copyfileobj(sys.stdin.buffer, file)
"""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a machine file says about itself: Debian's ``packages`` (name=version), the SHA-256 of
    each of its ``files``, and the kernel's ``release``."""

    packages: list[str]
    packages_sha256: str
    release: str
    files: dict[str, str]


def parts(
    kernel: Path,
    initrd: Path,
    simulator: Path,
    *,
    packages: Mapping[Lock, Path] = MappingProxyType({}),
    outer: Path | None = None,
) -> dict[str, Path]:
    """Return the files of a machine, by member name.

    ``packages`` are archives of packages by their locks; ``outer`` is the outer machine's folder,
    if needed.
    """
    found = {KERNEL: kernel, INITRD: initrd}
    found |= {packages_of(lock): path for lock, path in packages.items()}
    if outer:
        found |= {f"{OUTER}/{name}": outer / name for name in (KERNEL, INITRD)}
    for path in simulator.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found[f"{SIMULATOR}/{path.relative_to(simulator)}"] = path
    return found


def packages_of(lock: Lock) -> str:
    """Return the name of the member that is the archive of a lock's packages."""
    return f"{PACKAGES}/{cache.hash_of(lock.identity)}"


def write(found: Mapping[str, Path], facts: Facts, tree: Tree, target: Path) -> None:
    """Write the machine file. Raises MachineError if it cannot be written."""
    (interpreter,) = (tree.root / "usr/bin").glob("python3.[0-9][0-9]")
    argv = tree.program(f"usr/bin/{interpreter.name}", "-I", "-S", "-c", _COMPRESS)
    environment = {"PYTHONHOME": str(tree.root / "usr")}
    pipe = subprocess.PIPE
    with (
        target.open("wb") as file,
        subprocess.Popen(argv, stdin=pipe, stdout=file, stderr=pipe, env=environment) as process,
    ):
        assert process.stdin is not None and process.stderr is not None
        with suppress(BrokenPipeError):  # where there is no room, the compressor says so and ends
            _archive(found, facts, process.stdin)
        with suppress(BrokenPipeError):
            process.stdin.close()
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        last = said.rpartition("\n")[2] or f"its compressor ended with {process.returncode}"
        raise MachineError(f"{target} cannot be written: {last}")


def _archive(found: Mapping[str, Path], facts: Facts, file: IO[bytes]) -> None:
    """Write parts and facts as a tar archive: the same parts give the same bytes."""
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
        text = msgspec.json.format(msgspec.json.encode(facts, order="sorted"), indent=1)
        archive.addfile(_member(FACTS, len(text)), io.BytesIO(text))
        for name in sorted(found):
            path = found[name]
            executable = path.stat().st_mode & 0o100
            with path.open("rb") as content:
                archive.addfile(_member(name, path.stat().st_size, bool(executable)), content)


def unpack(path: Path, folder: Path) -> Facts:
    """Unpack a machine file into an empty folder, and return its facts.

    Raises MachineError if it is not a machine file, is truncated or has unexpected members, and
    OSError if it cannot be written.
    """
    facts = None
    try:
        with (
            lzma.open(path) as file,
            tarfile.open(fileobj=cast(IO[bytes], file), mode="r|") as archive,
        ):
            for member in archive:
                content = archive.extractfile(member) if _is_allowed(member) else None
                if content is None:
                    raise MachineError(f"{path}: {member.name!r} has no place in a machine file")
                if facts is None:
                    if member.name != FACTS:
                        raise MachineError(
                            f"{path} is no machine file: it does not begin with {FACTS}"
                        )
                    facts = msgspec.json.decode(content.read(), type=Facts)
                    continue
                if member.name not in facts.files:
                    raise MachineError(f"{path}: {FACTS} does not tell of {member.name!r}")
                _extract(content, folder / member.name, executable=bool(member.mode & 0o100))
    except (lzma.LZMAError, tarfile.TarError, EOFError, msgspec.MsgspecError) as error:
        raise MachineError(f"{path} is no whole machine file: {error}") from error
    if facts is None:
        raise MachineError(f"{path} is no machine file: it is empty")
    if wrong := damaged(folder, facts):
        raise MachineError(f"{path}: {wrong[0]}")
    return facts


def damaged(folder: Path, facts: Facts) -> list[str]:
    """Return a sentence for each file of an unpacked machine that differs from its facts."""
    sentences = []
    for name, sha256 in sorted(facts.files.items()):
        path = folder / name
        if not path.is_file():
            sentences.append(f"{name} is missing")
        elif cache.hash_of_file(path) != sha256:
            sentences.append(f"{name} is damaged")
    return sentences


def _member(name: str, size: int, executable: bool = False) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    return member


def _is_allowed(member: tarfile.TarInfo) -> bool:
    path = PurePosixPath(member.name)
    is_inside = not path.is_absolute() and ".." not in path.parts and path.as_posix() == member.name
    return member.isreg() and is_inside and member.size <= _MOST_BYTES


def _extract(content: IO[bytes], path: Path, *, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        while data := content.read(1 << 20):
            file.write(data)
    path.chmod(0o755 if executable else 0o644)
