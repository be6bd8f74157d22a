"""Add Debian packages to the machine: resolve names to a lock, and unpack a lock into an archive.

It needs Linux, Python and a mirror: neither root nor apt nor dpkg. The archive is an initramfs that
follows the machine's own. The lock `mn` is a curated set; other locks of the variant `added` are
made for a run, and kept in it.
"""

from __future__ import annotations

import difflib
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError, UsageError
from qjump_mn.toolbox import cpio, package_lists, packages, postinst, selection, unpacking
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.dependencies import Need
from qjump_mn.toolbox.lock import Lock, Locked
from qjump_mn.toolbox.package_lists import Lists

Progress = Callable[[str], None]

NAME = "mn"
"""The lock of the curated set."""
VARIANT = "added"
"""The variant of its lock, and of every lock made here."""

_TOOLBOX = "toolbox"
_TIME = "%Y%m%dT%H%M%SZ"
_RECIPE = "2"  # counts up when the same question gets another answer
_KIND, _FILE = "packages-archive", "packages.cpio"
_LOCK_KIND = "packages-lock"
_KEPT, _KEPT_LOCKS = 6, 50
_NEEDS_BYTES = 500 << 20

# Left out unless asked for by name.
_LEFT_OUT = frozenset(
    # An init system, users' sessions, package management and regular jobs: nothing of it runs.
    "adduser apt cron debconf dbus dpkg init-system-helpers libpam-modules libpam-runtime "
    "libsystemd-shared login logrotate lsb-base passwd systemd sysvinit-utils ucf udev "
    # Screens, of which the guest has none.
    "blt libjs-jquery libjs-jquery-ui python3-pil.imagetk python3-tk tk8.6-blt2.5 "
    # Hints for people, and programs' choices between other programs.
    "sensible-utils".split()
)
# What a package needs only for a part of it that programs of the guest do not use.
_WITHOUT = {
    # Certificates for switches: the controller is started without them, and openssl reads libssl's
    # configuration, which is not there.
    "openvswitch-testcontroller": {"openvswitch-pki"},
    # matplotlib takes it for the fonts of PDF files only, which needs none of these.
    "python3-fonttools": set(
        "python3-brotli python3-fs python3-lxml python3-lz4 python3-mpmath python3-scipy "
        "python3-sympy python3-ufolib2 python3-unicodedata2 python3-zopfli unicode-data".split()
    ),
}

# What a package needs and does not say, because every Debian has it: vtysh of frr asks PAM.
_WITH = {"frr": "libpam-modules"}


def resolve(
    names: Iterable[str],
    present: Sequence[str],
    progress: Progress = lambda line: None,
    *,
    beside: Sequence[Lock] = (),
) -> Lock:
    """Return a lock of these packages and what they need, less what the guest has.

    ``present`` are the packages of the image, `name=version`; ``beside`` are locks whose archives
    the guest gets too. The answer is kept: the same question has the same answer until the cache is
    cleaned. Raises UsageError for an unknown package, and MachineError if no mirror answers.
    """
    asked = tuple(sorted(set(names)))
    suite = locks.read(_TOOLBOX).suite
    key = cache.hash_of(_RECIPE, suite, *asked, "in", *present, *(one.identity for one in beside))

    def build(folder: Path) -> None:
        lists = package_lists.read(suite, progress)
        versions = dict(one.split("=", 1) for one in present)
        held = _held(lists, versions)
        for lock in beside:
            held |= locks.versions(lock)
        have = _Resolution(lists, held, _locked(versions)).closure(asked)
        now = time.strftime(_TIME, time.gmtime())
        lock = Lock("packages", suite, VARIANT, now, asked, have)
        (folder / "packages.lock").write_text(lock.text)

    fresh = cache.find(_LOCK_KIND, key) is None
    path = cache.artefact(_LOCK_KIND, key, build, progress=progress)
    if fresh:
        cache.prune(_LOCK_KIND, _KEPT_LOCKS)
    return locks.load(path / "packages.lock")


def newest(lock: Lock, when: str, progress: Progress) -> Lock:
    """Return the lock with the mirrors' current packages, beside those of the toolbox's lock."""
    versions = locks.versions(locks.read(_TOOLBOX))
    lists = package_lists.read(lock.suite, progress)
    held = _held(lists, versions)
    have = _Resolution(lists, held, _locked(versions)).closure(lock.ask)
    return replace(lock, time=when, have=have)


def archive(lock: Lock, progress: Progress = lambda line: None) -> Path:
    """Return the archive of the lock's packages, made now if there is none.

    Raises GoneError if a package is not available anywhere.
    """

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            files, contents = Path(scratch, "files"), Path(scratch, "contents")
            packages.fetch(lock, files, progress)
            contents.mkdir()
            progress(f"unpacking {len(lock.have)} packages")
            nodes = unpacking.nodes(files.iterdir(), contents)
            with (folder / _FILE).open("wb") as file:
                file.writelines(cpio.archive(nodes))

    code = [cache.hash_of_code(Path(str(one.__file__))) for one in (unpacking, postinst, cpio)]
    key = cache.hash_of(lock.identity, *code)
    fresh = cache.find(_KIND, key) is None
    path = cache.artefact(_KIND, key, build, needs_bytes=_NEEDS_BYTES, progress=progress)
    if fresh:
        cache.prune(_KIND, _KEPT)
    return path / _FILE


def _held(lists: Lists, versions: dict[str, str]) -> dict[str, str]:
    """Return the version of each package that the guest has.

    ``versions`` are the toolbox's, of which the guest has what `selection` names and what that
    needs.
    """
    held: dict[str, str] = {}
    todo = list(selection.PACKAGES)
    while todo:
        name = todo.pop()
        if name in held or name in selection._NO_PACKAGE or name not in versions:
            continue
        held[name] = versions[name]
        for need in lists.packages[name].needs if name in lists.packages else ():
            names = [one.name for one in need]
            providers = [one for name in names for one in lists.providers.get(name, ())]
            todo += [one for one in (*names, *providers) if one in versions][:1]
    return held


def _locked(versions: dict[str, str]) -> dict[str, Locked]:
    """Return the toolbox's packages as its lock has them, by name, if they are those."""
    have = locks.read(_TOOLBOX).have
    return {
        one.package.name: one
        for one in have
        if versions.get(one.package.name) == one.package.version
    }


@dataclass
class _Resolution:
    """Chooses packages: ``held`` are the versions in the guest, ``locked`` the toolbox's packages,
    which are preferred."""

    lists: Lists
    held: dict[str, str]
    locked: dict[str, Locked]
    chosen: dict[str, Locked] = field(default_factory=dict)

    def closure(self, names: Sequence[str]) -> tuple[Locked, ...]:
        """Return these packages and what they need, less what is held, sorted by name.

        Raises UsageError for a name that is unknown, and MachineError if a package needs one that
        no mirror has.
        """
        todo = [name for name in names if self._is_wanted(name)]
        for name in todo:
            self._choose(Need(name))
        while todo:
            name = todo.pop()
            tacit = [(Need(_WITH[name]),)] if name in _WITH else []
            for alternatives in [*self.lists.packages[name].needs, *tacit]:
                if (added := self._added(name, alternatives)) and self._choose(added):
                    todo.append(added.name)
        return tuple(one for _, one in sorted(self.chosen.items()))

    def _is_wanted(self, name: str) -> bool:
        """Return whether a name that was asked for is a package that is not held."""
        if name in self.held:
            return False
        if name in self.lists.packages:
            return True
        if providers := self.lists.providers.get(name):
            raise UsageError(
                f"{name} is not a package, but a name for several: use {' or '.join(providers[:5])}"
            )
        module = [one for one in (f"python3-{name}",) if one in self.lists.packages]
        nearest = module or difflib.get_close_matches(name, self.lists.packages, 3)
        advice = f": did you mean {' or '.join(nearest)}?" if nearest else ""
        raise UsageError(f"Debian {locks.read(_TOOLBOX).suite} has no package {name!r}{advice}")

    def _added(self, package: str, alternatives: Sequence[Need]) -> Need | None:
        """Return which of the alternatives to choose; None if nothing is missing."""
        left_out = _LEFT_OUT - {_WITH.get(package)} | _WITHOUT.get(package, set())
        if any(self._is_met(need) for need in alternatives) or alternatives[0].name in left_out:
            return None
        for need in alternatives:
            if need.name in self.lists.packages:
                return need
        for need in alternatives:
            if providers := self.lists.providers.get(need.name):
                return Need(providers[0])
        raise MachineError(f"{package} needs {alternatives[0].name}, which no mirror has")

    def _is_met(self, need: Need) -> bool:
        """Return whether a package that is chosen or held is what is needed."""
        chosen, held = self.chosen.get(need.name), self.held.get(need.name)
        version = chosen.package.version if chosen else held
        if version is not None and need.allows(version):
            return True
        providers = self.lists.providers.get(need.name, ())
        return any(name in self.chosen or name in self.held for name in providers)

    def _choose(self, need: Need) -> bool:
        """Choose the toolbox's version of a package if it will do, else the mirrors' newest.

        Return whether the choice is new.
        """
        one = self.lists.packages[need.name].locked
        locked = self.locked.get(need.name)
        if locked and need.allows(locked.package.version):
            one = locked
        is_new = self.chosen.get(need.name) != one
        self.chosen[need.name] = one
        return is_new
