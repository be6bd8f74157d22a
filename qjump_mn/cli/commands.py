"""Declare the commands of ``qjump-mn``, their options and help, and call the module of each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from qjump_mn import __version__, cache
from qjump_mn.cli import completion, examples, machine, mn_command, run_command
from qjump_mn.cli.options import (
    LAST,
    NO_SETTINGS,
    Engine,
    Experiment,
    FindingsTable,
    Listed,
    Preset,
    Rerun,
    Run,
    Sample,
    Scheduler,
    Setting,
    TheseArms,
    Trust,
    Verbose,
    Width,
    cluster,
    inches,
    names,
)
from qjump_mn.console import out
from qjump_mn.errors import UsageError
from qjump_mn.programs import user_programs
from qjump_mn.resolve import loading, sweep

if TYPE_CHECKING:
    from qjump_mn.session import Request

VARIABLES = "QJUMP_MN"
"""The prefix of environment variables for options."""

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="Reproduce QJump (NSDI'15) and what followed it, in Mininet.",
    epilog="Each option may be an environment variable: QJUMP_MN_RUN_PRESET is --preset of "
    "run.\n\nExit codes: 0 every checked claim holds; 1 a claim does not hold; 2 wrong "
    "usage; 3 this machine lacks something; 4 the run is invalid; 5 a trial was lost; 130 "
    "interrupted.",
)
app.add_typer(machine.app, name="machine")


def _print_version(requested: bool) -> None:
    if requested:
        out.print(f"qjump-mn {__version__}")
        raise typer.Exit()


@app.callback()
def main_options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    """Take the options that stand before a command's name."""
    context.obj = _run  # run_command.run calls it


app.command()(run_command.run)
app.command("mn", context_settings=mn_command.CONTEXT)(mn_command.mn)


def _run(request: Request, *, dry_run: bool) -> int:
    """Run one experiment, all of them or a sweep, or print a script; return the exit code."""
    from qjump_mn import session
    from qjump_mn.cli import run_all

    if request.experiment == run_all.ALL:
        return run_all.run(request, out, dry_run=dry_run)
    # The script runs on real hosts, so its preset is the usual one of the backend host.
    backend = "host" if dry_run else request.backend
    preset = request.preset or loading.usual_preset(request.experiment, backend)
    combinations = sweep.combinations(request.experiment, preset, request.settings)
    request = request._replace(preset=preset, settings=combinations[0])
    if len(combinations) > 1:
        return run_all.sweep(request, combinations, out, dry_run=dry_run)
    return session.print_script(request, out) if dry_run else session.run(request, out)


@app.command()
def resume(
    directory: Run = LAST,
    engine: Engine = "local",
    scheduler: Scheduler = "",
    verbose: Verbose = False,
    trust: Trust = False,
) -> None:
    """Finish a run that was interrupted or has lost trials.

    Finished trials are kept.
    """
    from qjump_mn import session

    raise typer.Exit(session.resume(directory, out, cluster(engine, scheduler), verbose=verbose))


@app.command("list")
def list_(what: Listed = "") -> None:
    """List the experiments and the schemes.

    Time and memory are for an experiment's usual preset on this machine.
    """
    from qjump_mn.cli import listing

    user_programs.forbid()
    listing.show(out, what)


@app.command()
def explain(
    experiment: Experiment,
    preset: Preset = "",
    settings: Setting = NO_SETTINGS,
    everything: Annotated[
        bool,
        typer.Option("--all", help="also show workloads, limits, predicates, remarks and settings"),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the plan as JSON: what is run, shown and judged")
    ] = False,
) -> None:
    """Describe an experiment: its question, arms, claims and presets.

    The time and memory of each preset are for this machine.
    """
    from qjump_mn.cli import explain

    show = explain.explain_all if everything else explain.explain
    show = explain.explain_json if as_json else show
    name = loading.experiment_called(experiment)
    show(name, preset or loading.usual_preset(name), settings, out)


@app.command()
def new(
    kind: Annotated[
        str,
        typer.Argument(
            help="experiment, scheme, topology or program",
            show_default=False,
            autocompletion=completion.kinds,
        ),
    ],
    name: Annotated[str, typer.Argument(help="its name", show_default=False)],
) -> None:
    """Write a new experiment, scheme, topology or program.

    The new file is commented and runs without changes.
    """
    from qjump_mn.cli import scaffold

    name = name.removesuffix(".toml")
    paths = [str(path) for path in scaffold.write(kind, name)]
    advice = f"{paths[0]} is written. Change it"
    if len(paths) > 1:
        advice = f"{' and '.join(paths)} are written. Change them"
    out.print(f"{advice}, and run  {scaffold.NEXT[kind].format(name=name)}", markup=False)


@app.command()
def report(
    directory: Run = LAST,
    pdf: Annotated[
        bool,
        typer.Option("--pdf", help="also write report.pdf, with this machine's Chromium or Chrome"),
    ] = False,
    width: Width = "",
    no_note: Annotated[
        bool, typer.Option("--no-note", help="draw the figures without the note below them")
    ] = False,
    verbose: Verbose = False,
    trust: Trust = False,
) -> None:
    """Write the report of a run again, from its files alone.

    The figures are drawn again and the claims are judged again; nothing is run.
    """
    from qjump_mn.analysis.judging import judge

    options = ["--pdf"] * pdf + ["--no-note"] * no_note
    options += ["--width", str(inches(width))] if width else []
    raise typer.Exit(judge(directory, *options, verbose=verbose))


@app.command()
def compare(
    directories: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="run directories, two or more")
    ],
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="also draw their latencies into this .png, .svg or .pdf file"
        ),
    ] = None,
) -> None:
    """Compare runs: their plans and what they measured.

    Each measure of the other runs is also given as a multiple of the first run's. Of a command's
    runs, the commands and their output are compared.
    """
    from qjump_mn.cli import command_comparison, compare

    if of_commands := command_comparison.read(directories):
        if figure:
            raise UsageError("--figure draws latencies, and a command's run has none: leave it out")
        command_comparison.show(of_commands, out)
        return
    runs = compare.read(directories)
    compare.show(runs, out)
    if figure:
        from qjump_mn.cli import compare_figure

        compare_figure.write(runs, figure)
        out.print(f"drawn into {figure}", markup=False)


@app.command()
def verify(
    directory: Run = LAST,
    arms: TheseArms = None,
    sample: Sample = None,
    trust: Trust = False,
) -> None:
    """Repeat the trials of a run here, and compare their files."""
    from qjump_mn.cli import verification

    raise typer.Exit(verification.verify(directory, out, arms=names(arms), sample=sample or 0))


@app.command()
def bundle(
    directory: Run = LAST,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="file to write; without it, RUN.qjump.zip in the current folder",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Pack a run into one file that somebody else can check."""
    from qjump_mn.cli.bundle import writing

    path = writing.write(directory, output)
    out.print(
        f"{path}: {path.stat().st_size / 2**20:.1f} MiB, SHA-256 {cache.hash_of_file(path)}",
        markup=False,
    )


@app.command()
def check(
    file: Annotated[
        Path, typer.Argument(help="a bundle, or a folder of bundles", show_default=False)
    ],
    assignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file with the assignment", show_default=False),
    ] = None,
    rerun: Rerun = None,
    arms: TheseArms = None,
    sample: Sample = None,
    table: FindingsTable = None,
) -> None:
    """Check that bundles are unchanged and as assigned, and judge them.

    In a folder, each .zip file is checked and gets a line in a table.
    """
    user_programs.forbid()
    if (arms or sample) and not rerun:
        raise UsageError("--arms and --sample choose the trials to repeat: add --rerun")
    from qjump_mn.cli.bundle import as_root, checking, hand_ins

    repetition = checking.Rerun(rerun, names(arms), sample or 0)
    checker = hand_ins if os.geteuid() else as_root
    raise typer.Exit(checker.check(file, out, assigned=assignment, rerun=repetition, table=table))


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Show what this machine can do and what is missing.

    It ends within 20 s. The exit code is 3 if something is missing, else 0. If other programs keep
    this machine too busy to try the guest, that is "unknown" and the exit code 0.
    """
    from qjump_mn.cli import doctor
    from qjump_mn.install import environment

    raise typer.Exit(doctor.report(out, as_json=as_json, began=environment.BEGAN))


@app.command()
def clean(
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="also remove everything that was built; it is rebuilt when needed"
        ),
    ] = False,
) -> None:
    """Remove what killed runs and interrupted builds have left behind.

    It also undoes what runs of the host backend left in this machine's kernel. Guests need no
    cleaning: they end with the process that started them.
    """
    from qjump_mn.cli import doctor

    doctor.clean(out, everything=everything)


def parser() -> Any:
    """Return the click command that parses the command line, with examples in its help."""
    command = typer.main.get_command(app)
    examples.complete(command)
    return command
