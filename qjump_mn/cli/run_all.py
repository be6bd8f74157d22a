"""Run several experiments one after another: ``run all``, or settings with several values (a
sweep).

The same command, given again, continues with the runs that are left.
"""

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
from qjump_mn.model import identity, suggestions
from qjump_mn.model.plan import Plan
from qjump_mn.process import interrupts
from qjump_mn.resolve import loading
from qjump_mn.results import directory, formatting, outcome, previous_runs
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.outcome import Outcome
from qjump_mn.results.previous_runs import EarlierRun
from qjump_mn.session import Request

ALL = loading.ALL


class Task(NamedTuple):
    """One run to make, resume or find.

    ``before`` is the newest run of the same plan, and ``outcome`` its outcome if it is complete.
    ``expected_s`` is the expected time of the missing trials.
    """

    request: Request
    plan: Plan
    before: EarlierRun | None
    outcome: Outcome | None
    expected_s: float

    @property
    def how(self) -> Literal["found", "resumed", "run"]:
        """Whether the run is found complete, resumed or made."""
        if self.outcome is not None:
            return "found"
        return "run" if self.before is None else "resumed"


class Result(NamedTuple):
    """How a task ended; ``message`` is the sentence of its error, or ""."""

    task: Task
    exit_code: int
    message: str
    run_directory: RunDirectory | None
    wall_s: float


def run(request: Request, out: Console, *, dry_run: bool = False) -> int:
    """Run every experiment that has the preset of ``request``; return the :func:`worst` exit code.

    Without a preset, every experiment runs with its usual one; ``request.experiment`` is not read.
    All plans, and the folder, are checked before the first one runs. A complete run is found again,
    an incomplete one is resumed. An error of one experiment does not stop the others. Raises
    :class:`UsageError` for an option that makes sense with one experiment only.
    """
    _check_unused(
        {
            "-s": request.settings,
            "--arms": request.arms,
            "--scheme": request.schemes,
            "--backend": request.backend,
            "--watch": request.watch,
            "--dry-run": dry_run,
        }
    )
    requests = [
        request._replace(experiment=name, preset=preset)
        for name, preset in _presets(request.preset).items()
    ]
    presets = f"preset {request.preset}" if request.preset else "their usual presets"
    tasks = [_task(request, out) for request in requests]
    return worst(
        result.exit_code for result in _run_tasks(tasks, f"experiments with {presets}", out)
    )


def sweep(
    request: Request, settings: Sequence[tuple[str, ...]], out: Console, *, dry_run: bool = False
) -> int:
    """Run the experiment once with each of the ``settings``, and compare the runs.

    As in :func:`run`, all are checked first, and a complete run is found again. Returns the
    :func:`worst` exit code.
    """
    if dry_run:
        raise UsageError("--dry-run prints one run: give each setting one value")
    tasks = [_task(request._replace(settings=combination), out) for combination in settings]
    _check_distinct(tasks)
    results = _run_tasks(tasks, "runs with these settings", out)
    judged = [
        result.run_directory.path
        for result in results
        if result.run_directory and _verdicts(result)
    ]
    if 1 < len(judged) <= compare.MAX_RUNS:
        out.print("")
        try:
            compare.show(compare.read(judged), out)
        except UsageError as error:  # the comparison is an extra: the runs are good without it
            out.print(str(error), markup=False)
    return worst(result.exit_code for result in results)


def _check_distinct(tasks: Sequence[Task]) -> None:
    """Raise :class:`UsageError` for settings that make the same run twice, for example because a
    sweep of the experiment sets them as well."""
    by_hash: dict[str, Task] = {}
    for task in tasks:
        same = by_hash.setdefault(task.plan.hash, task)
        if same is not task:
            first, second = (" ".join(twin.request.settings) for twin in (same, task))
            raise UsageError(
                f"-s {first} and -s {second} make the same run: an arm or a sweep of the "
                "experiment sets that itself"
            )


def _run_tasks(tasks: Sequence[Task], heading: str, out: Console) -> list[Result]:
    """Do the tasks one after another, and print a table of the results."""
    directory.make_room(tasks[0].request.out)
    _announce(tasks, heading, out)
    results = []
    with interrupts.repeatable():
        for number, task in enumerate(tasks, 1):
            if task.outcome is None:
                title = " ".join((task.plan.shown.experiment, *task.request.settings))
                out.print(f"\n[{number}/{len(tasks)}] {title}", markup=False)
            results.append(_run_task(task, out))
    out.print("")
    table = _table(results)
    table.width = unfolded_width(out, table)  # a path that is cut cannot be copied
    out.print(table)
    for result in results:
        if result.message:
            out.print(f"{result.task.plan.shown.experiment}: {result.message}", markup=False)
    return results


def worst(exit_codes: Iterable[int]) -> int:
    """Return the greatest exit code.

    The order is 5 (lost), 4 (invalid), 3 (this machine cannot), 2 (usage), 1 (a claim does not
    hold), 0.
    """
    return max(exit_codes)


def _check_unused(options: Mapping[str, object]) -> None:
    """Raise :class:`UsageError` if one of the options was given."""
    given = [option for option, value in options.items() if value]
    if given:
        raise UsageError(
            f"{' and '.join(given)} cannot be used with run {ALL}: name one experiment"
        )


def _presets(preset: str) -> dict[str, str]:
    """Return the experiments that have the preset, each with it; if it is empty, all with their
    usual one.

    Raises :class:`UsageError` if none has it.
    """
    names = loading.names("experiments")
    for name in names:
        loading.check_name(name)
    if not preset:
        return {name: loading.usual_preset(name) for name in names}
    presets_of = {name: loading.summary(name).presets for name in names}
    selected = {name: preset for name in names if preset in presets_of[name]}
    if not selected:
        candidates = sorted({candidate for presets in presets_of.values() for candidate in presets})
        raise UsageError(
            f"no experiment has a preset {preset!r}: {suggestions.nearest(preset, candidates)}"
        )
    return selected


def _task(request: Request, out: Console) -> Task:
    """Make the task for the experiment of ``request``; raise :class:`UsageError` if it cannot be
    run."""
    plan = request.plan()
    backend_name = session.backend_name(plan, request.backend)
    before = next(
        (
            run
            for run in previous_runs.newest_first(request.out, plan.shown.experiment)
            if run.manifest.plan_sha256 == plan.hash
            and run.manifest.backend == backend_name
            and plan.run.watch in (None, run.manifest.plan.run.watch)
        ),
        None,
    )
    # Closed here and made again later: a connection to a cluster would have to last for hours.
    with session.checked_backend(plan, request, out) as backend:
        expected_s = estimate.run(plan, backend).seconds
    if before is None:
        return Task(request, plan, None, None, expected_s)
    return Task(
        request, plan, before, before.outcome, expected_s * before.left / len(plan.trials())
    )


def _announce(tasks: Sequence[Task], heading: str, out: Console) -> None:
    """Print how many runs are done, to resume and to make, and the expected time."""
    counts = {
        word: sum(task.how == how for task in tasks)
        for word, how in (("done already", "found"), ("to resume", "resumed"), ("to run", "run"))
    }
    summary = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    out.print(f"{heading}: {summary}", markup=False)
    if expected_s := sum(task.expected_s for task in tasks):
        out.print(f"about {estimate.time_in_words(expected_s)}", markup=False)


def _run_task(task: Task, out: Console) -> Result:
    """Make or resume a run, unless it is complete; an error is printed and becomes the result."""
    request, plan = task.request, task.plan
    run_directory = task.before.directory if task.before else None
    if task.outcome is not None:
        return Result(task, task.outcome.exit_code, "", run_directory, 0.0)
    start, message = time.monotonic(), ""
    try:
        if run_directory is not None:
            code = session.resume(
                run_directory.path, out, request.scheduler, verbose=request.verbose
            )
        else:
            backend = session.checked_backend(plan, request, out)
            run_directory = session.create_run(plan, backend, request, out)
            code = session.run_and_judge(backend, run_directory, plan, out, verbose=request.verbose)
    except Exception as error:
        if not isinstance(error, QJumpError) and not user_program_line(error):
            raise
        if interrupts.interruption(error):
            raise  # Ctrl-C, even if the clean-up after it raised something else
        message, code = last_words(error)
        print(f"{BEGINS}{message}", file=sys.stderr)
    return Result(task, code, message, run_directory, time.monotonic() - start)


def _table(results: Iterable[Result]) -> Table:
    """A row for each run."""
    table = Table(box=None, pad_edge=False)
    for heading in (
        "experiment",
        "preset",
        "action",
        "exit code",
        "time",
        "verdicts",
        "run directory",
    ):
        table.add_column(heading)
    for result in results:
        task, run_directory = result.task, result.run_directory
        table.add_row(
            task.plan.shown.experiment,
            Text(" ".join((task.plan.shown.preset, *task.request.settings))),
            _action(task),
            str(result.exit_code),
            estimate.time_in_words(result.wall_s) if result.wall_s else formatting.NONE,
            Text(_verdicts(result) or formatting.NONE),
            Text(
                str(task.request.out / run_directory.path.name)
                if run_directory
                else formatting.NONE
            ),
        )
    return table


def _action(task: Task) -> str:
    """Return what was done, and whether the verdicts are those of an earlier version of the
    claims."""
    if task.before and task.before.manifest.judged_sha256 != identity.sha256(task.plan.judged):
        return f"{task.how}, judged by older claims"
    return task.how


def _verdicts(result: Result) -> str:
    """Count the claims by verdict; return "" if the run was not judged, or has changed since."""
    if result.run_directory is None:
        return ""
    try:
        judged = outcome.read(result.run_directory.path)
    except UsageError:
        return ""
    return formatting.verdicts(judged) if judged.exit_code == result.exit_code else ""
