"""Unpack Debian packages without dpkg.

Set-user bits are dropped, because everything runs as root, and so is what no program of the guest
reads. What the packages' scripts would do is in postinst.py.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from qjump_mn.errors import MachineError
from qjump_mn.toolbox import postinst
from qjump_mn.toolbox.cpio import Node

# What no program of the guest reads: documents, other languages, and what is for an init system.
_NO_PATH = re.compile(
    r"(etc/(apparmor\.d|cron\.(d|daily|hourly|monthly|weekly)|init\.d|logrotate\.d"
    r"|rc[0-6S]\.d|systemd|update-motd\.d|xdg)"
    r"|(var/)?(run|lock)|usr/lib/(systemd|udev)"
    r"|usr/share/(applications|apport|bash-completion|bug|doc|doc-base|fish|gtk-doc|help|icons|info"
    r"|lintian|locale|man|menu|metainfo|pixmaps|polkit-1|python3/runtime\.d|zsh))(/|$)"
)
_MERGED = ("bin", "sbin", "lib", "lib64")
"""Links to folders of usr/."""


def nodes(paths: Iterable[Path], scratch: Path) -> dict[str, Node]:
    """Return the files of packages for the guest, by names relative to /.

    ``paths`` are the packages' files, in an order that does not matter. Contents are written into
    the folder ``scratch``. Raises MachineError for a file that is not a package.
    """
    found: dict[str, Node] = {}
    scripts: list[str] = []
    for path in sorted(paths):
        members = _members(path)
        with _tar(path, members, "data") as archive:
            found |= _files(archive, scratch / path.name)
        with _tar(path, members, "control") as archive:
            if script := _text(archive, "./postinst"):
                scripts.append(script)
    texts = {
        name: node.content.read_text()
        for name, node in sorted(found.items())
        if postinst.DESCRIPTIONS.fullmatch(name) and isinstance(node.content, Path)
    }
    links = postinst.alternatives(scripts)
    there = {inside(one.link): one for one in links if inside(one.path) in found}
    for name, one in there.items():
        if not _NO_PATH.match(name):
            found[name] = Node.link(f"/etc/alternatives/{one.name}")
            found[f"etc/alternatives/{one.name}"] = Node.link(one.path)
    return found | postinst.setup_script(scripts, texts)


def _files(archive: tarfile.TarFile, prefix: Path) -> dict[str, Node]:
    """Return the files of a package's archive that the guest needs, with contents in files of that
    prefix."""
    found: dict[str, Node] = {}
    for number, member in enumerate(archive):
        name = inside(member.name)
        if not name or ".." in PurePosixPath(name).parts or _NO_PATH.match(name):
            continue
        mode = member.mode & 0o1777
        if member.isdir():
            if name not in _MERGED:
                found[name] = Node.folder(mode)
        elif member.issym():
            found[name] = Node.link(member.linkname)
        elif member.islnk():
            if (other := inside(member.linkname)) in found:
                found[name] = found[other]
        elif content := archive.extractfile(member):
            path = prefix.with_name(f"{prefix.name}.{number}")
            path.write_bytes(content.read())
            found[name] = Node.file(path, mode)
    return found


def inside(path: str) -> str:
    """Return a path as a name relative to /, below usr/ where Debian has merged the two."""
    name = str(PurePosixPath("/", path)).lstrip("/")
    return f"usr/{name}" if name.partition("/")[0] in _MERGED and "/" in name else name


def _members(path: Path) -> dict[str, bytes]:
    """Return the members of a package's file, which is an ar archive (deb(5))."""
    data = path.read_bytes()
    if not data.startswith(b"!<arch>\n"):
        raise MachineError(f"{path.name} is not a Debian package")
    members: dict[str, bytes] = {}
    at = 8
    while at + 60 <= len(data):
        name, size = data[at : at + 16].decode().rstrip(" /"), int(data[at + 48 : at + 58])
        members[name] = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return members


def _tar(path: Path, members: dict[str, bytes], part: str) -> tarfile.TarFile:
    """Open a part of a package, `data` or `control`."""
    name = next((name for name in members if name.startswith(f"{part}.tar")), "")
    try:
        return tarfile.open(fileobj=io.BytesIO(members.get(name, b"")), mode="r:*")
    except tarfile.TarError as error:
        raise MachineError(
            f"{path.name} cannot be unpacked: its {name or part} is compressed in a way that this "
            "Python does not know"
        ) from error


def _text(archive: tarfile.TarFile, name: str) -> str:
    """Return the text of a member; "" if there is none."""
    content = archive.extractfile(name) if name in archive.getnames() else None
    return content.read().decode(errors="replace") if content else ""
