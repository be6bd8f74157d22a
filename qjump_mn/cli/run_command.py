"""Declare the command ``run`` and its options, and parse the command line of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
import typer.main

from qjump_mn.cli.options import (
    NO_SETTINGS,
    Backend,
    DryRun,
    Engine,
    ExperimentOrAll,
    OnlyArms,
    Perturb,
    Preset,
    Replicates,
    Runs,
    Scheduler,
    Schemes,
    Seed,
    Settings,
    Student,
    Trust,
    Verbose,
    Watch,
    check_added,
    cluster,
    names,
)
from qjump_mn.errors import UsageError
from qjump_mn.model import watch
from qjump_mn.resolve import checks, loading

VERBS = (
    "run",
    "mn",
    "resume",
    "list",
    "explain",
    "new",
    "report",
    "compare",
    "verify",
    "bundle",
    "export",
    "check",
    "doctor",
    "machine",
    "clean",
)


def run(
    context: typer.Context,
    experiment: ExperimentOrAll,
    preset: Preset = "",
    settings: Settings = NO_SETTINGS,
    arms: OnlyArms = None,
    schemes: Schemes = None,
    seed: Seed = 1,
    student: Student = "",
    replicates: Replicates = None,
    perturb: Perturb = 0,
    backend: Backend = "",
    engine: Engine = "local",
    scheduler: Scheduler = "",
    output: Runs = Path("results"),
    dry_run: DryRun = False,
    verbose: Verbose = False,
    watched: Watch = "",
    trust: Trust = False,
) -> None:
    """Run an experiment, draw its figures and judge its claims.

    Every arm runs with every seed. Each run gets its own folder, which contains report.html.
    """
    from qjump_mn import session

    arm_names, scheme_names = names(arms), names(schemes, "--scheme")
    check_added(scheme_names, arm_names)
    if student and seed != 1:
        raise UsageError("--student gives the seed: leave --seed out")
    request = session.Request(
        loading.experiment_called(experiment),
        preset,
        tuple(settings),
        checks.student_seed(student) if student else seed,
        replicates,
        backend,
        output,
        arm_names,
        scheme_names,
        cluster(engine, scheduler),
        perturb,
        verbose,
        student,
        watched,
    )
    raise typer.Exit(context.obj(request, dry_run=dry_run))


def arguments(words: list[str]) -> list[str]:
    """Insert ``run`` before an experiment's name (``fig3a --preset smoke``), and the usual part
    after ``--watch`` without one; without words, ``--help``."""
    if not words:
        return ["--help"]
    if not words[0].startswith("-") and words[0] not in VERBS:
        words = ["run", *words]
    return _with_part(words) if words[0] == "run" else words


def _with_part(words: list[str]) -> list[str]:
    """Insert the value of ``--watch``, for which Typer has no default."""
    for place, (word, next_word) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        if word == "--watch" and ":" not in next_word:
            return [*words[: place + 1], watch.USUAL, *words[place + 1 :]]
    return words


def options_of(argv: Sequence[str]) -> dict[str, Any]:
    """Return the options in the command line of a run's manifest; {} for another command."""
    words = arguments([word for word in argv[1:] if word != "--debug"])
    if words[:1] != ["run"]:
        return {}
    app = typer.Typer()
    app.command()(run)
    command: Any = typer.main.get_command(app)
    params: dict[str, Any] = command.make_context("run", words[1:], resilient_parsing=True).params
    found = {key: value for key, value in params.items() if value is not None}
    return found | ({"seed": checks.student_seed(found["student"])} if found.get("student") else {})
