"""Several runs by one command, one after another: ``run all``, every experiment that has a preset, and
settings with several values. The same command goes on with what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.console import Console
from rich.text import Text

from qjump_mn import session
from qjump_mn.backends import estimate
from qjump_mn.cli import compare
from qjump_mn.console import Table, unfolded_width
from qjump_mn.errors import BEGINS, QJumpError, UsageError, last_words, user_program_line
from qjump_mn.model import identity, loading, suggestions
from qjump_mn.model.plan import Plan
from qjump_mn.process import interrupts
from qjump_mn.results import directory, formatting, outcome, previous_runs
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.outcome import Outcome
from qjump_mn.results.previous_runs import EarlierRun
from qjump_mn.session import Request

ALL = loading.ALL


class Task(NamedTuple):
    """What is to be done for an experiment: ``request`` asks for it alone, ``before`` is the newest run of
    the same plan with its ``outcome``, if it is complete; ``expected_s`` is how long what is left takes."""

    request: Request
    plan: Plan
    before: EarlierRun | None
    outcome: Outcome | None
    expected_s: float

    @property
    def how(self) -> Literal["found", "resumed", "run"]:
        """What is done for it."""
        if self.outcome is not None:
            return "found"
        return "run" if self.before is None else "resumed"


class Result(NamedTuple):
    """How a task ended; ``message`` is the sentence of its error, if it ended with one."""

    task: Task
    exit_code: int
    message: str
    run_directory: RunDirectory | None
    wall_s: float


def run(request: Request, out: Console, *, dry_run: bool = False) -> int:
    """Run every experiment that has the preset of ``request``, or each with its usual one if that is empty;
    its ``experiment`` is not read. Return the :func:`worst` exit code.

    All plans, and the folder, are checked before the first one runs. A complete run is found again, another
    one is resumed. An error of one experiment does not stop the others. Raises :class:`UsageError` for an
    option that makes sense with one experiment only.
    """
    _refuse(
        {
            "-s": request.settings,
            "--arms": request.arms,
            "--scheme": request.schemes,
            "--backend": request.backend,
            "--dry-run": dry_run,
        }
    )
    requests = [
        request._replace(experiment=name, preset=preset) for name, preset in _presets(request.preset).items()
    ]
    what = f"preset {request.preset}" if request.preset else "their usual presets"
    tasks = [_task(request, out) for request in requests]
    return worst(result.exit_code for result in _all_done(tasks, f"experiments with {what}", out))


def sweep(
    request: Request, settings: Sequence[tuple[str, ...]], out: Console, *, dry_run: bool = False
) -> int:
    """Run the experiment once with each of the ``settings``, and compare the runs; return the :func:`worst`
    exit code. As in :func:`run`, all are checked first, and a complete run is found again."""
    if dry_run:
        raise UsageError("--dry-run is of one run: give each setting one value")
    tasks = [_task(request._replace(settings=each), out) for each in settings]
    _check_differ(tasks)
    results = _all_done(tasks, "runs with these settings", out)
    judged = [result.run_directory.path for result in results if result.run_directory and _verdicts(result)]
    if 1 < len(judged) <= compare.MOST:
        out.print("")
        try:
            compare.show(compare.read(judged), out)
        except UsageError as error:  # the runs are as good as without it
            out.print(str(error), markup=False)
    return worst(result.exit_code for result in results)


def _check_differ(tasks: Sequence[Task]) -> None:
    """Raise :class:`UsageError` for settings that make the same run twice, as where a sweep sets them too."""
    made: dict[str, Task] = {}
    for task in tasks:
        same = made.setdefault(task.plan.hash, task)
        if same is not task:
            one, other = (" ".join(each.request.settings) for each in (same, task))
            raise UsageError(
                f"-s {one} and -s {other} make the same run: an arm or a sweep of the experiment sets that "
                "itself"
            )


def _all_done(tasks: Sequence[Task], what: str, out: Console) -> list[Result]:
    """Do one after another, and print the table of what became of them."""
    directory.make_room(tasks[0].request.out)
    _announce(tasks, what, out)
    results = []
    with interrupts.repeatable():
        for number, task in enumerate(tasks, 1):
            if task.outcome is None:
                named = " ".join((task.plan.shown.experiment, *task.request.settings))
                out.print(f"\n[{number}/{len(tasks)}] {named}", markup=False)
            results.append(_done(task, out))
    out.print("")
    table = _table(results)
    table.width = unfolded_width(out, table)  # a path that is cut cannot be copied
    out.print(table)
    for result in results:
        if result.message:
            out.print(f"{result.task.plan.shown.experiment}: {result.message}", markup=False)
    return results


def worst(exit_codes: Iterable[int]) -> int:
    """The greatest: 5 (lost) before 4 (invalid), 3 (this machine cannot), 2 (refused), 1 (a claim does not
    hold) and 0."""
    return max(exit_codes)


def _refuse(options: Mapping[str, object]) -> None:
    """Raise :class:`UsageError` if one of the options was given."""
    given = [option for option, value in options.items() if value]
    if given:
        raise UsageError(f"{' and '.join(given)} cannot go with run {ALL}: name one experiment")


def _presets(preset: str) -> dict[str, str]:
    """The experiments that have the preset, or all of them if it is empty, each with the preset that it is
    run with; raise :class:`UsageError` if none has it."""
    names = loading.names("experiments")
    for name in names:
        loading.check_name(name)
    if not preset:
        return {name: loading.usual_preset(name) for name in names}
    known = {name: loading.summary(name).presets for name in names}
    having = {name: preset for name in names if preset in known[name]}
    if not having:
        every = sorted({one for presets in known.values() for one in presets})
        raise UsageError(f"no experiment has a preset {preset!r}: {suggestions.nearest(preset, every)}")
    return having


def _task(request: Request, out: Console) -> Task:
    """What is to be done for the one experiment that ``request`` names; raise :class:`UsageError` for what
    cannot be run."""
    plan = request.plan()
    backend_name = session.backend_name(plan, request.backend)
    before = next(
        (
            run
            for run in previous_runs.newest_first(request.out, plan.shown.experiment)
            if run.manifest.plan_sha256 == plan.hash and run.manifest.backend == backend_name
        ),
        None,
    )
    # Made again when its turn comes: a connection to a cluster would have to last for hours.
    with session.checked_backend(plan, request, out) as backend:
        expected_s = estimate.run(plan, backend).seconds
    if before is None:
        return Task(request, plan, None, None, expected_s)
    return Task(request, plan, before, before.outcome, expected_s * before.left / len(plan.trials()))


def _announce(tasks: Sequence[Task], what: str, out: Console) -> None:
    """Say what will be done, and how long it takes."""
    counts = {
        word: sum(task.how == how for task in tasks)
        for word, how in (("done already", "found"), ("to resume", "resumed"), ("to run", "run"))
    }
    counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    out.print(f"{what}: {counted}", markup=False)
    if expected_s := sum(task.expected_s for task in tasks):
        out.print(f"about {estimate.time_in_words(expected_s)}", markup=False)


def _done(task: Task, out: Console) -> Result:
    """Do what is to be done for an experiment; an error is printed and becomes its result."""
    request, plan = task.request, task.plan
    run_directory = task.before.directory if task.before else None
    if task.outcome is not None:
        return Result(task, task.outcome.exit_code, "", run_directory, 0.0)
    began, message = time.monotonic(), ""
    try:
        if run_directory is not None:
            code = session.resume(run_directory.path, out, request.scheduler, verbose=request.verbose)
        else:
            backend = session.checked_backend(plan, request, out)
            run_directory = session.create_run(plan, backend, request, out)
            code = session.run_and_judge(backend, run_directory, plan, out, verbose=request.verbose)
    except Exception as error:
        if not isinstance(error, QJumpError) and not user_program_line(error):
            raise
        if interrupts.interruption(error):
            raise  # an error of the clean-up after Ctrl-C
        message, code = last_words(error)
        print(f"{BEGINS}{message}", file=sys.stderr)
    return Result(task, code, message, run_directory, time.monotonic() - began)


def _table(results: Iterable[Result]) -> Table:
    """A row for each run."""
    table = Table(box=None, pad_edge=False)
    for heading in ("experiment", "asked", "done", "exit code", "took", "verdicts", "run directory"):
        table.add_column(heading)
    for result in results:
        task, run_directory = result.task, result.run_directory
        table.add_row(
            task.plan.shown.experiment,
            Text(" ".join((task.plan.shown.preset, *task.request.settings))),
            _how(task),
            str(result.exit_code),
            estimate.time_in_words(result.wall_s) if result.wall_s else formatting.NONE,
            Text(_verdicts(result) or formatting.NONE),
            Text(str(task.request.out / run_directory.path.name) if run_directory else formatting.NONE),
        )
    return table


def _how(task: Task) -> str:
    """What was done, and whether its verdicts are those of other claims than the experiment has now."""
    if task.before and task.before.manifest.judged_sha256 != identity.sha256(task.plan.judged):
        return f"{task.how}, judged by older claims"
    return task.how


def _verdicts(result: Result) -> str:
    """How many claims have each verdict; nothing if the run was not judged, or not as it is now."""
    if result.run_directory is None:
        return ""
    try:
        found = outcome.read(result.run_directory.path)
    except UsageError:
        return ""
    return formatting.verdicts(found) if found.exit_code == result.exit_code else ""
