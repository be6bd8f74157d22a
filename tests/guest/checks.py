"""The checks of tests/guest/qdisc in a guest: which kernels there are, how some checks are run on
one, and what that leaves."""

from __future__ import annotations

import base64
import json
import lzma
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qjump_mn import toolbox
from qjump_mn.toolbox import build, debug
from qjump_mn.toolbox.cpio import Node
from tests.guest import trees
from tests.guest.vm import Image, Job, Setup, prepare, run
from tests.guest.vm.modules import MODULES, QDISCS
from tests.support.nights import nightly

QDISC = Path(__file__).parent / "qdisc"
KERNELS = ("6.12", "6.1", "7")
"""Debian's kernels that our modules are tested on, each by its lock's name, kernel-NAME."""
OTHERS_NIGHTLY = nightly(KERNELS, but=["6.12"])
"""For what takes a minute of a core on each: Debian 13's kernel always, the others every night."""
OF_DEBIAN = [*MODULES, *(name for name in QDISCS if name != "sch_dualpi2")]
COST = ["qdisc_cost"]
COMPARED = {"6.12": ["qdisc_compare"], "7": ["qdisc_compare", "bpf qdisc"]}
WITH_BPF = {"qdisc_cost", "qdisc_compare"}
_BPF = """
mkdir out
for source in *.c; do
    clang --target=bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -I/usr/include/x86_64-linux-gnu -c $source -o out/${source%.c}.o
done
llvm-strip -g out/*.o
"""

# What the kernel says of every module from outside its tree, and of every qdisc below HTB that
# holds packets back (netem too).
EXPECTED_LOG = {
    "sch_qjump: loading out-of-tree module taints kernel.",
    "htb: qjump qdisc 6: is non-work-conserving?",
}

_LATE = re.compile(r"hrtimer: interrupt took \d+ ns|sched: DL replenish lagged too much")


def of_note(log: Iterable[str]) -> list[str]:
    """The lines but those that say nothing of modules, each once a boot at most: a timer was due
    again while its interrupt was handled, which happens within 100,000 packets; the scheduler found
    itself late, where the host is busy elsewhere."""
    return [line for line in log if not _LATE.fullmatch(line)]


@dataclass
class Guest:
    """What a guest has left: `kernel` is our name of it, one of KERNELS."""

    kernel: str
    folder: Path
    results: dict[str, Any]

    @classmethod
    def read(cls, kernel: str, folder: Path) -> Guest:
        """Read what the runner has left; it must have ended well."""
        assert (folder / "stderr").read_text() == ""
        results = json.loads((folder / "results.json").read_text())
        results["log"] = of_note(results["log"])
        return cls(kernel, folder, results)

    def values(self, check: str) -> dict[str, Any]:
        """What a check reported; it must have ended well."""
        stderr = (self.folder / f"{check}.stderr").read_text()
        assert (self.results["checks"][check]["code"], stderr) == (0, ""), stderr
        values: dict[str, Any] = json.loads((self.folder / f"{check}.json").read_text())
        return values


# Debian 12's tc, and the two of its libraries that the guest, which is Debian 13, has not.
OTHER_TC = {
    "opt/bookworm/tc": "sbin/tc",
    "opt/bookworm/lib/libbsd.so.0": "lib/x86_64-linux-gnu/libbsd.so.0",
    "opt/bookworm/lib/libmd.so.0": "lib/x86_64-linux-gnu/libmd.so.0",
}


def kernel_image(kernel: str) -> Image:
    """What is checked is the kernel."""
    usr = trees.kernel_tree(kernel).root / "usr"
    extra: dict[str, Node] = {}
    if kernel == "6.1":
        extra = {name: Node.file((usr / path).resolve()) for name, path in OTHER_TC.items()}
    return prepare(print, extra=extra, kernel=kernel)


def outside(image: Image, name: str) -> bytes:
    """A kernel module that is not in the image."""
    path = next((image.kernel.parents[1] / "usr/lib/modules").glob(f"*/kernel/{name}.ko*"))
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def debug_module(name: str, suite: str, folder: Path) -> bytes:
    """The module of ``name``.c beside this file, compiled for a debug kernel."""
    shutil.copy(Path(__file__).with_name(f"{name}.c"), folder)
    (folder / "Makefile").write_text(f"obj-m := {name}.o\n")
    kernel = debug.kernel_tree(suite)
    build_folder = f"/usr/lib/modules/{kernel.kernel_release}/build"
    kernel.run(["make", "-C", build_folder, "M=/build", "modules"], folder)
    return (folder / f"{name}.ko").read_bytes()


def job_of(
    checks: list[list[str]],
    data: dict[str, bytes],
    deadline_s: float,
    others: Sequence[str] = MODULES,
) -> Job:
    """The job that runs these checks, with what they import: a job's room is small. `data` are
    files for /tmp, of which kernel modules are loaded; `others` are loaded at the end."""
    sources = {path.stem: path.read_text() for path in (QDISC / "checks").glob("*.py")}
    wanted, found = [name for name, *_ in checks], {}
    for name in wanted:
        found[f"{name}.py"] = sources[name]
        imported = re.findall(r"^(?:import|from) (\w+)", sources[name], re.MULTILINE)
        wanted += [other for other in imported if other in sources and other not in wanted]
    packed = {name: base64.b64encode(lzma.compress(data[name], preset=9)).decode() for name in data}
    plan = {"checks": checks, "data": packed, "others": others}
    files = {**found, "plan.json": json.dumps(plan)}
    script = (QDISC / "runner.py").read_text()
    return Job(script=script, files=files, virtual_deadline_s=deadline_s)


def bpf_programs() -> dict[str, bytes]:
    """The objects of tests/guest/qdisc/bpf by their names."""
    tree = trees.needed(lambda progress: toolbox.made("bpf", progress))
    made = build.built(tree, "BPF programs", build.Recipe(QDISC / "bpf", _BPF), print)
    return {path.name: path.read_bytes() for path in made.iterdir()}


def measured(kernel: str, checks: list[list[str]], folder: Path) -> Guest:
    """Boot that kernel and run the checks."""
    image = kernel_image(kernel)
    data = {}
    if COST in checks:
        data["pktgen.ko"] = outside(image, "net/core/pktgen")
    if {name for name, *_ in checks} & WITH_BPF:
        data |= {"cls_bpf.ko": outside(image, "net/sched/cls_bpf"), **bpf_programs()}
    run(image, Setup(), job_of(checks, data, 2000, OF_DEBIAN), folder)
    return Guest.read(kernel, folder)
