"""List what a release is made of, as an SPDX 2.3 document in JSON.

It names the release's own files; the Python packages that requirements.lock has; the crates in
each Cargo.lock; and the Debian packages of the locks that the machine files are built from. Locks
know no licences, so only ours is declared.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qjump_mn import cache, toolbox
from qjump_mn.toolbox import added, arm64, crates, outer_machine, um
from qjump_mn.toolbox import lock as locks

ROOT = Path(__file__).parent.parent
DOCUMENT, UNKNOWN = "SPDXRef-DOCUMENT", "NOASSERTION"
OURS = {
    "qjump_mn-": ("qjump-mn", ROOT / "pyproject.toml"),
    "qjump_sim-": ("qjump-sim", ROOT / "simulator/python/pyproject.toml"),
    "mininet_qos-": ("mininet-qos", ROOT / "mininet-qos/pyproject.toml"),
    "qjump-mn-machine": ("qjump-mn-machine", ROOT / "pyproject.toml"),
}
"""What each file of a release belongs to, by the beginning of its name, and who has its licence."""

_MACHINE = (toolbox.NAME, um.LOCK, added.NAME)
_ARM64 = (toolbox.NAME, um.LOCK, arm64.COMPILER, outer_machine.LOCK)
_CRATES = ("simulator", "native/barrier")
Entry = dict[str, Any]


def document(version: str, commit: str, epoch_s: int, paths: Iterable[Path]) -> Entry:
    """Return the document of a release whose files are ``paths``, made at ``epoch_s`` (Unix
    time). Files that belong to no package of ours, such as notes, are left out."""
    parts: dict[str, Entry] = {}
    relations: dict[tuple[str, str, str], None] = {}
    for path in paths:
        own = next((own for start, own in OURS.items() if path.name.startswith(start)), None)
        if own is None:
            continue
        package = _own(path, version, *own)
        parts[package["SPDXID"]] = package
        relations[DOCUMENT, "DESCRIBES", package["SPDXID"]] = None
        for kind, other in _made_of(path.name):
            parts[other["SPDXID"]] = other
            relations[package["SPDXID"], kind, other["SPDXID"]] = None
    created = datetime.datetime.fromtimestamp(epoch_s, datetime.UTC)
    name = f"qjump-mn-{version}"
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{commit}",
        "creationInfo": {
            "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: qjump-mn-release-{version}"],
        },
        "packages": list(parts.values()),
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in relations
        ],
    }


def _made_of(name: str) -> Iterator[tuple[str, Entry]]:
    """Yield what the file of a release is related to, and how."""
    if name.startswith("qjump_mn-"):
        yield from (("DEPENDS_ON", entry) for entry in python_packages())
    elif name.startswith("qjump_sim-"):
        yield from (("STATIC_LINK", entry) for entry in rust_crates(ROOT / "simulator"))
    elif name.startswith("qjump-mn-machine"):
        for lock in _ARM64 if "arm64" in name else _MACHINE:
            yield from (("GENERATED_FROM", entry) for entry in debian_packages(lock))
        for folder in _CRATES:
            yield from (("STATIC_LINK", entry) for entry in rust_crates(ROOT / folder))


def python_packages() -> list[Entry]:
    """Return the packages of requirements.lock that running qjump-mn needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[<>=!~ ]", words)[0] for words in project["dependencies"]]
    text = (ROOT / "requirements.lock").read_text()
    blocks = re.findall(r"^([\w.-]+)==([^\s;\\]+)(.*?)(?=^\w|\Z)", text, re.M | re.S)
    needs: dict[str, list[str]] = {}
    for name, _, rest in blocks:
        for parent in re.findall(r"#\s+(?:via )?([\w.-]+)$", rest, re.M):
            needs.setdefault(parent, []).append(name)
    used = _reached(names, needs)
    return [
        _package("pypi", name, version, f"pkg:pypi/{name}@{quote(version)}")
        for name, version, _ in blocks
        if name in used
    ]


def rust_crates(folder: Path) -> list[Entry]:
    """Return the crates of a folder's Cargo.lock that are compiled into its programs."""
    table = tomllib.loads((folder / crates.LOCK).read_text())["package"]
    needs = {
        each["name"]: [words.partition(" ")[0] for words in each.get("dependencies", ())]
        for each in table
        if "source" in each
    }
    manifest = tomllib.loads((folder / crates.MANIFEST).read_text())
    members = manifest.get("workspace", {}).get("members", [])
    manifests = [
        manifest,
        *(tomllib.loads((folder / each / crates.MANIFEST).read_text()) for each in members),
    ]
    used = _reached([name for each in manifests for name in each.get("dependencies", ())], needs)
    return [
        _package("crate", name, version, f"pkg:cargo/{name}@{quote(version)}", each["checksum"])
        for each in table
        if (name := each["name"]) in used and "source" in each and (version := each["version"])
    ]


def debian_packages(lock: str) -> list[Entry]:
    """Return the packages of one of our locks."""
    return [
        _package(
            "deb",
            f"{package.name}-{package.architecture}",
            package.version,
            f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}"
            f"?arch={package.architecture}",
            one.sha256,
            shown=package.name,
        )
        for one in locks.read(lock).have
        if (package := one.package)
    ]


def _reached(names: Iterable[str], needs: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names and all that they need, directly or not."""
    used: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in used:
            used.add(name)
            waiting += needs.get(name, ())
    return used


def _own(path: Path, version: str, name: str, pyproject: Path) -> Entry:
    licence = tomllib.loads(pyproject.read_text())["project"]["license"]
    return _package("release", path.name, version, "", cache.hash_of_file(path), shown=name) | {
        "packageFileName": path.name,
        "licenseDeclared": licence,
    }


def _package(
    kind: str, name: str, version: str, purl: str, sha256: str = "", *, shown: str = ""
) -> Entry:
    """Return the entry of a package. ``kind``, ``name`` and ``version`` identify it."""
    entry: Entry = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", _escape, f"{kind}-{name}-{version}"),
        "name": shown or name,
        "versionInfo": version,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "copyrightText": UNKNOWN,
    }
    if sha256:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    if purl:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl"}
        entry["externalRefs"] = [reference | {"referenceLocator": purl}]
    return entry


def _escape(found: re.Match[str]) -> str:
    """Return a character that an SPDX identifier may not have as its code, so that names differ."""
    return f"-{ord(found[0]):x}-"
