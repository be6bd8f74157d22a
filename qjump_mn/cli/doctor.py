"""``doctor`` and ``clean``: check what this machine can do, and remove what dead runs left on
it."""

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
"""When the guest is ended, after the start of the process, which then ends within 20 s."""
CORE_S = 3.0
"""How long the guest waits for a core."""
START_S = 5.0
"""The least time left in which the guest is tried; on an idle machine it starts in 1 s."""


class State(StrEnum):
    """The state of a finding; UNKNOWN means that this machine is too busy to tell."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"


_CONCLUSIONS = {
    State.OK: "experiments run here",
    State.MISSING: "experiments do not run here yet: see above",
    State.UNKNOWN: "nothing is missing, but this machine is too busy to try an experiment",
}


class Finding(NamedTuple):
    """The state of one thing on this machine.

    ``remedy`` says what to do if it is missing, and ``required`` whether experiments need it.
    """

    what: str
    state: State
    says: str
    remedy: str = ""
    required: bool = True


def report(out: Console, *, as_json: bool = False, began: float | None = None) -> int:
    """Print each finding as soon as it is known, or all as JSON.

    This takes at most 20 s from ``began`` on, which is a time of ``time.monotonic()``, by default
    now. Returns 3 if something required is missing, else 0: a machine too busy to tell lacks
    nothing. In JSON, ``state`` is the worst of the required findings: "ok", "unknown" or "missing".
    """
    deadline = (time.monotonic() if began is None else began) + GUEST_S
    findings = []

    def detail(line: str) -> None:
        if not as_json:
            out.print(f"         {line}", markup=False)

    for finding in _findings(detail, deadline):
        findings.append(finding)
        if as_json:
            continue
        is_extra = finding.state is State.MISSING and not finding.required
        out.print(
            f"{'no' if is_extra else finding.state:7}  {finding.what}: {finding.says}", markup=False
        )
        if finding.state is State.MISSING and finding.remedy:
            detail(finding.remedy)
    required = {finding.state for finding in findings if finding.required}
    state = next(level for level in (State.MISSING, State.UNKNOWN, State.OK) if level in required)
    backend, reason = _best_backend(findings)
    if as_json:
        fields = [
            finding._replace(
                remedy=finding.remedy if finding.state is State.MISSING else ""
            )._asdict()
            for finding in findings
        ]
        document = {"state": state, "backend": backend, "why": reason, "findings": fields}
        out.print(
            msgspec.json.format(msgspec.json.encode(document), indent=1).decode(), markup=False
        )
    else:
        out.print(f"backend {backend}: {reason}", markup=False)
        out.print(_CONCLUSIONS[state], markup=False)
    return MachineError.exit_code if state is State.MISSING else 0


def _best_backend(findings: list[Finding]) -> tuple[str, str]:
    """Return the best backend for this machine, and the reason."""
    by_name = {finding.what: finding for finding in findings}
    if by_name["guest"].state is not State.MISSING:
        return (
            "guest",
            "the usual one: its runs repeat bit for bit, whatever else this machine does",
        )
    if by_name["host backend"].state is State.OK:
        return (
            "host",
            "the guest does not run here; with --backend host, other programs on this machine "
            "influence the results",
        )
    return (
        "simulator",
        "neither the guest nor the host backend runs here; fig9, the Hadoop experiments and the "
        "presets 10g do",
    )


def _state(is_there: bool) -> State:
    return State.OK if is_there else State.MISSING


def _findings(detail: Callable[[str], None], deadline: float) -> Iterator[Finding]:
    yield Finding(
        "Python",
        _state(sys.version_info >= environment.OLDEST),
        f"{platform.python_version()} ({sys.executable})",
        f"install Python {'.'.join(map(str, environment.OLDEST))} or newer",
    )
    cores = len(os.sched_getaffinity(0))
    yield Finding("processors", State.OK, f"{cores}; this many trials run at a time")
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
            rights = "" if os.access(root, os.W_OK) else ", read-only for this user"
            yield Finding(
                "cache",
                _state(free >= 3 or machines.is_at_hand()),
                f"{root}, {free} GiB free{rights}",
                "make room: the first build takes 3 GiB",
            )
    if lacking := die_with_parent.missing():
        yield Finding(
            "util-linux", State.MISSING, f"no {', no '.join(lacking)}", "install util-linux"
        )
    if not outer.is_wanted():
        detail(f"starting a guest, which takes {GUEST_S:.0f} s at most")
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
    yield Finding("guest", state, says, make_tree.remedy())


def _boot(progress: Callable[[str], None], deadline: float) -> tuple[State, str]:
    """Try a job in a guest, without building anything; return the state and a sentence."""
    if not machines.is_at_hand():
        return State.MISSING, "the guest is not built yet"
    start = time.monotonic()
    if deadline - start < START_S:
        return State.UNKNOWN, "not tried, this machine is busy; try again later"
    try:
        if outer.is_wanted():
            with cache.read_only():
                guest.prepare(progress)
            slower = f"which takes about {outer.SLOWER} times as long"
            return (
                State.OK,
                f"is here, and runs in {outer.qemu()}, {slower}; not tried, it takes a minute",
            )
        with core(patience_s=CORE_S):  # fail early, before the guest is prepared
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
        waited_s = time.monotonic() - start
        return (
            State.UNKNOWN,
            f"not done within {waited_s:.0f} s, this machine is busy or slow; try again later",
        )
    if done != (0, "hello\n"):
        return State.MISSING, f"a job in the guest ended with exit code {done[0]}"
    return State.OK, "boots and runs a job"


def _run_job(image: guest.Image, deadline: float) -> tuple[int, str]:
    """Run a job in a guest that is ended at the deadline; return its exit code and output."""
    job, stop = guest.Job(script="print('hello')"), guest.Stop()
    timer = threading.Timer(deadline - time.monotonic(), stop.now)  # also ends the wait for a core
    timer.start()
    try:
        with temp_dirs.folder() as folder:
            result = guest.run(image, guest.Setup(), job, Path(folder), stop=stop)
            return result.exit_code, Path(folder, "stdout").read_text()
    finally:
        timer.cancel()


def _host() -> Iterator[Finding]:
    """Yield the finding about the host backend, which is optional: the guest needs nothing of
    it."""
    release = platform.release()
    says = ["no Mininet for this Python"] if host_needs.find_mininet() else []
    says += [] if shutil.which("ovs-vsctl") else ["no Open vSwitch"]
    modules = Path(f"/lib/modules/{release}").is_dir()
    says += [] if modules else [f"no modules for the kernel {release}"]
    without = modules and host_needs.missing_modules(host_needs.OURS)
    possible = (
        f"possible on kernel {release}{', without our modules: link.model=tbf' if without else ''}"
    )
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
    """Remove what dead runs and builds left behind, also in this machine's kernel.

    With ``everything``, also remove the cache, apart from the Python environment.
    """
    host_claim.clean(lambda line: out.print(line, markup=False))
    for folder in temp_dirs.remove_left():
        out.print(f"removed {folder}, whose process is gone", markup=False)
    cache.sweep()
    freed = 0
    # This process runs in the environment.
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
