"""Plain chroots with a Python, in which a user without rights and without a network has a checkout,
a machine file and a folder of wheels, and may write one folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pip
import pytest

from qjump_mn.install import environment
from qjump_mn.toolbox import checkout, mirrors
from tests.support.processes import execute

UBUNTU = "QJUMP_MN_UBUNTU"
"""The address of a mirror of Ubuntu: a Debian's apt knows none."""

MEMORY_BYTES = 2 << 30
_USER = "54321"
"""Who has no entry in any /etc/passwd."""

_DEVICES = {"null": 3, "zero": 5, "urandom": 9}
_LIBRARIES = "libbz2-1.0,libffi8,liblzma5,libssl3,zlib1g"
"""Of Debian 12, for a Python that somebody built on it."""

_RIGHTS = (
    *("--reuid", _USER, "--regid", _USER, "--clear-groups"),
    *("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"),
)
_LIMIT = """
set -eu
[ -z "$group" ] || echo $$ > "$group/cgroup.procs"
"""
_MOUNT = """
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$kept" "$root/kept"
"""


@dataclass(frozen=True)
class System:
    """A release, whose ``python`` is its own, or lies in a ``folder`` of the tests' machine."""

    title: str
    suite: str
    python: str
    folder: Path | None = None

    def make(self, root: Path) -> None:
        """Skips where it cannot be had."""
        packages = "python3" if self.folder is None else _LIBRARIES
        if self.suite == "noble":  # without apt it has no libstdc++
            mirror = os.environ.get(UBUNTU) or pytest.skip(
                f"{self.title} needs a mirror: set {UBUNTU}"
            )
            lines, packages = [f"deb [trusted=yes] {mirror} noble main"], f"{packages},libstdc++6"
        else:
            lines = [
                line for line in mirrors.lines(self.suite) if "sid-" not in line
            ]  # it has no updates
        options = [f"--include={packages}", '--aptopt=Acquire::Check-Valid-Until "false"']
        argv = [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            *options,
            self.suite,
            str(root),
            *lines,
        ]
        done = execute(argv)
        if done.returncode:
            pytest.skip(f"{self.title} cannot be had: {done.stderr.strip().splitlines()[-1]}")
        if self.folder is not None:
            # It may have its own place in it.
            target = root / self.folder.relative_to("/")
            ignored = shutil.ignore_patterns("test", "__pycache__", "site-packages", "*.a")
            shutil.copytree(self.folder, target, ignore=ignored, symlinks=True)
            for folder in (*target.relative_to(root).parents, target.relative_to(root)):
                (root / folder).chmod(0o755)


SYSTEMS = {
    "debian12": System("Debian 12", "bookworm", "3.11"),
    "ubuntu24": System("Ubuntu 24.04", "noble", "3.12"),
    "debian13": System("Debian 13", "trixie", "3.13"),
    "sid": System("Debian sid", "sid", "3.14"),
}


def others() -> list[System]:
    """Pythons on this machine that no package of Debian's has, the newest first: those of pyenv, uv
    and $QJUMP_MN_PYTHONS."""
    home = Path.home()
    folders = [
        Path(name) for name in os.environ.get("QJUMP_MN_PYTHONS", "").split(os.pathsep) if name
    ]
    folders += sorted(home.glob(".pyenv/versions/3.*")) + sorted(
        home.glob(".local/share/uv/python/cpython-3.*")
    )
    found = []
    for folder in folders:
        version = re.search(r"3\.(\d+)\.\d+", folder.name)
        if (
            version
            and int(version[1]) >= environment.OLDEST[1]
            and (folder / "bin/python3").exists()
        ):
            found.append(
                System(
                    f"Debian 12 with a Python of pyenv or uv, {version[0]}",
                    "bookworm",
                    f"3.{version[1]}",
                    folder,
                )
            )
    return sorted(found, key=lambda system: int(system.python[2:]), reverse=True)


@dataclass(frozen=True)
class Chroot:
    """``kept`` is the only folder that can be written: /kept in the chroot."""

    root: Path
    kept: Path
    system: System
    is_container: bool = False

    def bootstrap(self, *arguments: str) -> str:
        """Run bootstrap as the user, without a network; what it said."""
        return self._run("/srv/qjump-mn/bootstrap", *arguments)

    def download(self, lock: str, folder: str, **variables: str) -> str:
        """Download wheels by the index that this machine uses, with its pip's settings; what pip
        said."""
        argv = [
            f"python{self.system.python}",
            *"-m pip download --require-hashes --no-deps".split(),
        ]
        argv += ["--only-binary=:all:", "-r", lock, "-d", folder]
        return self._run(*argv, network=True, **variables)

    def _run(self, *argv: str, network: bool = False, **variables: str) -> str:
        programs = f"{self.system.folder}/bin:" if self.system.folder else ""
        settings = {
            "PATH": f"{programs}/usr/bin:/bin",
            "HOME": "/home/somebody",
            "QJUMP_MN_CACHE": "/kept/cache",
            **variables,
        }
        enter = self._in_container if self.is_container and not network else self._in_chroot
        given_variables = (f"{name}={value}" for name, value in settings.items())
        with _limited() as group:
            given = {"root": str(self.root), "kept": str(self.kept), "group": str(group or "")}
            done = subprocess.run(
                [*enter(network), "env", "-i", *given_variables, *argv],
                env={**os.environ, **given},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.root,
            )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _in_chroot(self, network: bool) -> list[str]:
        apart = ["unshare", "--mount", *([] if network else ["--net"])]
        return [
            *apart,
            "sh",
            "-c",
            f'{_LIMIT}{_MOUNT}exec chroot "$root" "$@"',
            "sh",
            "setpriv",
            *_RIGHTS,
        ]

    def _in_container(self, network: bool) -> list[str]:
        """What rootless containers are made of: a user namespace of the user's own, and /proc and
        /dev in it."""
        mounts = ["--ro-bind", str(self.root), "/", "--bind", str(self.kept), "/kept"]
        mounts += ["--proc", "/proc", "--dev", "/dev"]
        apart = ["bwrap", *mounts, "--unshare-all", "--cap-drop", "ALL", "--die-with-parent"]
        return ["sh", "-c", f'{_LIMIT}exec "$@"', "sh", "setpriv", *_RIGHTS, *apart]


@contextmanager
def made(system: System, *, is_container: bool = False) -> Iterator[Chroot]:
    """The chroot of a system with a copy of the checkout; skips where it cannot be."""
    if is_container and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    with tempfile.TemporaryDirectory(prefix="qjump-mn-chroot-") as top:
        root, kept = Path(top, "root"), Path(top, "kept")
        os.chmod(top, 0o755)
        system.make(root)
        for folder in ("kept", "home/somebody", "proc"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(root / "dev")
        (root / "dev").mkdir()
        for name, minor in _DEVICES.items():
            os.mknod(root / "dev" / name, 0o20666, os.makedev(1, minor))
            (root / "dev" / name).chmod(0o666)
        kept.mkdir()
        shutil.chown(kept, int(_USER), int(_USER))
        checkout.copy(root / "srv/qjump-mn")
        yield Chroot(root, kept, system, is_container)


def downloaded_wheels(chroot: Chroot) -> Path:
    """A folder of wheels for the chroot's Python, made there with the index that this machine
    uses."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    files = [
        "/etc/resolv.conf",
        "/etc/hosts",
        *(variables.get(name, "") for name in ("PIP_CERT", "PIP_CONFIG_FILE")),
    ]
    for name in files:
        if os.path.isfile(name):
            target = chroot.root / name.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, target)
    with _pip_in(chroot):
        chroot.download("/srv/qjump-mn/requirements.lock", "/kept/wheels", **variables)
    return chroot.kept / "wheels"


@contextmanager
def _pip_in(chroot: Chroot) -> Iterator[None]:
    """The system with a pip, as that of a computer where there is an index."""
    top = chroot.system.folder or Path("/usr")
    packages = (
        f"lib/python{chroot.system.python}/site-packages"
        if chroot.system.folder
        else "lib/python3/dist-packages"
    )
    theirs = chroot.root / top.relative_to("/") / packages / "pip"
    shutil.copytree(Path(pip.__file__).parent, theirs)
    yield
    shutil.rmtree(theirs)


@dataclass(frozen=True)
class Tried:
    """What came of it: all that it said, what it said of the reference run, and how long the run
    took."""

    said: str
    reference: str
    seconds: float


def tried(
    system: System, machine: Path, arms: Sequence[str] = (), *, is_container: bool = False
) -> Tried:
    """Run Figure 3a's smoke preset in a chroot, or a container, with nothing but a machine file and
    wheels."""
    with made(system, is_container=is_container) as chroot:
        shutil.copyfile(machine, chroot.root / "srv/qjump-mn-machine.tar.xz")
        shutil.copytree(downloaded_wheels(chroot), chroot.root / "srv/qjump-mn-wheels")
        options = ["--arms", ",".join(arms)] if arms else []
        start = time.monotonic()
        said = chroot.bootstrap(
            "fig3a", "--preset", "smoke", "-v", *options, "--out", "/kept/results"
        )
        found = re.search(r"^Reference: (.*)", said, re.M)
        assert found, said
        return Tried(said, found[1], time.monotonic() - start)


@contextmanager
def _limited() -> Iterator[Path | None]:
    """A control group that may have so much memory; None, with a warning, where this machine lets
    nobody make one."""
    for folder, limit in (
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ):
        group = Path(folder, f"qjump-mn-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(MEMORY_BYTES))
        except OSError:
            group.rmdir()
            continue
        try:
            yield group
        finally:
            group.rmdir()
        return
    warnings.warn(
        f"no limit of {MEMORY_BYTES >> 20} MiB: this machine lets nobody make a control group",
        stacklevel=2,
    )
    yield None
