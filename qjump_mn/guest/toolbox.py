"""The toolbox: one locked Debian tree that holds QEMU, the compilers and everything the guest is made of.

Results depend on the exact QEMU, kernel, compiler and programs, so none of them comes from the host. The tree
is made by mmdebstrap from packages.lock; 54 s and 1.2 GB here. When the mirror has moved on, the tree is
built all the same and says how it differs from the lock. `sudo python -m qjump_mn.guest build` makes it, `…
lock` rewrites the lock from what the mirror has now.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.guest.leash import leashed

LOCK = Path(__file__).with_name("packages.lock")
_RECIPE = "3"  # counts up when what is built from one lock changes
_NEEDS_BYTES = 2500 << 20  # 1.2 GB of tree beside 0.4 GB of packages while it is built, and some air
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/root",
    "SOURCE_DATE_EPOCH": "1700000000",
}

# Left out of every tree: nothing reads them, and the last one keeps the kernel's package from making an
# initramfs (8 s).
_NOT_UNPACKED = (
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/doc/*",
    "/etc/kernel/postinst.d/*",
)

# Such a suite holds a few packages only and is used together with the release that it is for.
_BACKPORTS = "-backports"

# Kernels for building modules for them and booting them in tests: Debian 12's, with its tc, and the newest
# that Debian has for 13. The latter, and its headers for programs, are asked for by their suite, which apt
# takes nothing from unasked.
_OTHER_SUITES = {
    "bookworm": "linux-image-amd64 linux-headers-amd64 gcc-12 libc6-dev make kmod sparse iproute2".split(),
    "trixie-backports": (
        "linux-image-amd64/trixie-backports linux-headers-amd64/trixie-backports "
        "linux-libc-dev/trixie-backports "
        "initramfs-tools gcc-14 libc6-dev make kmod sparse"
    ).split(),
}

_BPF_TOOLS = (
    "clang llvm libbpf-dev".split()
)  # llvm for llvm-strip: a job in the guest has no room for what debuggers read

_CHECKPATCH = ("scripts/checkpatch.pl", "scripts/spelling.txt", "scripts/const_structs.checkpatch")


@dataclass(frozen=True)
class Package:
    """An installed or locked package."""

    name: str
    version: str
    architecture: str


@dataclass(frozen=True)
class Lock:
    """What packages.lock says: the suite, the packages asked for, and all that answered when it was
    written."""

    suite: str
    ask: list[str]
    have: list[Package]


@dataclass(frozen=True)
class Tree:
    """An unpacked Debian system. `root` is its top folder, `built` a hash of what was built in it and is in
    no package."""

    root: Path
    built: str = ""

    @cached_property
    def packages(self) -> list[Package]:
        """Every installed package, by name."""
        status = (self.root / "var/lib/dpkg/status").read_text()
        fields = [
            dict(re.findall(r"^(Package|Version|Architecture): (.*)$", stanza, re.M))
            for stanza in status.split("\n\n")
        ]
        packages = [Package(one["Package"], one["Version"], one["Architecture"]) for one in fields if one]
        return sorted(packages, key=lambda package: package.name)

    @cached_property
    def packages_sha256(self) -> str:
        """One hash for the exact set of packages, and for what was built beside them."""
        return cache.hash_of(
            *(f"{one.name}={one.version}:{one.architecture}" for one in self.packages),
            *filter(None, [self.built]),
        )

    @cached_property
    def kernel_release(self) -> str:
        """The release of the one kernel in it, such as 6.12.107+deb13-amd64. Raises MachineError when there
        is none."""
        releases = sorted(
            path.name for path in (self.root / "usr/lib/modules").glob("*") if (path / "modules.dep").exists()
        )
        if not releases:
            raise MachineError(f"{self.root} holds no kernel: remove it with `clean` and build again")
        return releases[-1]

    @property
    def kernel(self) -> Path:
        """The kernel's bzImage."""
        return self.root / "boot" / f"vmlinuz-{self.kernel_release}"

    def program(self, path: str, *arguments: str) -> list[str]:
        """The command line that runs a program of the tree from outside, on any distribution and without
        root.

        The tree's own loader and libraries are used and nothing of the host's; the program's children would
        be the host's.
        """
        loader = str(self.root / "usr/lib64/ld-linux-x86-64.so.2")
        return [
            loader,
            "--inhibit-cache",
            "--library-path",
            str(self.root / _LIBRARIES),
            str(self.root / path),
            *arguments,
        ]

    def run(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        online: bool = False,
    ) -> str:
        """Run a program inside the tree, with `folder` as its working folder /build; returns what it printed.

        As root by chroot in a mount namespace of its own, so that nothing stays mounted whatever happens;
        without root in a user namespace. `environment` is added to a fixed one; `online` lets it find names
        as the host does. Raises MachineError with the program's last lines when it fails.
        """
        # objtool of 7.x reads its stack limit in /proc.
        mounts = 'mount --bind "$1" "$2/build" && mount --rbind /proc "$2/proc"'
        if online:  # the tree's own file is a copy from when it was built
            mounts += ' && mount --bind /etc/resolv.conf "$2/etc/resolv.conf"'
        script = (
            mounts
            + ' && cd / && tree=$2 && shift 2 && exec chroot "$tree" sh -c \'cd /build && exec "$@"\' sh "$@"'
        )
        who = [] if os.geteuid() == 0 else ["--map-root-user"]
        unshare = [
            _host_program("unshare"),
            *who,
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            script,
            "sh",
        ]
        done = subprocess.run(
            leashed([*unshare, str(folder), str(self.root), *argv]),
            env={**_ENVIRONMENT, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        )  # fmt: skip
        if done.returncode:
            tail = "\n".join(done.stdout.strip().splitlines()[-15:])
            raise MachineError(
                f"in the toolbox, `{' '.join(argv)}` failed with status {done.returncode}:\n{tail}"
            )
        return done.stdout


def read_lock(path: Path = LOCK) -> Lock:
    """Parse packages.lock. Raises MachineError for a line that is neither suite, ask nor have."""
    suite, ask, have = "", [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match line.split("#")[0].split():
            case []:
                pass
            case ["suite", name]:
                suite = name
            case ["ask", name]:
                ask.append(name)
            case ["have", name, version, architecture]:
                have.append(Package(name, version, architecture))
            case _:
                raise MachineError(f"{path}:{number}: neither suite, ask nor have: {line}")
    return Lock(suite, ask, have)


def toolbox(progress: Callable[[str], None] = lambda line: None) -> Tree:
    """The toolbox of packages.lock, from the cache or built now. Raises MachineError with what building it
    needs."""
    lock = read_lock()
    return make_tree(lock.suite, lock.ask, LOCK.read_text(), progress)


def is_built() -> bool:
    """Whether the toolbox of packages.lock is in the cache."""
    lock = read_lock()
    return cache.find("toolbox", _key(lock.suite, lock.ask, LOCK.read_text())) is not None


def kernel_tree(suite: str, progress: Callable[[str], None] = lambda line: None) -> Tree:
    """A tree with another suite's kernel, its headers and its compiler; for tests. Not locked. Raises as
    `toolbox` does."""
    return make_tree(suite, _OTHER_SUITES[suite], "", progress)


def bpf_tools(progress: Callable[[str], None] = lambda line: None) -> Tree:
    """A tree with a compiler for BPF and libbpf's headers; for tests. Not locked. Raises as `toolbox`
    does."""
    return make_tree(read_lock().suite, _BPF_TOOLS, "", progress)


def style_tools(progress: Callable[[str], None] = lambda line: None) -> Tree:
    """A tree with what judges sources and manual pages: the kernel's scripts/checkpatch.pl, at its top, and
    groff; for tests. Not locked.

    Its packages are unpacked and not installed: programs run by `Tree.program`. Raises as `toolbox` does.
    """
    suite = read_lock().suite
    source = "linux-source-" + ".".join(toolbox(progress).kernel_release.split(".")[:2])

    def build(folder: Path) -> None:
        root = folder / "root"
        progress("unpacking checkpatch and groff, a minute")
        argv = _mmdebstrap("extract", suite, [source, "groff-base"], root)
        done = subprocess.run(
            leashed(argv),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        )  # fmt: skip
        if done.returncode:
            raise MachineError(f"mmdebstrap could not unpack {source} and groff-base:\n{done.stdout.strip()}")
        archive = root / f"usr/src/{source}.tar.xz"
        (root / "scripts").mkdir()
        with tarfile.open(archive, "r|xz") as members:
            for member in members:
                name = member.name.removeprefix(f"{source}/")
                if name in _CHECKPATCH and (content := members.extractfile(member)):
                    (root / name).write_bytes(content.read())
        archive.unlink()
        missing = [name for name in _CHECKPATCH if not (root / name).exists()]
        if missing:
            raise MachineError(f"{source} holds no {missing[0]}")

    key = _key(suite, [source, "groff-base"], "style")
    return Tree(cache.artefact("toolbox", key, build, needs_bytes=_NEEDS_BYTES, progress=progress) / "root")


def differences(tree: Tree) -> list[str]:
    """How the tree differs from the lock, a sentence for each package; empty when it is the reference."""
    locked = {package.name: package.version for package in read_lock().have}
    built = {package.name: package.version for package in tree.packages}
    sentences = []
    for name in sorted(locked.keys() | built.keys()):
        if name not in built:
            sentences.append(f"{name} is absent, the reference has {locked[name]}")
        elif name not in locked:
            sentences.append(f"{name} is {built[name]}, the reference has none")
        elif built[name] != locked[name]:
            sentences.append(f"{name} is {built[name]}, the reference has {locked[name]}")
    return sentences


def make_tree(suite: str, ask: list[str], locked: str, progress: Callable[[str], None]) -> Tree:
    def build(folder: Path) -> None:
        bootstrap(folder / "root", suite, ask, progress)

    key = _key(suite, ask, locked)
    return Tree(cache.artefact("toolbox", key, build, needs_bytes=_NEEDS_BYTES, progress=progress) / "root")


def _key(suite: str, ask: list[str], locked: str) -> str:
    return cache.hash_of(_RECIPE, suite, *ask, locked)


def bootstrap(root: Path, suite: str, ask: list[str], progress: Callable[[str], None]) -> None:
    """Make the tree `root` of a suite and the packages asked for, what is needed included. Raises as
    `toolbox` does."""
    if platform.machine() != "x86_64":
        raise MachineError(
            f"the guest is an x86_64 machine and its QEMU runs on one; this is {platform.machine()}"
        )
    if os.geteuid() != 0:
        raise MachineError(
            "the toolbox must be built once by root: run `sudo python -m qjump_mn.guest build`"
        )
    paths = [f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_UNPACKED]
    argv = _mmdebstrap("minbase", suite, ask, root, *paths)
    progress(
        f"building the toolbox: Debian {suite} with {len(ask)} packages and what they need, about a minute"
    )
    lines: list[str] = []
    with subprocess.Popen(
        leashed(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("I: "):
                progress(f"toolbox: {line[3:].strip()}")
    if process.returncode:
        tail = "\n".join(lines[-15:])
        raise MachineError(
            f"mmdebstrap could not build the toolbox; is a Debian mirror reachable (QJUMP_MN_MIRROR)?\n{tail}"
        )
    (root / "build").mkdir()


def _mmdebstrap(variant: str, suite: str, packages: list[str], root: Path, *more: str) -> list[str]:
    """The command line that makes the tree `root` of a suite, in namespaces of its own: killed, it leaves
    neither a mount in the cache nor a process."""
    argv = [_host_program("mmdebstrap"), f"--variant={variant}", '--aptopt=APT::Install-Recommends "false"']
    argv += [f"--include={','.join(packages)}", *more]
    argv += [suite.removesuffix(_BACKPORTS), str(root), *mirrors(suite)]
    if os.geteuid() != 0:  # it makes namespaces itself
        return argv
    isolated = ["--mount", "--propagation", "private", "--pid", "--mount-proc", "--fork", "--kill-child"]
    return [_host_program("unshare"), *isolated, *argv]


def mirrors(suite: str) -> list[str]:
    """mmdebstrap's mirror arguments: $QJUMP_MN_MIRROR (URIs or whole `deb` lines, one a line), else those
    that a Debian host uses itself, else none, which is mmdebstrap's own default."""
    chosen = os.environ.get("QJUMP_MN_MIRROR")
    if chosen:
        return [line.strip() for line in chosen.splitlines() if line.strip()]
    apt = shutil.which("apt-get")
    if not apt:
        return []
    # The format is apt's own; Origin tells Debian from its derivatives and from third parties.
    target_format = ["--format", "$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(
        [apt, "indextargets", *target_format], capture_output=True, text=True, errors="replace"
    ).stdout
    release = suite.removesuffix(_BACKPORTS)
    mirrors: dict[str, None] = {}
    for line in listed.splitlines():
        match line.split(" ", 3):
            case ["Debian", codename, "main", uri]:
                base, dash, pocket = codename.partition("-")
                if base and pocket in ("", "updates", "security"):
                    mirrors[f"deb {uri} {release}{dash}{pocket} main"] = None
                if not pocket and suite != release:
                    mirrors[f"deb {uri} {suite} main"] = None
    return list(mirrors) if any(line.endswith(f" {release} main") for line in mirrors) else []


def _host_program(name: str) -> str:
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise MachineError(f"{name} is not installed: run `sudo ./bootstrap`, or `apt-get install {name}`")
    return path


def renew_lock(progress: Callable[[str], None]) -> Tree:
    """Build the toolbox from what the mirror has now and write that into packages.lock. Raises as `toolbox`
    does."""
    lock = read_lock()
    tree = make_tree(
        lock.suite, lock.ask, f"renewed {os.urandom(16).hex()}", progress
    )  # never one from the cache
    kept = [line for line in LOCK.read_text().splitlines() if not line.startswith("have ")]
    have = [f"have {one.name} {one.version} {one.architecture}" for one in tree.packages]
    LOCK.write_text("\n".join([*kept, *have]) + "\n")
    final = tree.root.parent.with_name(_key(lock.suite, lock.ask, LOCK.read_text()))
    if final.exists():  # the mirror has not moved
        shutil.rmtree(tree.root.parent)
    else:
        tree.root.parent.rename(final)
    return Tree(final / tree.root.name)
