"""Run programs inside, or from, an unpacked Debian system."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.process.die_with_parent import wrap_command
from qjump_mn.toolbox import processors
from qjump_mn.toolbox.lock import Package
from qjump_mn.toolbox.processors import Processor

_NO_PROGRAM = 126
"""The least status of a program that could not be started or was ended by a signal, as a shell has
it."""

_NOBODY = 65534
_NO_RIGHTS = ("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")

# "$1" is a folder, "$2" the tree, "$3" another folder. objtool of 7.x reads its stack limit in
# /proc.
_FOLDER, _BESIDE = 'mount --bind "$1" "$2/build"', 'mount --bind "$3" "$2/mnt"'
_PROC = 'mount --rbind /proc "$2/proc"'
# The tree's own file is a copy from when it was built.
_NAMES = 'mount --bind /etc/resolv.conf "$2/etc/resolv.conf"'
_INSIDE = """sh -c 'cd /build && exec "$@"' sh "$@\""""
_CHROOT = f'cd / && tree=$2 && shift 3 && exec chroot "$tree" {_INSIDE}'

_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/root",
    "SOURCE_DATE_EPOCH": "1700000000",
}


@dataclass(frozen=True)
class Tree:
    """An unpacked Debian system. `root` is its top folder, `built` a hash of what was built in it
    and is in no package."""

    root: Path
    built: str = ""

    @cached_property
    def packages(self) -> list[Package]:
        """Every installed package, sorted by name."""
        status = (self.root / "var/lib/dpkg/status").read_text()
        fields = [
            dict(re.findall(r"^(Package|Version|Architecture): (.*)$", stanza, re.M))
            for stanza in status.split("\n\n")
        ]
        packages = [
            Package(one["Package"], one["Version"], one["Architecture"]) for one in fields if one
        ]
        return sorted(packages, key=lambda package: (package.name, package.architecture))

    @cached_property
    def packages_sha256(self) -> str:
        """One hash of the exact packages, and of what was built beside them."""
        return cache.hash_of(
            *(f"{one.name}={one.version}:{one.architecture}" for one in self.packages),
            *filter(None, [self.built]),
        )

    @cached_property
    def kernel_release(self) -> str:
        """The release of the one kernel in it, such as 6.12.107+deb13-amd64. Raises MachineError
        when there is none."""
        releases = sorted(
            path.name
            for path in (self.root / "usr/lib/modules").glob("*")
            if (path / "modules.dep").exists()
        )
        if not releases:
            raise MachineError(
                f"{self.root} holds no kernel: remove it with `clean` and build again"
            )
        return releases[-1]

    @property
    def kernel(self) -> Path:
        """The kernel's bzImage."""
        return self.root / "boot" / f"vmlinuz-{self.kernel_release}"

    @cached_property
    def processor(self) -> Processor:
        """The processor that its programs are for."""
        return processors.of_tree(self.root)

    def program(self, path: str, *arguments: str) -> list[str]:
        """Return the command line that runs a program of the tree from outside.

        It works on any distribution and without root: the program uses the tree's loader and
        libraries, not the host's. Programs that it starts would be the host's.
        """
        return [
            str(self.root / self.processor.loader),
            "--inhibit-cache",
            "--library-path",
            str(self.root / self.processor.libraries),
            str(self.root / path),
            *arguments,
        ]

    def output(self, path: str, *arguments: str) -> str:
        """Run a program of the tree from outside, and return what it prints.

        Raises MachineError with its last line if it cannot be started or fails.
        """
        argv = self.program(path, *arguments)
        try:
            done = subprocess.run(argv, capture_output=True, text=True, errors="replace")
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise MachineError(
                f"{self.root / path} cannot be started ({why}): {cache.VERIFY}"
            ) from error
        if done.returncode:
            words = [f"status {done.returncode}", *done.stderr.strip().splitlines()]
            raise MachineError(
                f"{self.root / path} does not run ({words[-1].strip()}): {cache.VERIFY}"
            )
        return done.stdout

    def run(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        online: bool = False,
    ) -> str:
        """Run a program inside the tree, in `folder` as /build, and return its output.

        Root uses chroot in a mount namespace, so that no mount stays; others use a user namespace.
        `environment` is added to a fixed one; `online` lets it resolve names as the host does.
        Raises MachineError with the program's last lines if it fails.
        """
        mounts = [_FOLDER, _PROC, *([_NAMES] if online else [])]
        done = self._call(argv, (folder, folder), mounts, environment or {})
        if done.returncode:
            lines = done.stdout.strip().splitlines()[-15:]
            if done.returncode < 0 or done.returncode >= _NO_PROGRAM:
                lines.append(f"a file of {self.root} may be damaged: {cache.VERIFY}")
            tail = "\n".join(lines)
            raise MachineError(
                f"in the toolbox, `{' '.join(argv)}` failed with status {done.returncode}:\n{tail}"
            )
        return done.stdout

    def run_confined(
        self, argv: Sequence[str], folder: Path, beside: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on files that a stranger may have written, in `folder` as /build, with
        `beside` as /mnt; errors are part of its output.

        It reaches nothing of this machine: it has no /proc, no network and no rights. If we are
        root it runs as the user nobody, to whom `folder` is given.
        """
        rights = list(_NO_RIGHTS)
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
            rights += [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        confined = ["setpriv", *rights, "--", *argv]
        return self._call(confined, (folder, beside), [_FOLDER, _BESIDE], {}, "--net", "--ipc")

    def _call(
        self,
        argv: Sequence[str],
        folders: tuple[Path, Path],
        mounts: Sequence[str],
        environment: Mapping[str, str],
        *namespaces: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run `argv` inside the tree, with two folders that `mounts` may name."""
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        unshare = [host_program("unshare"), *user, *namespaces, "--mount"]
        script = " && ".join((*mounts, _CHROOT))
        inside = ["sh", "-c", script, "sh", str(folders[0]), str(self.root), str(folders[1]), *argv]
        return subprocess.run(
            wrap_command([*unshare, "--propagation", "private", *inside]),
            env={**_ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        )  # fmt: skip


def host_program(name: str) -> str:
    """Return the path of a program of this machine. Raises MachineError if it is not installed."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise MachineError(
            f"{name} is not installed: run `./bootstrap`, or `apt-get install {name}`"
        )
    return path
