"""``doctor`` and ``clean``: what this machine can do, and what is left on it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from qjump_mn import cache, cached_files, environment, guest, scratch, toolbox
from qjump_mn.backends import claim, needs
from qjump_mn.errors import MachineError, QJumpError
from qjump_mn.guest.advice import advised
from qjump_mn.guest.cores import WAITS
from qjump_mn.toolbox import machines, making


class Finding(NamedTuple):
    """One thing looked at; ``remedy`` says what to do where it is not well, and ``required`` whether anything
    works without it."""

    what: str
    well: bool
    says: str
    remedy: str = ""
    required: bool = True


def report(out: Console, *, as_json: bool = False) -> int:
    """Print each finding as soon as it is known, or all as JSON; return 0 when experiments run here, else
    3."""
    findings = []

    def say(line: str) -> None:
        if not as_json:
            out.print(f"         {line}", markup=False)

    for finding in _findings(say):
        findings.append(finding)
        if as_json:
            continue
        mark = "ok     " if finding.well else "missing" if finding.required else "no     "
        out.print(f"{mark}  {finding.what}: {finding.says}", markup=False)
        if not finding.well and finding.remedy:
            say(finding.remedy)
    well = all(finding.well for finding in findings if finding.required)
    backend, why = _backend(findings)
    if as_json:
        each = [one._replace(remedy="" if one.well else one.remedy)._asdict() for one in findings]
        told = {"runs": well, "backend": backend, "why": why, "findings": each}
        out.print(msgspec.json.format(msgspec.json.encode(told), indent=1).decode(), markup=False)
    else:
        out.print(f"backend {backend}: {why}", markup=False)
        words = "experiments run here" if well else "experiments do not run here yet: see above"
        out.print(words, markup=False)
    return 0 if well else MachineError.exit_code


def _backend(findings: list[Finding]) -> tuple[str, str]:
    """What experiments are best run in here, and why."""
    by_name = {finding.what: finding for finding in findings}
    if by_name["guest"].well:
        return (
            "guest",
            "the usual one: its runs repeat bit for bit, and whatever else this machine does is not in them",
        )
    if by_name["host backend"].well:
        return (
            "host",
            "the guest does not run here; with --backend host the numbers have in them whatever else this "
            "machine does",
        )
    return (
        "simulator",
        "neither the guest nor the host backend runs here; fig9, the Hadoop experiments and the presets 10g "
        "do",
    )


def _findings(say: Callable[[str], None]) -> Iterator[Finding]:
    yield Finding(
        "Python",
        sys.version_info >= environment.OLDEST,
        f"{platform.python_version()} ({sys.executable})",
        f"install Python {'.'.join(map(str, environment.OLDEST))} or newer",
    )
    cores = len(os.sched_getaffinity(0))
    yield Finding("processors", True, f"{cores}; so many trials run at a time")
    memory = _memory_mib()
    yield Finding(
        "memory",
        memory >= 1500 * cores,
        f"{memory} MiB free, a guest takes up to 1100",
        "end other programs, or run with fewer processors: taskset -c 0",
    )
    for root in cache.roots():
        if root.is_dir():
            free = shutil.disk_usage(root).free >> 30
            rights = "" if os.access(root, os.W_OK) else ", read only for this user"
            yield Finding(
                "cache",
                free >= 3 or machines.is_at_hand(),
                f"{root}, {free} GiB free{rights}",
                "make room: the first build takes 3 GiB",
            )
    yield _files()
    say("boots a guest, 15 s")
    yield from _guest(say)
    yield _other_kernels()
    yield from _host()


def _files() -> Finding:
    """What a glance finds in the cache."""
    damaged = [
        f"{path.parent.name} {path} is damaged, {damage}"
        for path in cache.folders()
        if (damage := cached_files.glance(path))
    ]
    more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    return Finding(
        "cached files",
        not damaged,
        f"{damaged[0]}{more}" if damaged else "as they were made, at a glance",
        "made again by what needs them next; `qjump-mn machine verify` looks at every byte",
        required=False,
    )


def _guest(say: Callable[[str], None]) -> Iterator[Finding]:
    said: list[str] = []

    def heard(line: str) -> None:
        said.append(line)
        if line.startswith(WAITS):  # other runs may hold all cores for minutes
            say(line)

    try:
        problem = _boot(heard)
    except QJumpError as error:
        problem = str(error)
    yield from (Finding("guest", False, line, required=False) for line in said if "is damaged" in line)
    remedy = making.refusal() or "run  sudo ./bootstrap  in the checkout"
    if machines.damage():
        remedy = "run  sudo qjump-mn machine build"
    yield Finding("guest", not problem, problem or "boots and runs a job", remedy)


def _other_kernels() -> Finding:
    """What ``--kernel`` may name, and whether it would have to be built."""
    built = [name for name in toolbox.OTHER_KERNELS if toolbox.kernel_is_at_hand(name)]
    lacking = [name for name in toolbox.OTHER_KERNELS if name not in built]
    says = [
        f"{' and '.join(names)} {what}" for names, what in ((built, "here"), (lacking, "not built")) if names
    ]
    remedy = making.refusal() or "built by the first run with --kernel"
    return Finding("other kernels", not lacking, "; ".join(says), remedy, required=False)


def _boot(progress: Callable[[str], None]) -> str:
    """Why no guest runs on this machine, in a sentence; empty when one boots and runs a job (15 s). Builds
    no toolbox."""
    if not machines.is_at_hand():
        return machines.damage() or "the guest is not built yet"
    with scratch.folder() as folder, advised():
        job = guest.Job(script="print('hello')")
        result = guest.run(guest.prepare(progress), job, Path(folder), progress=progress)
        stdout = Path(folder, "stdout").read_text()
    ran = result.exit_code == 0 and stdout == "hello\n"
    return "" if ran else f"a job in the guest ended with exit code {result.exit_code}"


def _host() -> Iterator[Finding]:
    """The host backend is an extra: the guest brings everything it needs."""
    release = platform.release()
    says = ["no Mininet for this Python"] if needs.find_mininet() else []
    says += [] if shutil.which("ovs-vsctl") else ["no Open vSwitch"]
    modules = Path(f"/lib/modules/{release}").is_dir()
    says += [] if modules else [f"no modules for the kernel {release}"]
    without = modules and needs.missing_modules(needs.OURS)
    possible = f"possible on kernel {release}{', without our modules: link.model=tbf' if without else ''}"
    yield Finding(
        "host backend",
        not says,
        "; ".join(says) or possible,
        "not needed: the guest has its own",
        required=False,
    )


def _memory_mib() -> int:
    with suppress(OSError):  # a chroot may have no /proc
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) >> 10
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def clean(out: Console, *, everything: bool) -> None:
    """End orphaned guests, remove what dead runs and builds left, on this machine's own kernel too, and, if
    asked, the whole cache."""
    for orphan in guest.end_orphans():
        out.print(f"ended the guest {orphan}, whose harness is gone", markup=False)
    claim.clean(lambda line: out.print(line, markup=False))
    for folder in scratch.remove_left():
        out.print(f"removed {folder}, whose process is gone", markup=False)
    cache.sweep()
    freed = 0
    # The environment is what we run in.
    removable = [entry for entry in cache.entries() if everything and entry.kind != "environment"]
    for entry in removable:
        try:
            cache.remove(entry)
        except MachineError as error:
            out.print(str(error), markup=False)
        else:
            freed += entry.size_bytes
            out.print(f"removed {entry.path}", markup=False)
    kept = cache.entries()
    out.print(
        f"{freed >> 20} MiB freed; the cache holds {len(kept)} artefacts, "
        f"{sum(entry.size_bytes for entry in kept) >> 20} MiB",
        markup=False,
    )
