"""Read the mirrors' lists of packages, without apt.

Each list is named by its hash in its suite's Release file, and kept in the cache by that hash. The
Release file's signature is not checked: a mirror with https is as good as its certificate.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import dependencies, download, mirrors
from qjump_mn.toolbox.dependencies import Need
from qjump_mn.toolbox.lock import AMD64, Locked, Package

_LIST = f"main/binary-{AMD64}/Packages.xz"
_MAX_RELEASE_BYTES = 4 << 20
_NEEDS_BYTES = 100 << 20
_KEPT = 6  # of 10 MB at most: two times the three lists of a suite
_KIND = "package-list"


@dataclass(frozen=True)
class Listed:
    """A package in a list: its ``stanza``, and the Debian ``archive`` that its file is in."""

    stanza: str
    archive: str

    @cached_property
    def _fields(self) -> dict[str, str]:
        return dict(re.findall(r"^([A-Za-z0-9-]+): *(.*)$", self.stanza, re.M))

    @property
    def version(self) -> str:
        """Its version."""
        return self._fields["Version"]

    @property
    def needs(self) -> list[tuple[Need, ...]]:
        """What it needs to run, each with its alternatives."""
        fields = (self._fields.get(name, "") for name in ("Pre-Depends", "Depends"))
        return dependencies.parse(",".join(fields))

    @property
    def locked(self) -> Locked:
        """What a lock says of it."""
        fields = self._fields
        package = Package(fields["Package"], fields["Version"], fields["Architecture"])
        place = f"{self.archive}/{fields['Filename']}"
        return Locked(package, int(fields["Size"]), fields["SHA256"], place)


@dataclass(frozen=True)
class Lists:
    """The newest version of each package, by name, and who provides which virtual package."""

    packages: dict[str, Listed]

    @cached_property
    def providers(self) -> dict[str, list[str]]:
        """The names of the packages that provide a name, sorted."""
        found: dict[str, list[str]] = {}
        for name, listed in sorted(self.packages.items()):
            if match := re.search(r"^Provides: *(.*)$", listed.stanza, re.M):
                for (provided,) in dependencies.parse(match[1]):
                    found.setdefault(provided.name, []).append(name)
        return found


def read(suite: str, progress: Callable[[str], None]) -> Lists:
    """Return what the mirrors have now. Raises MachineError if no mirror has a list."""
    packages: dict[str, Listed] = {}
    for address, pocket in mirrors.suites(suite):
        archive = "debian-security" if pocket.endswith("-security") else "debian"
        for name, stanza in _stanzas(address, pocket, progress):
            listed = Listed(stanza, archive)
            other = packages.get(name)
            if other is None or dependencies.key(other.version) < dependencies.key(listed.version):
                packages[name] = listed
    if not packages:
        asked = ", ".join(dict.fromkeys(address for address, _ in mirrors.suites(suite)))
        raise MachineError(
            f"no mirror has a list of the packages of Debian {suite} (asked: {asked or 'none'}): "
            "set QJUMP_MN_MIRROR to a mirror's address"
        )
    return Lists(packages)


def _stanzas(
    address: str, suite: str, progress: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    """Yield each package's name and stanza in a suite's list; nothing if there is no such suite."""
    top = f"{address}/dists/{suite}"
    release = _had(f"{top}/Release", _MAX_RELEASE_BYTES)
    match = re.search(rf"^ ([0-9a-f]{{64}}) +(\d+) {_LIST}$", (release or b"").decode(), re.M)
    if release is None or not match:
        return
    sha256, size_bytes = match[1], int(match[2])

    def fetch(folder: Path) -> None:
        progress(f"getting the list of packages of {suite}, {size_bytes / 1e6:.1f} MB")
        # By its hash it is also there while the mirror gets a newer one.
        by_hash = f"{top}/{_LIST.rpartition('/')[0]}/by-hash/SHA256/{sha256}"
        wanted = by_hash if b"\nAcquire-By-Hash: yes\n" in release else f"{top}/{_LIST}"
        data = _had(wanted, size_bytes)
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            raise MachineError(f"{wanted} is not what its Release file says: try again later")
        (folder / "Packages.xz").write_bytes(data)

    key = cache.hash_of(sha256)
    fresh = cache.find(_KIND, key) is None
    path = cache.artefact(_KIND, key, fetch, needs_bytes=_NEEDS_BYTES, progress=progress)
    if fresh:
        cache.prune(_KIND, _KEPT)
    text = lzma.decompress((path / "Packages.xz").read_bytes()).decode()
    for stanza in text.split("\n\n"):
        if stanza.startswith("Package: "):
            yield stanza[9 : stanza.index("\n")], stanza


def _had(address: str, most_bytes: int) -> bytes | None:
    """Return the content at an address; None if it has none. Raises MachineError if it does not
    answer."""
    try:
        return b"".join(download.chunks(address, most_bytes))
    except download.FetchError as error:
        if error.is_final:
            return None
        raise MachineError(f"{address} cannot be had: {error}") from error
