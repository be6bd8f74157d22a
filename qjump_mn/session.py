"""From what was asked to a run directory and its verdicts: plan, backend, trials, analysis."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from qjump_mn import __version__
from qjump_mn.analysis import published_comparison
from qjump_mn.analysis.check import check
from qjump_mn.analysis.judging import Judge
from qjump_mn.backends import building, emulated, estimate, registry
from qjump_mn.backends.execute import execute
from qjump_mn.backends.progress import Board
from qjump_mn.backends.protocol import Backend, Ended
from qjump_mn.errors import UsageError
from qjump_mn.install import launcher, provenance
from qjump_mn.model import resolve
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process import interrupts
from qjump_mn.process.heartbeat import heartbeat
from qjump_mn.results import contents, directory, formatting, user_files
from qjump_mn.results import manifest as manifests
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Clock
from qjump_mn.steps import script
from qjump_mn.toolbox import machines


class Request(NamedTuple):
    """What the command line asks for."""

    experiment: str
    preset: str
    settings: tuple[str, ...] = ()
    seed: int = 1
    replicates: int | None = None
    backend: str = ""
    out: Path = Path("results")
    arms: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    scheduler: str = ""
    perturb: int = 0
    verbose: bool = False

    def plan(self, backend: str = "") -> Plan:
        """The plan, for another backend where one is given; raise :class:`UsageError` for what cannot be."""
        return resolve.plan(
            self.experiment,
            self.preset,
            list(self.settings),
            seed=self.seed,
            replicates=self.replicates,
            only=self.arms,
            schemes=self.schemes,
            backend=backend or self.backend,
            perturb=self.perturb,
        )

    def argv(self) -> list[str]:
        """The command line that asks for this, for its manifest and its report: also what a variable asked
        for is an option here. How much is printed does not belong to it."""
        argv = ["qjump-mn", "run", self.experiment, "--preset", self.preset]
        if self.seed != self._field_defaults["seed"]:
            argv += ["--seed", str(self.seed)]
        if self.replicates is not None:
            argv += ["--replicates", str(self.replicates)]
        for setting in self.settings:
            argv += ["-s", setting]
        for option, value in (
            ("--arms", ",".join(self.arms)),
            ("--scheme", ",".join(self.schemes)),
            ("--backend", self.backend),
            ("--perturb", str(self.perturb or "")),
        ):
            argv += [option, value] if value else []
        if self.scheduler:
            argv += ["--engine", "dask", "--scheduler", self.scheduler]
        return argv if self.out == self._field_defaults["out"] else [*argv, "--out", str(self.out)]


def show(request: Request, out: Console) -> int:
    """Print the shell script that the plan stands for; touch nothing. It is for a machine on which code
    takes time."""
    plan = request.plan("host")
    check_plan(plan)
    backend = registry.make(backend_name(plan, request.backend))
    if backend.name == "simulator":
        raise UsageError(
            "--dry-run prints the commands of an emulation, and the simulator runs none: see explain --json"
        )
    try:
        emulated.check(plan)
    except UsageError as error:
        emulated.check(request.plan("guest"))  # what is wrong there too is told as ever
        raise UsageError(
            f"--dry-run writes a script for a machine on which code takes time: {error}"
        ) from error
    for line in script.lines(plan):
        out.print(line, markup=False, soft_wrap=True)
    return 0


def run(request: Request, out: Console) -> int:
    """Run the plan and judge it; return the exit code."""
    plan = request.plan()
    backend = checked(plan, request, out)
    run_directory = begin(plan, backend, request, out)
    return carry_out(backend, run_directory, plan, out, verbose=request.verbose)


def checked(plan: Plan, request: Request, out: Console) -> Backend:
    """The backend that is to run the plan; raise :class:`UsageError` for a plan that cannot be run there,
    judged or drawn, or that takes too long."""
    check_plan(plan)
    backend = _remote(registry.make(backend_name(plan, request.backend)), request.scheduler)
    backend.check(plan, lambda line: out.print(line, markup=False))
    if backend.name != "simulator":
        _check_length(plan, backend)
    return backend


def begin(plan: Plan, backend: Backend, request: Request, out: Console) -> RunDirectory:
    """Say what is about to run and make its run directory."""
    further = f" and {counted(plan.run.perturbations, 'perturbed run')}" if plan.run.perturbations else ""
    trials = f"{counted(plan.run.arms, 'arm')} x {counted(plan.run.seeds, 'seed')}{further}"
    what = f"{trials} on {plan.shown.network.topology}, backend {backend.name}"
    first = ""
    if backend.name in BUILT_BACKENDS and not machines.is_at_hand():
        first = (
            f", after about {building.BUILD_MINUTES} min to build the virtual machine and the simulator, once"
        )
    state = provenance.git()
    out.print(provenance.describe(state), markup=False)
    out.print(f"{formatting.experiment(plan)}, preset {plan.shown.preset}: {what}", markup=False)
    out.print(f"{estimate.run(plan, backend)}{first}", markup=False)
    now = datetime.datetime.now(datetime.UTC)
    run = directory.create(
        request.out,
        plan,
        backend=backend.name,
        clock=clock_of(backend),
        argv=tuple(request.argv()),
        git=state,
        versions={"qjump-mn": __version__, "python": platform.python_version()},
        machine={},
        now=now,
    )
    user_files.keep(plan, run.path)
    return run


def counted(things: Sequence[object], what: str) -> str:
    """How many there are: "3 arms", "1 seed"."""
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


def resume(path: Path, out: Console, scheduler: str = "", *, verbose: bool = False) -> int:
    """Run what is missing of an interrupted run, and judge it; return the exit code.

    Raises :class:`UsageError` where that would mix what does not belong together: another plan, or another
    image.
    """
    run_directory = directory.existing(path)
    _check_own(run_directory)
    backend = backend_of(run_directory, out, scheduler)
    plan = run_directory.manifest.plan
    with run_directory.held():  # the marks of a run that goes on are its own
        for name, why in contents.damaged(run_directory.path, run_directory.manifest).items():
            out.print(f"{name} is run again: {why}", markup=False)
            run_directory.unmark(name)
    left = sum(not run_directory.is_done(trial.name) for trial in plan.trials())
    out.print(
        f"{formatting.experiment(plan)}, preset {plan.shown.preset}: "
        f"{left} of {len(plan.trials())} trials are left",
        markup=False,
    )
    return carry_out(backend, run_directory, plan, out, verbose=verbose)


def backend_of(run_directory: RunDirectory, out: Console, scheduler: str = "") -> Backend:
    """The backend that runs the plan of an earlier run again; raise :class:`UsageError` where that is not the
    plan that was run."""
    manifest = run_directory.manifest
    plan = manifest.plan
    if plan.hash != manifest.plan_sha256:
        raise UsageError(
            f"{run_directory.path}: its plan is not the one that was run, or of another version: run the "
            "experiment anew"
        )
    name = backend_name(plan, manifest.backend)
    made = registry.make(name)
    if manifest.clock != clock_of(made):
        raise UsageError(
            f"{run_directory.path}: its manifest says clock {manifest.clock}, and the backend {name} has the "
            f"{clock_of(made)} clock: it was edited; run the experiment anew"
        )
    backend = _remote(made, scheduler)
    backend.check(plan, lambda line: out.print(line, markup=False))
    return backend


def clock_of(backend: Backend) -> Clock:
    """The clock that runs of this backend have in their manifests."""
    return "virtual" if backend.clock == "virtual" else "real"


def _check_own(run_directory: RunDirectory) -> None:
    """Raise :class:`UsageError` for a run that would go on outside a guest and the simulator, as root, unless
    the caller made it: its plan has command lines.

    Others must not be able to write its manifest, and it must not be an unpacked bundle, whose files belong
    to whoever unpacked it.
    """
    path, backend = run_directory.path, run_directory.manifest.backend
    if backend in CONFINED_BACKENDS:
        return
    from qjump_mn.cli.bundle import archive  # it imports what reports are made with

    reason = launcher.distrust_path(str(path / manifests.NAME))
    if (path / archive.SUMS).exists():
        reason = "it is an unpacked bundle"
    if reason:
        raise UsageError(
            f"{path}: only your own run is resumed with the backend {backend}, and {reason}: run the "
            "experiment anew"
        )


def carry_out(
    backend: Backend, run_directory: RunDirectory, plan: Plan, out: Console, *, verbose: bool = False
) -> int:
    """Run every trial that is not done, and judge all; return the exit code."""
    with interrupts.resumable(run_directory.path), Judge(run_directory.path, verbose=verbose) as judge:
        try:
            with run_directory.held(), backend:
                trials = [trial for trial in plan.trials() if not run_directory.is_done(trial.name)]
                expected, began = estimate.run(plan, backend, trials), time.monotonic()
                run_trials(backend, run_directory, trials, out, spare=judge.call_in)
                estimate.note(plan, backend, run_directory.manifest.trials)
        finally:
            directory.hand_over(run_directory.path, directory.owner_of(run_directory.path))
        exit_code = judge.judge()
        took_s = round(time.monotonic() - began, 1)
        run_directory.log("took", trials=len(trials), expected_s=round(expected.seconds, 1), took_s=took_s)
        return exit_code


def run_trials(
    backend: Backend,
    run_directory: RunDirectory,
    trials: Sequence[Trial],
    out: Console,
    *,
    medians: bool = True,
    spare: Callable[[], None] = lambda: None,
) -> None:
    """Run the trials, and say of each what it does and how it ends; without ``medians``, which may be a
    stranger's to compute, not what it measured. ``spare`` is called, again and again, where the trials that
    are left need not all the room that the backend has. Raises :class:`UsageError` where others of the run
    were done with another image."""
    plan = run_directory.manifest.plan
    with Board(out, backend, trials, estimate.each_trial(plan, backend, trials)) as board:

        def progress(trial: Trial, line: str) -> None:
            if stage := board.stage(trial, line):
                run_directory.log("progress", name=trial.name, line=stage)

        def ended(trial: Trial, how: Ended) -> None:
            has_median = medians and not how.exit_code
            board.ended(trial, how, _median(run_directory, trial, plan) if has_median else "")

        machine = prepare(backend, plan, board.tell)
        _check_same(run_directory, machine)
        run_directory.enter_machine(machine)
        execute(backend, trials, run_directory, progress, ended, board.tick, spare)


def _median(run_directory: RunDirectory, trial: Trial, plan: Plan) -> str:
    # It imports pyarrow, which takes half a second: other trials run meanwhile.
    from qjump_mn.analysis.measures import first_median

    return first_median(run_directory, trial, formatting.unit(plan))


def prepare(backend: Backend, plan: Plan, tell: Callable[[str], None]) -> dict[str, str]:
    """Make everything ready that the trials of the plan need, and say what it is; the first time on a machine
    all that experiments run in is built."""
    if backend.name in BUILT_BACKENDS and not machines.is_at_hand():
        building.build(tell)
    with heartbeat(tell) as say:
        return backend.prepare(plan, say)


def _check_same(run_directory: RunDirectory, machine: Mapping[str, str]) -> None:
    """Raise :class:`UsageError` if trials of the run were done with another image."""
    before = run_directory.manifest.machine.get("image")
    if before is not None and before != machine.get("image"):
        now = machine.get("image", "none")
        raise UsageError(
            f"{run_directory.path}: its trials were done with image {before[:12]}, and this is {now[:12]}: "
            "run the experiment anew"
        )


CONFINED_BACKENDS = BUILT_BACKENDS = ("guest", "simulator")
"""Those that run in what backends/building.py builds. A stranger's plan can do no harm there."""

LONGEST_S = 86400.0
"""A run that would take longer is refused."""


def _check_length(plan: Plan, backend: Backend) -> None:
    """Raise :class:`UsageError` for a run that nobody would wait for."""
    seconds = estimate.run(plan, backend).seconds
    if seconds > LONGEST_S:
        shorter_s = (plan.run.warmup_ns + plan.run.duration_ns) / 1e9 * LONGEST_S / seconds
        raise UsageError(
            f"experiment {plan.shown.experiment!r}: it would take about {seconds / 3600:.0f} hours: use a "
            f"warmup and a duration of at most {shorter_s:.2g} s together, or fewer arms, "
            "replicates or perturbed runs"
        )


def backend_name(plan: Plan, name: str = "") -> str:
    """The backend that was asked for, or else the usual one of the experiment; raise :class:`UsageError` for
    one that there is not, or that the experiment is not for."""
    _check_backends(plan)
    name = name or plan.shown.backends[0]
    registry.check([name], "--backend")
    if name not in plan.shown.backends:
        raise UsageError(
            f"experiment {plan.shown.experiment!r} is not for the {name}: use --backend "
            f"{' or '.join(plan.shown.backends)}, or name it in the experiment's file, as in "
            f'backends = ["{name}"]'
        )
    return name


def check_plan(plan: Plan) -> None:
    """Raise :class:`UsageError` for a plan that no backend is for, or that cannot be judged, drawn or laid
    beside others."""
    _check_backends(plan)
    check(plan)
    published_comparison.spec(plan.shown.experiment)


def _check_backends(plan: Plan) -> None:
    """Raise :class:`UsageError` where the experiment names no backend, or one that there is not."""
    where = f"experiment {plan.shown.experiment!r}: backends"
    if not plan.shown.backends:
        raise UsageError(f"{where}: name one or more of {', '.join(registry.names())}")
    registry.check(plan.shown.backends, where)


def _remote(backend: Backend, scheduler: str) -> Backend:
    """``backend`` itself, or on the cluster whose scheduler is given."""
    if not scheduler:
        return backend
    if not backend.repeats_anywhere:
        raise UsageError(
            f"--engine dask is for trials that repeat anywhere, not for --backend {backend.name}"
        )
    from qjump_mn.backends.remote import RemoteBackend

    return RemoteBackend(backend, scheduler)
