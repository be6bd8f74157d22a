"""Mirrors of our own with lists of packages: of packages made here, or of the lists that apt
has."""

from __future__ import annotations

import hashlib
import lzma
import subprocess
from collections.abc import Mapping
from pathlib import Path

from qjump_mn.toolbox import mirrors

SUITE = "trixie"
POCKETS = {
    SUITE: "debian",
    f"{SUITE}-updates": "debian",
    f"{SUITE}-security": "debian-security",
}
"""The archive of each suite."""


def lines(folder: Path) -> str:
    """The mirror's lines for $QJUMP_MN_MIRROR."""
    return "\n".join(
        f"deb file:{folder}/{archive} {suite} main" for suite, archive in POCKETS.items()
    )


def add(
    folder: Path,
    fields: Mapping[str, str],
    files: Mapping[str, str],
    *,
    postinst: str = "",
    suite: str = SUITE,
) -> Path:
    """A package in a suite: made, put into the pool and listed. `#!` at a file's beginning makes
    it a program that has the set-user bit, `->` a link."""
    wanted = {"Architecture": "all", "Maintainer": "a <a@b.c>", "Description": "a package"}
    control = {"Package": fields["Package"], **wanted, **fields}
    source = folder / "sources" / f"{control['Package']}_{control['Version']}"
    for name, text in {"DEBIAN/control": _stanza(control), **files}.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
            continue
        path.write_text(text)
        path.chmod(0o4755 if text.startswith("#!") else 0o644)
    if postinst:
        (source / "DEBIAN/postinst").write_text(f"#!/bin/sh\n{postinst}\n")
        (source / "DEBIAN/postinst").chmod(0o755)
    place = f"pool/main/{source.name}_all.deb"
    path = folder / POCKETS[suite] / place
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = ["dpkg-deb", "-Zxz", "--root-owner-group", "--build", str(source), str(path)]
    subprocess.run(argv, check=True, capture_output=True)
    data = path.read_bytes()
    listed = {
        **control,
        "Filename": place,
        "Size": str(len(data)),
        "SHA256": hashlib.sha256(data).hexdigest(),
    }
    stanzas = folder / f"{suite}.stanzas"
    text = (stanzas.read_text() if stanzas.exists() else "") + _stanza(listed) + "\n"
    stanzas.write_text(text)
    publish(folder, suite, text)
    return path


def publish(folder: Path, suite: str, packages: str) -> Path:
    """A suite's list of packages, with its Release file; the list's path."""
    data = lzma.compress(packages.encode(), preset=1)
    path = folder / POCKETS[suite] / "dists" / suite / "main/binary-amd64/Packages.xz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    text = f"Codename: {suite}\nSHA256:\n {sha256} {len(data)} main/binary-amd64/Packages.xz\n"
    (path.parents[2] / "Release").write_text(text)
    return path


def of_apt(folder: Path, scratch: Path) -> bool:
    """The lists of Debian's mirrors as apt gets them, without packages; false if it gets none."""
    (scratch / "sources.list").write_text("\n".join(mirrors.lines(SUITE)) + "\n")
    options = {
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": scratch,
        "Dir::Cache": scratch,
        "APT::Architecture": "amd64",
    }
    argv = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items()), "update"]
    subprocess.run(argv, capture_output=True)
    for suite in POCKETS:
        found = [*scratch.glob(f"lists/*_{suite}_main_binary-amd64_Packages*")]
        if found:
            argv = ["/usr/lib/apt/apt-helper", "cat-file", *map(str, found)]
            text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            publish(folder, suite, text)
    return (folder / POCKETS[SUITE]).exists()


def _stanza(fields: Mapping[str, str]) -> str:
    return "".join(f"{key}: {value}\n" for key, value in fields.items())
