"""Run one experiment: plan it, choose a backend, run its trials, and analyse the run directory."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from qjump_mn import resolve
from qjump_mn.analysis import published_comparison
from qjump_mn.analysis.check import check
from qjump_mn.analysis.judging import Judge
from qjump_mn.backends import building, emulated, estimate, registry
from qjump_mn.backends.execute import execute
from qjump_mn.backends.progress import Board
from qjump_mn.backends.protocol import Backend, Ended
from qjump_mn.errors import UsageError
from qjump_mn.install import provenance
from qjump_mn.model import watch
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process import interrupts
from qjump_mn.process.heartbeat import heartbeat
from qjump_mn.results import contents, directory, formatting, ownership, user_files
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Clock
from qjump_mn.steps import script
from qjump_mn.toolbox import machines


class Request(NamedTuple):
    """One experiment with the options of ``qjump-mn run``."""

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
    student: str = ""
    watch: str = ""

    def plan(self, backend: str = "") -> Plan:
        """Resolve the plan, for ``backend`` if given instead of the requested one.

        Raises :class:`UsageError` for a request that has no plan.
        """
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
            watched=self.watch,
        )

    def argv(self) -> list[str]:
        """Return the equivalent command line, for the manifest and the report.

        It includes options that came from environment variables, and leaves out ``--verbose``.
        """
        argv = ["qjump-mn", "run", self.experiment, "--preset", self.preset]
        if self.student:
            argv += ["--student", self.student]
        elif self.seed != self._field_defaults["seed"]:
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
        if self.watch:
            argv += ["--watch"] if self.watch == watch.USUAL else ["--watch", self.watch]
        if self.scheduler:
            argv += ["--engine", "dask", "--scheduler", self.scheduler]
        return argv if self.out == self._field_defaults["out"] else [*argv, "--out", str(self.out)]


def print_script(request: Request, out: Console) -> int:
    """Print the plan as a shell script for real hosts, without running anything; return 0."""
    plan = request.plan("host")
    check_plan(plan)
    _check_watch(plan, "host")
    backend = registry.make(backend_name(plan, request.backend))
    if backend.name == "simulator":
        raise UsageError(
            "--dry-run prints shell commands, and the simulator runs none: use  explain --json  "
            "instead"
        )
    try:
        emulated.check(plan)
    except UsageError as error:
        emulated.check(request.plan("guest"))  # an error in the guest too is not one of --dry-run
        raise UsageError(
            f"--dry-run writes a script for a machine on which code takes time: {error}"
        ) from error
    for line in script.lines(plan):
        out.print(line, markup=False, soft_wrap=True)
    return 0


def run(request: Request, out: Console) -> int:
    """Run the requested experiment and judge it; return the exit code."""
    plan = request.plan()
    backend = checked_backend(plan, request, out)
    run_directory = create_run(plan, backend, request, out)
    return run_and_judge(backend, run_directory, plan, out, verbose=request.verbose)


def checked_backend(plan: Plan, request: Request, out: Console) -> Backend:
    """Return the backend for the plan, after checking that it can run the plan.

    Raises :class:`UsageError` for a plan that cannot be run there, judged or drawn, or that would
    take longer than :data:`MAX_RUN_S`.
    """
    check_plan(plan)
    backend = _remote(registry.make(backend_name(plan, request.backend)), request.scheduler)
    _check_watch(plan, backend.name)
    backend.check(plan, lambda line: out.print(line, markup=False))
    if backend.name != "simulator":
        _check_length(plan, backend)
    return backend


def create_run(plan: Plan, backend: Backend, request: Request, out: Console) -> RunDirectory:
    """Print what is about to run and create its run directory."""
    trials = f"{count(plan.run.arms, 'arm')} x {count(plan.run.seeds, 'seed')}"
    if plan.run.perturbations:
        trials += f" and {count(plan.run.perturbations, 'perturbed run')}"
    summary = f"{trials} on {plan.shown.network.topology}, backend {backend.name}"
    build_time = ""
    if _lacks_machine(backend):
        build_time = (
            f", after about {building.BUILD_MINUTES} min to build the virtual machine and "
            "the simulator, once"
        )
    git_state = provenance.git()
    out.print(provenance.describe(git_state), markup=False)
    out.print(f"{formatting.experiment(plan)}, preset {plan.shown.preset}: {summary}", markup=False)
    out.print(f"{estimate.run(plan, backend)}{build_time}", markup=False)
    now = datetime.datetime.now(datetime.UTC)
    run = directory.create(
        request.out,
        plan,
        backend=backend.name,
        clock=clock_of(backend),
        argv=tuple(request.argv()),
        git=git_state,
        versions=provenance.versions(),
        machine={},
        now=now,
    )
    user_files.keep(plan, run.path)
    return run


def count(items: Sequence[object], noun: str) -> str:
    """Return the number of items with their noun: "3 arms", "1 seed"."""
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def resume(path: Path, out: Console, scheduler: str = "", *, verbose: bool = False) -> int:
    """Run the missing and damaged trials of an earlier run, and judge it; return the exit code.

    Raises :class:`UsageError` if the plan has changed, the done trials used another image, or
    another user can change the run.
    """
    run_directory = directory.existing(path)
    ownership.check(run_directory, CONFINED_BACKENDS)
    backend = backend_of(run_directory, out, scheduler)
    plan = run_directory.manifest.plan
    with run_directory.held():  # only the process that holds a run may change its DONE marks
        for name, reason in contents.damaged(run_directory.path, run_directory.manifest).items():
            out.print(f"{name} is run again: {reason}", markup=False)
            run_directory.unmark(name)
    left = sum(not run_directory.is_done(trial.name) for trial in plan.trials())
    out.print(
        f"{formatting.experiment(plan)}, preset {plan.shown.preset}: "
        f"{left} of {len(plan.trials())} trials are left",
        markup=False,
    )
    return run_and_judge(backend, run_directory, plan, out, verbose=verbose)


def backend_of(run_directory: RunDirectory, out: Console, scheduler: str = "") -> Backend:
    """Return the backend of an earlier run, after checking that it can run the plan again.

    Raises :class:`UsageError` if the manifest's plan is not the one that was run.
    """
    manifest = run_directory.manifest
    plan = manifest.plan
    if plan.hash != manifest.plan_sha256:
        raise UsageError(
            f"{run_directory.path}: its plan is not the one that was run, or another version made "
            "it: run the experiment anew"
        )
    name = backend_name(plan, manifest.backend)
    local_backend = registry.make(name)
    if manifest.clock != clock_of(local_backend):
        raise UsageError(
            f"{run_directory.path}: its manifest says clock {manifest.clock}, and the backend "
            f"{name} has the {clock_of(local_backend)} clock: the manifest was edited; run the "
            "experiment anew"
        )
    backend = _remote(local_backend, scheduler)
    backend.check(plan, lambda line: out.print(line, markup=False))
    return backend


def clock_of(backend: Backend) -> Clock:
    """Return the clock that manifests name for this backend."""
    return "virtual" if backend.clock == "virtual" else "real"


def run_and_judge(
    backend: Backend,
    run_directory: RunDirectory,
    plan: Plan,
    out: Console,
    *,
    verbose: bool = False,
) -> int:
    """Run every trial that is not done, then judge the run; return the exit code."""
    with (
        interrupts.resumable(run_directory.path),
        Judge(run_directory.path, verbose=verbose) as judge,
    ):
        try:
            with run_directory.held(), backend:
                trials = [trial for trial in plan.trials() if not run_directory.is_done(trial.name)]
                expected, start = estimate.run(plan, backend, trials), time.monotonic()
                run_trials(backend, run_directory, trials, out, spare=judge.call_in)
                estimate.note(plan, backend, run_directory.manifest.trials)
        finally:
            directory.hand_over(run_directory.path, directory.owner_of(run_directory.path))
        exit_code = judge.judge()
        took_s = round(time.monotonic() - start, 1)
        run_directory.log(
            "took", trials=len(trials), expected_s=round(expected.seconds, 1), took_s=took_s
        )
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
    """Run the trials, and print the progress and the result of each.

    Without ``medians`` no measurement is printed, so that this process parses no output of a
    stranger's run. ``spare`` is called repeatedly while the remaining trials leave a part of the
    backend idle. Raises :class:`UsageError` if earlier trials of the run used another image.
    """
    plan = run_directory.manifest.plan
    with Board(out, backend, trials, estimate.each_trial(plan, backend, trials)) as board:

        def progress(trial: Trial, line: str) -> None:
            if stage := board.stage(trial, line):
                run_directory.log("progress", name=trial.name, line=stage)

        def ended(trial: Trial, result: Ended) -> None:
            has_median = medians and not result.exit_code
            board.ended(trial, result, _median(run_directory, trial, plan) if has_median else "")

        machine = prepare(backend, plan, board.tell)
        _check_image(run_directory, machine)
        run_directory.enter_machine(machine)
        execute(backend, trials, run_directory, progress, ended, board.tick, spare)


def _median(run_directory: RunDirectory, trial: Trial, plan: Plan) -> str:
    # Imports pyarrow, which takes half a second: done here, while other trials run.
    from qjump_mn.analysis.measures import first_median

    return first_median(run_directory, trial, formatting.unit(plan))


def prepare(backend: Backend, plan: Plan, progress: Callable[[str], None]) -> dict[str, str]:
    """Prepare what the trials of the plan need, and return what the manifest says of the machine.

    On first use this builds the virtual machine and the simulator.
    """
    if _lacks_machine(backend):
        building.build(progress)
    with heartbeat(progress) as report:
        return backend.prepare(plan, report)


def _lacks_machine(backend: Backend) -> bool:
    """Return whether the backend needs a machine that is not here.

    The simulator needs none: it got its module when it checked the plan.
    """
    return backend.name == "guest" and not machines.is_at_hand()


def _check_image(run_directory: RunDirectory, machine: Mapping[str, str]) -> None:
    """Raise :class:`UsageError` if trials of the run were done with another image."""
    image = run_directory.manifest.machine.get("image")
    if image is not None and image != machine.get("image"):
        present = machine.get("image", "none")
        raise UsageError(
            f"{run_directory.path}: its trials were done with image {image[:12]}, and this machine "
            f"has {present[:12]}: run the experiment anew"
        )


CONFINED_BACKENDS = ("guest", "simulator")
"""Backends in which a stranger's plan can do no harm."""

MAX_RUN_S = 86400.0
"""The longest expected time of a run that is not refused."""


def _check_length(plan: Plan, backend: Backend) -> None:
    """Raise :class:`UsageError` for a run that is expected to take more than :data:`MAX_RUN_S`."""
    seconds = estimate.run(plan, backend).seconds
    if seconds > MAX_RUN_S:
        shorter_s = (plan.run.warmup_ns + plan.run.duration_ns) / 1e9 * MAX_RUN_S / seconds
        raise UsageError(
            f"experiment {plan.shown.experiment!r}: it would take about {seconds / 3600:.0f} "
            f"hours: use a warmup and a duration of at most {shorter_s:.2g} s together, or fewer "
            "arms, replicates or perturbed runs"
        )


def _check_watch(plan: Plan, backend: str) -> None:
    watch.check(plan.run.watch, {arm.name: arm.network for arm in plan.run.arms}, backend)


def backend_name(plan: Plan, name: str = "") -> str:
    """Return the backend ``name``, or the experiment's usual one if it is empty.

    Raises :class:`UsageError` for an unknown backend, or one that the experiment does not name.
    """
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
    """Raise :class:`UsageError` for a plan that cannot be run by any backend, judged, drawn or
    compared with published numbers."""
    _check_backends(plan)
    check(plan)
    published_comparison.spec(plan.shown.experiment)


def _check_backends(plan: Plan) -> None:
    """Raise :class:`UsageError` if the experiment names no backend, or an unknown one."""
    location = f"experiment {plan.shown.experiment!r}: backends"
    if not plan.shown.backends:
        raise UsageError(f"{location}: name one or more of {', '.join(registry.names())}")
    registry.check(plan.shown.backends, location)


def _remote(backend: Backend, scheduler: str) -> Backend:
    """Return ``backend``, or one that runs its trials on the cluster of ``scheduler``."""
    if not scheduler:
        return backend
    if not backend.repeats_anywhere:
        raise UsageError(
            f"--engine dask needs trials that repeat on any machine, and --backend {backend.name} "
            "has none: use another backend or leave out --engine"
        )
    from qjump_mn.backends.remote import RemoteBackend

    return RemoteBackend(backend, scheduler)
