"""From what was asked to a run directory and its verdicts: plan, backend, trials, analysis."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from qjump_mn import __version__, cache
from qjump_mn.analysis import claims
from qjump_mn.backends.execute import execute
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.backends.host import HostBackend
from qjump_mn.backends.protocol import Backend, Ended
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, resolve
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.network import script
from qjump_mn.report import drawing
from qjump_mn.results import directory
from qjump_mn.results.manifest import Git
from qjump_mn.workloads.drivers import launches


class Request(NamedTuple):
    """What the command line asks for."""

    experiment: str
    preset: str
    settings: tuple[str, ...]
    seed: int
    replicates: int | None
    backend: str
    cold: bool
    out: Path
    arms: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """The plan; raise :class:`UsageError` for what cannot be."""
        return resolve.plan(
            self.experiment,
            self.preset,
            list(self.settings),
            seed=self.seed,
            replicates=self.replicates,
            only=self.arms,
            schemes=self.schemes,
        )


def show(asked: Request, out: Console) -> int:
    """Print the plan and the shell commands it stands for; touch nothing."""
    plan = asked.plan()
    out.print(msgspec.json.format(msgspec.json.encode(plan), indent=1).decode(), markup=False)
    out.print("")
    for line in script.lines(plan):
        out.print(line, markup=False)
    return 0


def explain(experiment: str, preset: str, settings: list[str], out: Console) -> None:
    """Say in words what an experiment asks and does."""
    plan = resolve.plan(experiment, preset, settings)
    network = plan.network
    lines = [
        f"{plan.experiment}: {plan.title}",
        f"reproduces: {plan.reproduces}",
        "",
        plan.question,
        "",
        (
            f"network: {network.topology}, {len(network.hosts)} hosts, {network.rate_bps / 1e6:g} Mb/s links (model {network.model}), "
            f"{network.buffer_bytes} B of buffer per level and port"
        ),
        f"trial: {plan.warmup_ns / 1e9:g} s of warm-up, {plan.duration_ns / 1e9:g} s measured; seeds {', '.join(map(str, plan.seeds))}",
        "",
        "presets:",
        *(f"  {'*' if name == preset else ' '} {name}: {about}" for name, about in loading.presets(experiment).items()),
        "",
        "arms:",
    ]
    for arm in plan.arms:
        limits = ""
        if arm.qjump is not None:
            budgets = ", ".join(
                f"level {level}: {arm.qjump.budget_bytes[level]} B" for level in range(7, -1, -1) if arm.qjump.budget_bytes[level]
            )
            limits = f"; limiter, {arm.qjump.mode}, epoch {arm.qjump.epoch_ns / 1e6:g} ms ({budgets})"
        runs = ", ".join(f"{workload.label} at level {workload.level}" for workload in arm.workloads)
        lines.append(f"  {arm.name} ({arm.label}): {runs}; scheme {arm.scheme.name}{limits}")
    lines += ["", "claims:"]
    for name, claim in plan.claims.items():
        lines += [f"  {name}{' (must hold for the run to be valid)' if claim.gate else ''}: {claim.statement}", f"    {claim.predicate}"]
    lines += ["", *plan.remarks]
    for line in lines:
        out.print(line, markup=False)


def run(asked: Request, out: Console, argv: list[str]) -> int:
    """Run the plan and judge it; return the exit code."""
    plan = asked.plan()
    claims.check(plan)
    drawing.check(plan.figure.plot)
    _check_output(plan)
    backend = _backend(asked)
    now = datetime.datetime.now(datetime.UTC)
    run_directory = directory.create(
        asked.out,
        plan,
        backend=backend.name,
        clock="virtual" if backend.clock == "virtual" else "real",
        argv=("qjump-mn", *argv[1:]),
        git=_git(),
        versions={"qjump-mn": __version__, "python": platform.python_version()},
        machine={},
        now=now,
    )
    trials = plan.trials()
    what = f"{len(plan.arms_run)} arms x {len(plan.seeds)} seeds on {plan.network.topology}, backend {backend.name}"
    first = "" if backend.name == "host" or is_built() else ", after about 3 minutes to build the guest, this first time"
    out.print(f"{plan.experiment} ({plan.reproduces}), preset {plan.preset}: {what}", markup=False)
    out.print(f"about {expected(plan, backend)}{first}", markup=False)
    began = time.monotonic()

    def tell(line: str) -> None:
        out.print(f"{_clock(began)}  {line}", markup=False)

    try:
        with backend:
            run_directory.enter_machine(backend.prepare(plan, tell))
            ready = [0]

            def progress(trial: Trial, line: str) -> None:
                run_directory.log("progress", name=trial.name, line=line)

            def ended(trial: Trial, how: Ended) -> None:
                ready[0] += 1
                left = f"{(time.monotonic() - started) / ready[0] * (len(trials) - ready[0]):.0f} s left"
                verdict = (
                    f"done in {how.wall_s:.0f} s"
                    if not how.exit_code
                    else f"LOST: {how.message}"
                    if how.exit_code != 4
                    else f"INVALID: {how.message}"
                )
                tell(f"[{ready[0]}/{len(trials)}] {trial.name}: {verdict}" + (f", {left}" if ready[0] < len(trials) else ""))

            started = time.monotonic()
            execute(backend, plan, run_directory, progress, ended)
    finally:
        directory.hand_over(run_directory.path)
    return analyse(run_directory.path)


def analyse(path: Path) -> int:
    """Judge a run directory in a process of its own, without root's rights: analysis needs libraries that nothing under sudo imports."""
    argv = [sys.executable, "-m", "qjump_mn.analysis", str(path)]
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() or not user.isdigit() or not group.isdigit():
        return subprocess.run(argv, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="qjump-mn-") as folder:  # matplotlib wants to write, and root's home is not the user's
        os.chown(folder, int(user), int(group))
        environment = {**os.environ, "MPLCONFIGDIR": folder, "HOME": folder}
        return subprocess.run(argv, env=environment, check=False, user=int(user), group=int(group), extra_groups=[]).returncode


def is_built() -> bool:
    """Whether the guest's toolbox is in the cache, which takes longest to build."""
    return any(entry.kind == "toolbox" for entry in cache.entries())


def expected(plan: Plan, backend: Backend) -> str:
    """How long the trials will take: measured costs of a busy virtual second and of a fork (docs/emulation.md), on this many cores."""
    busy = 0.65 * (plan.network.rate_bps / 1e7) ** 0.85
    virtual = (plan.warmup_ns + plan.duration_ns) / 1e9
    loaded = [any(workload.BACKGROUND for workload in arm.workloads) for arm in plan.arms_run]
    seconds = sum(4 + virtual * (busy if load else 0.08) for load in loaded) * len(plan.seeds) / backend.parallel
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _check_output(plan: Plan) -> None:
    """Raise :class:`UsageError` where two programs of an arm would write one file."""
    for trial in plan.trials()[: len(plan.arms_run)]:  # another seed writes the same files
        written: set[str] = set()
        for workload in trial.arm.workloads:
            for launch in launches(workload, trial):
                if launch.output in written:
                    raise UsageError(
                        f"experiment {plan.experiment!r}: arms.{trial.arm.name}: {launch.program} on {launch.host}, of workloads.{workload.name}, would write "
                        f"the file of another, {launch.output}: give each of its flows from {launch.host} a workload of its own"
                    )
                written.add(launch.output)


def _backend(asked: Request) -> GuestBackend | HostBackend:
    if asked.backend not in ("guest", "host"):
        raise UsageError(f"there is no backend {asked.backend!r}: {loading.nearest(asked.backend, ['guest', 'host'])}")
    if asked.backend == "host":
        if asked.cold:
            raise UsageError("--cold boots a guest for every trial: it does not go with --backend host")
        return HostBackend()
    return GuestBackend(cold=asked.cold)


def _clock(began: float) -> str:
    seconds = int(time.monotonic() - began)
    return f"{seconds // 60:3d}:{seconds % 60:02d}"


def _git() -> Git:
    folder = Path(__file__).resolve().parent.parent
    try:
        # As root in a user's checkout, git asks for this before it answers.
        base = ["git", "-c", f"safe.directory={folder}", "-C", str(folder)]
        commit = subprocess.run([*base, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        status = subprocess.run([*base, "status", "--porcelain"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return Git("", False)
    return Git(commit.stdout.strip() if not commit.returncode else "", bool(status.stdout.strip()))
