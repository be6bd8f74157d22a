"""Choose the mirrors of Debian's packages, and the archive of old ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

BACKPORTS = "-backports"
"""Such a suite holds a few packages only and is used together with the release that it is for."""

ARCHIVE = "https://snapshot.debian.org/archive"
"""Every package that Debian ever had, by the time at which it had it; $QJUMP_MN_ARCHIVE instead, or
nothing where that is empty."""


def lines(suite: str) -> list[str]:
    """Return mmdebstrap's mirror arguments.

    They are $QJUMP_MN_MIRROR (URIs or whole `deb` lines, one a line), else those of a Debian host,
    else none, which means mmdebstrap's default.
    """
    chosen = os.environ.get("QJUMP_MN_MIRROR")
    if chosen:
        return [line.strip() for line in chosen.splitlines() if line.strip()]
    apt = shutil.which("apt-get")
    if not apt:
        return []
    # The format is apt's own; Origin tells Debian from its derivatives and from third parties.
    target_format = [
        "--format",
        "$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)",
        "Created-By: Packages",
    ]
    listed = subprocess.run(
        [apt, "indextargets", *target_format], capture_output=True, text=True, errors="replace"
    ).stdout
    release = suite.removesuffix(BACKPORTS)
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


def suites(suite: str) -> list[tuple[str, str]]:
    """Return the mirrors' addresses, each with a suite there; none if nobody names one."""
    found = []
    for line in lines(suite):
        if match := re.match(r"(?:deb\s+(?:\[[^]]*\]\s+)?)?([a-z]+:/\S+)(?:\s+(\S+))?", line):
            found.append((_address(match[1]), match[2] or suite))
    return found


def addresses(suite: str) -> list[str]:
    """Return the mirrors' addresses, without duplicates and trailing slashes; none if nobody names
    one."""
    return list(dict.fromkeys(address for address, _ in suites(suite)))


def _address(uri: str) -> str:
    # "copy:" is apt's word for files that it copies.
    return re.sub(r"^copy:", "file:", uri).rstrip("/")


def archive() -> str:
    """Return the address of the archive of old packages, without a trailing slash; empty if there
    is none."""
    return os.environ.get("QJUMP_MN_ARCHIVE", ARCHIVE).rstrip("/")
