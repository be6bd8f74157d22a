"""Choose the toolbox's files for the guest, by dpkg's lists.

Files for screens, disks, users and services are left out, because boot time grows with the image.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.tree import Tree

# What the guest holds; a program for a new workload is one word here and one line in
# locks/toolbox.lock.
PACKAGES = (
    "base-files bash coreutils dash ethtool grep hostname iperf3 iproute2 iputils-ping kmod "
    "libc-bin libmemcached-tools linuxptp mawk memcached mininet mount openvswitch-switch procps "
    "ptpd python3 python3-msgspec sed tcpdump util-linux"
).split()

# Depended upon, never used: package management and its Perl, users and sessions, an init system,
# iperf 2 with its C++.
_NO_PACKAGE = frozenset(
    "adduser apt debconf dpkg init-system-helpers iperf libdb5.3t64 libpam-modules libpam-runtime "
    "libsystemd-shared login "
    "openssl passwd perl perl-base systemd sysvinit-utils tar udev uuid-runtime".split()
)

# Left out of the packages that stay: documents, other languages, character sets, tests, tools for
# building and screens.
_NO_PATH = re.compile(
    r"(etc/(init\.d|cron\.|systemd|apparmor|logrotate|pam\.d|security|skel)"
    r"|usr/(games|include|lib/(systemd|udev|tmpfiles\.d|sysusers\.d|valgrind))"
    r"|usr/share/(bash-completion|bug|common-licenses|doc|doc-base|gcc|gdb|i18n|icons|info|lintian|locale|man|memcached|menu"
    r"|openvswitch/bugtool|perl5|pixmaps|polkit|ptpd|python3|zoneinfo|zsh)"
    r"|usr/lib/x86_64-linux-gnu/(gconv|engines|perl|ossl-modules)"
    r"|usr/lib/python3[.0-9]*/(ensurepip|idlelib|pydoc_data|test|tkinter|turtledemo|venv)"
    r"|usr/s?bin/(vtep-ctl|ovs-(bugtool|docker|l3ping|parse-backtrace|pcap|pki|tcpdump|tcpundump|test|testcontroller|vlan-test)))"
)

# Made by the packages' scripts, so that no package owns them; users and groups are those the
# services run as.
_MADE = (
    "bin sbin lib lib64 etc/passwd etc/group etc/nsswitch.conf etc/ld.so.cache etc/os-release"
).split()


def files(tree: Tree) -> dict[str, Node]:
    """Return every file of the guest's packages by its name relative to /, without bytecode.

    Raises MachineError if a package is missing.
    """
    names = {
        name
        for package in _closure(tree)
        for name in _owned(tree, package)
        if not _NO_PATH.match(name)
    }
    names.update(_MADE)
    for folder in (
        "usr/bin",
        "usr/sbin",
    ):  # `awk` and its like: links that packages make through /etc/alternatives
        for path in (tree.root / folder).iterdir():
            if path.is_symlink() and os.readlink(path).startswith("/etc/alternatives/"):
                names.update((f"{folder}/{path.name}", f"etc/alternatives/{path.name}"))
    return {name: node for name in sorted(names) if (node := node_of(tree.root / name))}


def identity() -> str:
    """Return a hash of the choice."""
    return cache.hash_of(*PACKAGES, "without", *sorted(_NO_PACKAGE), _NO_PATH.pattern, *_MADE)


def node_of(path: Path) -> Node | None:
    """Return the node for `path`; None for nothing, a device or a socket.

    Set-user bits are dropped, because everything runs as root.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    mode = stat.S_IMODE(status.st_mode) & 0o1777
    if stat.S_ISLNK(status.st_mode):
        return Node.link(os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return Node.folder(mode)
    return Node.file(path, mode) if stat.S_ISREG(status.st_mode) else None


def dropped_in(folder: Path) -> dict[str, Node]:
    """Return everything below `folder`, by names relative to it."""
    nodes = {str(path.relative_to(folder)): node_of(path) for path in folder.rglob("*")}
    return {name: node for name, node in nodes.items() if node}


def _closure(tree: Tree) -> set[str]:
    """Return the guest's packages and their dependencies; of alternatives the first installed
    one."""
    needs: dict[str, str] = {}
    providers: dict[str, str] = {}
    for stanza in (tree.root / "var/lib/dpkg/status").read_text().split("\n\n"):
        fields = dict(re.findall(r"^(Package|Depends|Pre-Depends|Provides): (.*)$", stanza, re.M))
        if "Package" not in fields:
            continue
        needs[fields["Package"]] = f"{fields.get('Depends', '')},{fields.get('Pre-Depends', '')}"
        for provided in _names(fields.get("Provides", "").replace(",", "|")):
            providers.setdefault(provided, fields["Package"])
    closure: set[str] = set()
    todo = list(PACKAGES)
    for name in todo:
        if name not in needs:
            raise MachineError(
                f"the toolbox has no package {name}: add `ask {name}` to locks/toolbox.lock and "
                "run `qjump-mn machine lock toolbox`"
            )
    while todo:
        name = todo.pop()
        if name in closure or name in _NO_PACKAGE:
            continue
        closure.add(name)
        for need in needs[name].split(","):
            installed = [one if one in needs else providers.get(one) for one in _names(need)]
            todo += [one for one in installed if one][:1]
    return closure


def _names(alternatives: str) -> Iterable[str]:
    # "libc6 (>= 2.38) | python3:any" gives libc6 and python3.
    return (match[1] for match in re.finditer(r"(?:^|\|)\s*([a-z0-9][a-z0-9+.-]*)", alternatives))


def _owned(tree: Tree, package: str) -> Iterable[str]:
    info = tree.root / "var/lib/dpkg/info"
    listed = next(
        (
            path
            for path in (info / f"{package}.list", info / f"{package}:amd64.list")
            if path.exists()
        ),
        None,
    )
    if not listed:
        raise MachineError(
            f"{info} has no list of the files of {package}: remove the toolbox with `clean` and "
            "build it again"
        )
    return (line[1:] for line in listed.read_text().splitlines() if line != "/.")
