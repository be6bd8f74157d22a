"""``doctor`` and ``clean``: what this machine can do, and what is left on it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from qjump_mn import cache, guest
from qjump_mn.backends import host_claim, host_needs
from qjump_mn.errors import LostError, MachineError, QJumpError
from qjump_mn.guest import outer
from qjump_mn.guest.cores import BusyError, core
from qjump_mn.install import environment
from qjump_mn.process import die_with_parent, temp_dirs
from qjump_mn.toolbox import machines, make_tree

GUEST_S = 15.0
"""The guest is ended so long after the process began, which then ends within 20 s."""
CORE_S = 3.0
"""How long the guest waits for a core."""
START_S = 5.0
"""With less time left the guest is not tried; on an idle machine its start takes 1 s."""


class State(StrEnum):
    """Of what is looked at; UNKNOWN: this machine is too busy to tell."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"


_LAST = {
    State.OK: "experiments run here",
    State.MISSING: "experiments do not run here yet: see above",
    State.UNKNOWN: "nothing is missing, but this machine is too busy to show that experiments run here",
}


class Finding(NamedTuple):
    """One thing looked at; ``remedy`` says what to do where it is missing, and ``required`` whether anything
    works without it."""

    what: str
    state: State
    says: str
    remedy: str = ""
    required: bool = True


def report(out: Console, *, as_json: bool = False, began: float | None = None) -> int:
    """Print each finding as soon as it is known, or all as JSON, within 20 s of ``began`` (monotonic; now).

    Returns 3 when something is missing without which no experiment runs, else 0: also where that is unknown,
    for a busy machine lacks nothing. In JSON ``state`` is the worst of the required findings, "ok", "unknown"
    or "missing".
    """
    deadline = (time.monotonic() if began is None else began) + GUEST_S
    findings = []

    def say(line: str) -> None:
        if not as_json:
            out.print(f"         {line}", markup=False)

    for finding in _findings(say, deadline):
        findings.append(finding)
        if as_json:
            continue
        is_extra = finding.state is State.MISSING and not finding.required
        out.print(f"{'no' if is_extra else finding.state:7}  {finding.what}: {finding.says}", markup=False)
        if finding.state is State.MISSING and finding.remedy:
            say(finding.remedy)
    required = {finding.state for finding in findings if finding.required}
    state = next(one for one in (State.MISSING, State.UNKNOWN, State.OK) if one in required)
    backend, why = _backend(findings)
    if as_json:
        each = [one._replace(remedy=one.remedy if one.state is State.MISSING else "") for one in findings]
        told = {"state": state, "backend": backend, "why": why, "findings": [one._asdict() for one in each]}
        out.print(msgspec.json.format(msgspec.json.encode(told), indent=1).decode(), markup=False)
    else:
        out.print(f"backend {backend}: {why}", markup=False)
        out.print(_LAST[state], markup=False)
    return MachineError.exit_code if state is State.MISSING else 0


def _backend(findings: list[Finding]) -> tuple[str, str]:
    """What experiments are best run in here, and why."""
    by_name = {finding.what: finding for finding in findings}
    if by_name["guest"].state is not State.MISSING:
        return (
            "guest",
            "the usual one: its runs repeat bit for bit, and whatever else this machine does is not in them",
        )
    if by_name["host backend"].state is State.OK:
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


def _state(is_there: bool) -> State:
    return State.OK if is_there else State.MISSING


def _findings(say: Callable[[str], None], deadline: float) -> Iterator[Finding]:
    yield Finding(
        "Python",
        _state(sys.version_info >= environment.OLDEST),
        f"{platform.python_version()} ({sys.executable})",
        f"install Python {'.'.join(map(str, environment.OLDEST))} or newer",
    )
    cores = len(os.sched_getaffinity(0))
    yield Finding("processors", State.OK, f"{cores}; so many trials run at a time")
    memory = _memory_mib()
    yield Finding(
        "memory",
        _state(memory >= 1500 * cores),
        f"{memory} MiB free, a guest takes up to {1100 + outer.MORE_MB * outer.is_wanted()}",
        "end other programs, or run with fewer processors: taskset -c 0",
    )
    for root in cache.roots():
        if root.is_dir():
            free = shutil.disk_usage(root).free >> 30
            rights = "" if os.access(root, os.W_OK) else ", read only for this user"
            yield Finding(
                "cache",
                _state(free >= 3 or machines.is_at_hand()),
                f"{root}, {free} GiB free{rights}",
                "make room: the first build takes 3 GiB",
            )
    if lacking := die_with_parent.missing():
        yield Finding("util-linux", State.MISSING, f"no {', no '.join(lacking)}", "install util-linux")
    if not outer.is_wanted():
        say(f"starts a guest, {GUEST_S:.0f} s at most")
    yield from _guest(deadline)
    yield from _host()


def _guest(deadline: float) -> Iterator[Finding]:
    try:
        guest.check_processor()
    except MachineError as error:
        yield Finding("guest", State.MISSING, str(error))
        return
    try:
        state, says = _boot(lambda line: None, deadline)
    except QJumpError as error:
        state, says = State.MISSING, str(error)
    yield Finding("guest", state, says, make_tree.refusal() or "as root run  qjump-mn machine build")


def _boot(progress: Callable[[str], None], deadline: float) -> tuple[State, str]:
    """Whether a guest runs a job on this machine, in a sentence. Builds nothing."""
    if not machines.is_at_hand():
        return State.MISSING, "the guest is not built yet"
    began = time.monotonic()
    if deadline - began < START_S:
        return State.UNKNOWN, "not tried, this machine is busy; try again later"
    try:
        if outer.is_wanted():
            with cache.read_only():
                guest.prepare(progress)
            slower = f"which takes some {outer.SLOWER} times as long"
            return State.OK, f"is here, and runs in {outer.qemu()}, {slower}; not tried, it takes a minute"
        with core(patience_s=CORE_S):  # before work that would be in vain
            pass
        with cache.read_only():
            done = _run_job(guest.prepare(progress), deadline)
    except cache.NotBuiltError as error:
        return State.MISSING, f"the guest is not built yet: {error}"
    except BusyError as error:
        return State.UNKNOWN, f"not tried, {error}; try again later"
    except LostError:
        if time.monotonic() < deadline:
            raise
        waited_s = time.monotonic() - began
        return (
            State.UNKNOWN,
            f"not done within {waited_s:.0f} s, this machine is busy or slow; try again later",
        )
    if done != (0, "hello\n"):
        return State.MISSING, f"a job in the guest ended with exit code {done[0]}"
    return State.OK, "boots and runs a job"


def _run_job(image: guest.Image, deadline: float) -> tuple[int, str]:
    """The exit code and the output of a job in a guest that is ended at the deadline."""
    job, stop = guest.Job(script="print('hello')"), guest.Stop()
    timer = threading.Timer(deadline - time.monotonic(), stop.now)  # also while it waits for a core
    timer.start()
    try:
        with temp_dirs.folder() as folder:
            result = guest.run(image, guest.Setup(), job, Path(folder), stop=stop)
            return result.exit_code, Path(folder, "stdout").read_text()
    finally:
        timer.cancel()


def _host() -> Iterator[Finding]:
    """The host backend is an extra: the guest brings everything it needs."""
    release = platform.release()
    says = ["no Mininet for this Python"] if host_needs.find_mininet() else []
    says += [] if shutil.which("ovs-vsctl") else ["no Open vSwitch"]
    modules = Path(f"/lib/modules/{release}").is_dir()
    says += [] if modules else [f"no modules for the kernel {release}"]
    without = modules and host_needs.missing_modules(host_needs.OURS)
    possible = f"possible on kernel {release}{', without our modules: link.model=tbf' if without else ''}"
    yield Finding(
        "host backend",
        _state(not says),
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
    """Remove what dead runs and builds left, on this machine's own kernel too, and, if asked, the whole
    cache."""
    host_claim.clean(lambda line: out.print(line, markup=False))
    for folder in temp_dirs.remove_left():
        out.print(f"removed {folder}, whose process is gone", markup=False)
    cache.sweep()
    freed = 0
    # The environment is what we run in.
    removable = [entry for entry in cache.entries() if everything and entry.kind != "environment"]
    for entry in removable:
        try:
            cache.remove(entry.path)
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
