"""Fetch the crates that our Rust programs need once, so that cargo builds without a network.

Cargo compares each crate with the checksum in Cargo.lock.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox.tree import Tree

LOCK = "Cargo.lock"
MANIFEST = "Cargo.toml"
HOME = ".cargo-home"
"""The folder beside the sources where cargo finds the crates."""

OFFLINE = {"CARGO_HOME": f"/build/{HOME}", "CARGO_NET_OFFLINE": "true"}
"""Cargo's settings for building with them."""

_TARGETS = ("--target=x86_64-unknown-linux-gnu", "--target=aarch64-unknown-linux-gnu")
"""For whom our programs are built (arm64.py); crates that only others need are not fetched."""

_NEEDS_BYTES = 100 << 20
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # the host's: the toolbox has none
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


def fetched(tree: Tree, source: Path, progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return a CARGO_HOME with the crates of `source`/Cargo.lock, fetched now if there is none.

    Raises MachineError if they cannot be fetched.
    """

    def build(folder: Path) -> None:
        progress(f"fetching the crates of {source.name}")
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _fetch(tree, source, Path(scratch))
            # What cargo unpacked is left behind: it unpacks again.
            for part in ("index", "cache"):
                shutil.copytree(Path(scratch, HOME, "registry", part), folder / "registry" / part)
        progress(f"compiling {source.name} with them")

    key = cache.hash_of(tree.packages_sha256, (source / LOCK).read_bytes())
    return cache.artefact("crates", key, build, needs_bytes=_NEEDS_BYTES, progress=progress)


def _fetch(tree: Tree, source: Path, scratch: Path) -> None:
    shutil.copyfile(source / LOCK, scratch / LOCK)
    workspace = tomllib.loads((source / MANIFEST).read_text()).get("workspace", {})
    for name in (".", *workspace.get("members", ())):
        package = scratch / name
        (package / "src").mkdir(parents=True)
        shutil.copyfile(source / name / MANIFEST, package / MANIFEST)
        for root in ("main.rs", "lib.rs"):
            (package / "src" / root).touch()  # cargo reads no manifest without what it names
    certificates = Path(os.environ.get("SSL_CERT_FILE", _CERTIFICATES))
    if not certificates.is_file():
        raise MachineError(
            f"{certificates} is missing, without which no crate is fetched: run `./bootstrap`, or "
            "`apt-get install ca-certificates`"
        )
    shutil.copyfile(certificates, scratch / "certificates")
    environment = {name: value for name in _PROXIES if (value := os.environ.get(name))}
    environment |= {"CARGO_HOME": OFFLINE["CARGO_HOME"], "CARGO_HTTP_CAINFO": "/build/certificates"}
    try:
        tree.run(
            ["cargo", "fetch", "--quiet", "--locked", *_TARGETS],
            scratch,
            environment,
            online=True,
        )
    except MachineError as error:
        last = str(error).splitlines()[-1].strip()
        raise MachineError(
            f"the crates of {source.name} cannot be fetched, connect this machine to Rust's "
            f"registry once: {last}"
        ) from error
