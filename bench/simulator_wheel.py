"""Pack a compiled simulator as a wheel: for each Python from 3.11, on one processor."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from qjump_mn.toolbox.simulator import IDENTITY

ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "simulator/python"
_TAG = "cp311-abi3-manylinux_2_34_{processor}"
"""Of toolbox/simulator.py's module: PyO3's stable interface, and the C library that it needs."""


def write(folder: Path, package: Path, processor: str, identity: str, epoch_s: int) -> Path:
    """Write the wheel of the folder that has `qjump_sim`, and return its path.

    ``processor`` is named as by the kernel; ``identity`` is that of the sources. ``epoch_s`` is the
    time of all members, in Unix time: the same input gives the same bytes.
    """
    tag = _TAG.format(processor=processor)
    name = f"qjump_sim-{version()}"
    files = {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    files[IDENTITY] = identity.encode()
    info = f"{name}.dist-info"
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: qjump-mn\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    )
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    path = folder / f"{name}-{tag}.whl"
    moment = time.gmtime(epoch_s)[:6]
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in files.items():
            entry = zipfile.ZipInfo(member, moment)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return path


def version() -> str:
    """Return the simulator's version."""
    cargo = tomllib.loads((PROJECT / "Cargo.toml").read_text())
    return str(cargo["package"]["version"])


def metadata() -> str:
    """Return the wheel's METADATA: what pyproject.toml says, and the README."""
    project: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", project["name"]),
        ("Version", version()),
        ("Summary", project["description"]),
        ("License-Expression", project["license"]),
        ("License-File", "LICENSE"),
        ("Requires-Python", project["requires-python"]),
        *(("Requires-Dist", words) for words in project["dependencies"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    return f"{head}\n{(PROJECT / project['readme']).read_text()}"


def _record(files: dict[str, bytes], own: str) -> bytes:
    """Return RECORD: the hash and size of each other member."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        writer.writerow([name, f"sha256={digest}", len(content)])
    writer.writerow([own, "", ""])
    return text.getvalue().encode()
