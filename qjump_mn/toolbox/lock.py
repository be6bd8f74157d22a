"""Read and write locks: the Debian packages that a tree is made of, each with its file's hash.

A file of locks/ has a keyword and its value in each line: `suite`, the release; `variant`,
mmdebstrap's (`extract` installs nothing), `source` for a source package (sources.py), or `added`
for packages that follow the machine's own (added.py);
`architecture`, in Debian's words, amd64 by default (`amd64,arm64`: packages of both, run on the
first); `time`, when a mirror had all of it, in the form of the archive of old packages; `ask`, a
wanted package; `have`, a package that this brings: name, version, architecture, bytes and SHA-256
of its file, and the file's path, whose first folder names the Debian archive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from qjump_mn.errors import MachineError

FOLDER = Path(__file__).with_name("locks")
AMD64 = "amd64"
"""The architecture of a lock that says none."""

_HEAD = (
    "# Made by `qjump-mn machine lock`; only `suite`, `variant` and `ask` are written by hand.\n"
)


@dataclass(frozen=True)
class Package:
    """An installed or locked package."""

    name: str
    version: str
    architecture: str


@dataclass(frozen=True)
class Locked:
    """A locked package and its file: `size_bytes`, the hash `sha256`, and its `path` in the
    archives."""

    package: Package
    size_bytes: int
    sha256: str
    path: str

    @property
    def archive(self) -> str:
        """The Debian archive it is from: "debian" or "debian-security"."""
        return self.path.partition("/")[0]

    @property
    def in_archive(self) -> str:
        """Its path in that archive."""
        return self.path.partition("/")[2]


@dataclass(frozen=True)
class Lock:
    """The content of a file of locks/."""

    name: str
    suite: str
    variant: str
    time: str
    ask: tuple[str, ...]
    have: tuple[Locked, ...]
    architecture: str = AMD64

    @property
    def day(self) -> str:
        """The day on which a mirror had all of it, such as 2026-11-23."""
        return f"{self.time[:4]}-{self.time[4:6]}-{self.time[6:8]}"

    @property
    def identity(self) -> str:
        """What decides a tree made from it, without the time. All files are of one architecture."""
        have = (f"{one.package.name} {one.package.version} {one.sha256}" for one in self.have)
        return "\n".join((self.suite, self.variant, *self.ask, *have))

    @property
    def text(self) -> str:
        """The file's text."""
        lines = [f"suite {self.suite}", f"variant {self.variant}", f"time {self.time}"]
        if self.architecture != AMD64:
            lines.insert(2, f"architecture {self.architecture}")
        lines += [f"ask {name}" for name in self.ask]
        for one in self.have:
            package = f"{one.package.name} {one.package.version} {one.package.architecture}"
            lines.append(f"have {package} {one.size_bytes} {one.sha256} {one.path}")
        return _HEAD + "\n".join(lines) + "\n"


def names() -> list[str]:
    """Return the names of all locks."""
    return sorted(path.stem for path in FOLDER.glob("*.lock"))


def path_of(name: str) -> Path:
    """Return the path of a lock."""
    return FOLDER / f"{name}.lock"


def read(name: str) -> Lock:
    """Return the lock of that name. Raises MachineError for a line that is not valid."""
    return load(path_of(name))


def load(path: Path) -> Lock:
    """Return the lock in a file. Raises MachineError for a line that is not valid."""
    single = {"suite": "", "variant": "minbase", "architecture": AMD64, "time": ""}
    ask: list[str] = []
    have: list[Locked] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match line.partition("#")[0].split():
            case []:
                pass
            case [("suite" | "variant" | "architecture" | "time") as key, value]:
                single[key] = value
            case ["ask", value]:
                ask.append(value)
            case ["have", *package, size, sha256, place] if len(package) == 3 and _is_file(
                size, sha256, place
            ):
                have.append(Locked(Package(*package), int(size), sha256, place))
            case _:
                raise MachineError(f"{path}:{number}: this is no line of a lock: {line[:80]}")
    suite, variant, architecture, when = (
        single[key] for key in ("suite", "variant", "architecture", "time")
    )
    return Lock(path.stem, suite, variant, when, tuple(ask), tuple(have), architecture)


def versions(lock: Lock) -> dict[str, str]:
    """Return the version of each package of a lock, by name."""
    return {one.package.name: one.package.version for one in lock.have}


def _is_file(size: str, sha256: str, place: str) -> bool:
    """Return whether the words name a file below an archive, and no other place."""
    is_below = re.fullmatch(
        r"[a-z-]+(/[A-Za-z0-9_.+~%:-]+)+\.(deb|tar\.xz)", place
    ) and ".." not in place.split("/")
    return size.isdecimal() and bool(re.fullmatch(r"[0-9a-f]{64}", sha256)) and bool(is_below)
