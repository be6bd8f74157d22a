"""Other versions of QEMU: which of their bits are the locked one's. The table in docs/machine.md is this.

Kernel, initramfs and plan are the same in all; a version that has not the machine type of ours runs an older
one, beside ours with that type.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import msgspec
import pytest

import qjump_mn
from qjump_mn import guest, toolbox
from qjump_mn.backends.guest import RUN_TRIAL, setup
from qjump_mn.guest import Image, Job
from qjump_mn.guest.machine import qemu_argv
from qjump_mn.results.manifest import sha256_of
from qjump_mn.steps.compile import trial_steps
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.processors import X86_64
from tests.guest import trees
from tests.guest.laboratory import fig3a

pytestmark = [pytest.mark.guest, pytest.mark.nightly, pytest.mark.fresh]

MACHINE = "pc-q35-10.0"
OLD = "pc-q35-7.2"
QEMUS = {
    "locked": ("", MACHINE),
    "locked, older machine": ("", OLD),
    "bookworm's": ("qemu-bookworm", OLD),
    "trixie-backports'": ("qemu-backports", MACHINE),
}
"""By name: lock of the tree that QEMU is from, and the type of its machine."""


def digest(image: Image, kind: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, str]]:
    """QEMU's version, and the files that a short trial with bulk traffic leaves, booted by it."""

    def argv(*arguments: object, **options: object) -> list[str]:
        found = [one.replace(MACHINE, kind) for one in qemu_argv(*arguments, **options)]  # type: ignore[arg-type]
        # Some are built with their translator in a module of its own.
        modules = image.tree / X86_64.libraries / "qemu"
        return ["/usr/bin/env", f"QEMU_MODULE_DIR={modules}", *found]

    plan = fig3a("duration=500ms", "warmup=500ms", "workloads.ping.interval=50ms")
    trial = next(trial for trial in plan.trials() if trial.arm.name == "contended")
    job = Job(
        entry=RUN_TRIAL, args={"steps": msgspec.to_builtins(trial_steps(trial))}, virtual_deadline_s=200
    )
    with monkeypatch.context() as patched:
        patched.setattr(guest, "qemu_argv", argv)
        result = guest.run(image, job, out, setup=setup(trial.network.skeleton()), wall_deadline_s=3000)
    assert result.exit_code == 0, (out / "console.log").read_text()[-2000:]
    files = (path for path in out.rglob("*") if path.is_file() and path.name != "console.log")
    return result.qemu_version, {str(path.relative_to(out)): sha256_of(path) for path in sorted(files)}


@functools.cache
def table() -> str:
    """What docs/machine.md says."""
    text = (Path(qjump_mn.__file__).parents[1] / "docs/machine.md").read_text()
    found = re.search(r"<!-- other QEMUs -->\n(.*?)\n\n", text, re.DOTALL)
    return found[1] if found else ""


def test_the_bits_of_other_qemus(image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = [], {}
    for name, (lock, kind) in QEMUS.items():
        # Whoever keeps results knows by these hashes what they are of.
        sha256 = {**image.sha256, "qemu": f"{lock} {kind}"}
        other = msgspec.structs.replace(image, sha256=sha256) if lock or kind != MACHINE else image
        if lock:
            tree = trees.needed(functools.partial(toolbox.made, lock))
            have = {one.package.name: one.package.version for one in locks.read(lock).have}
            version = have["qemu-system-x86"].partition(":")[2]
            other = msgspec.structs.replace(other, tree=tree.root, qemu_version=version)
        found[name] = digest(other, kind, tmp_path / name, monkeypatch)
    for name, (lock, kind) in QEMUS.items():
        version, files = found[name]
        base = found["locked" if kind == MACHINE else "locked, older machine"][1]
        raw = [file for file in files if "raw/" in file]
        same = sum(files[file] == base.get(file) for file in raw)
        told = "identical" if files == base else f"{same} of {len(raw)} files of the programs are the same"
        rows.append(f"| {name} | {version} | {kind} | {told if lock else 'what is compared with'} |")
    print("\n".join(rows))
    assert "\n".join(rows) in table()
