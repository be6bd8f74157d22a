"""The commands: what each takes, and who carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from qjump_mn import __version__, cache, completion, machine
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, sweep
from qjump_mn.options import (
    NO_SETTINGS,
    Engine,
    Experiment,
    Kernel,
    Preset,
    Sample,
    Scheduler,
    Settings,
    TheseArms,
    Verbose,
    check_added,
    cluster,
    folder,
    kernel_named,
    names,
)
from qjump_mn.output import out

VERBS = (
    "run",
    "resume",
    "list",
    "explain",
    "new",
    "report",
    "compare",
    "verify",
    "bundle",
    "check",
    "doctor",
    "machine",
    "clean",
)

VARIABLES = "QJUMP_MN"
"""What the variables for options begin with."""

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="Reproduce QJump (NSDI'15) and what followed it, in Mininet.",
    epilog="Each option may be a variable: --preset of run is QJUMP_MN_RUN_PRESET. Exit codes: 0 every "
    "checked claim holds; 1 a claim does not; 2 usage; 3 this machine cannot; 4 invalid; 5 lost; 130 "
    "interrupted.",
)


app.add_typer(machine.app, name="machine")


def _version(asked: bool) -> None:
    if asked:
        out.print(f"qjump-mn {__version__}")
        raise typer.Exit()


@app.callback()
def main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """What goes before a command's name."""


@app.command()
def run(
    experiment: Annotated[
        str,
        typer.Argument(
            help="the experiment's name, such as fig3a, see list; or all: every one that has the preset",
            show_default=False,
            autocompletion=completion.experiments,
        ),
    ],
    preset: Preset = "",
    settings: Settings = NO_SETTINGS,
    arms: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM,ARM",
            help="run only these arms; claims that need others are not judged",
            show_default=False,
            autocompletion=completion.arms,
        ),
    ] = None,
    schemes: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            metavar="SCHEME,SCHEME",
            help="add an arm for each of these schemes, ours or yours; see list",
            show_default=False,
            autocompletion=completion.schemes,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="the first seed; each further replicate has the next one")] = 1,
    replicates: Annotated[
        int | None,
        typer.Option(
            help="how many seeds each arm runs with, instead of the preset's number", show_default=False
        ),
    ] = None,
    perturb: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="run each arm N more times, each with one thing varied that should not matter; verdicts "
            "tell what overturns them",
        ),
    ] = 0,
    backend: Annotated[
        str,
        typer.Option(
            help="guest: a machine of its own, on a virtual clock; host: this machine's kernel; "
            "simulator: no kernel; else the experiment's usual one",
            show_default=False,
            autocompletion=completion.backends,
        ),
    ] = "",
    cold: Annotated[
        bool,
        typer.Option(
            "--cold", help="boot for every trial, so that another machine gives the same bits; slower"
        ),
    ] = False,
    kernel: Kernel = "",
    engine: Engine = "local",
    scheduler: Scheduler = "",
    output: Annotated[
        Path,
        typer.Option(
            "--out", metavar="OUTPUT", parser=folder, help="the folder in which the run directory is made"
        ),
    ] = Path("results"),
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="print the plan and the shell commands it stands for; touch nothing"),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Run an experiment: every arm with every seed; then figures, verdicts and report."""
    from qjump_mn import campaign, session

    only, added = names(arms), names(schemes, "--scheme")
    check_added(added, only)
    name, dask = loading.experiment_called(experiment), cluster(engine, scheduler)
    if name != campaign.ALL:
        # A script is for a machine whose clock nobody slows down, as the backend host.
        preset = preset or loading.usual_preset(name, "host" if dry_run else backend)
    request = session.Request(
        name,
        preset,
        tuple(settings),
        seed,
        replicates,
        backend,
        cold,
        output,
        only,
        added,
        dask,
        perturb,
        kernel_named(kernel),
        verbose,
    )
    if name == campaign.ALL:
        raise typer.Exit(campaign.run(request, out, dry_run=dry_run))
    each = sweep.combinations(name, preset, settings)
    if len(each) > 1:
        raise typer.Exit(campaign.sweep(request, each, out, dry_run=dry_run))
    request = request._replace(settings=each[0])
    raise typer.Exit(session.show(request, out) if dry_run else session.run(request, out))


@app.command()
def resume(
    directory: Annotated[Path, typer.Argument(help="a run directory", show_default=False)] = Path(
        "results/last"
    ),
    engine: Engine = "local",
    scheduler: Scheduler = "",
    verbose: Verbose = False,
) -> None:
    """Run what is missing of a run that was interrupted, or whose trials were lost; what is done stays."""
    from qjump_mn import session

    raise typer.Exit(session.resume(directory, out, cluster(engine, scheduler), verbose=verbose))


@app.command("list")
def list_() -> None:
    """List the experiments, with the time and the memory that they take, and the schemes."""
    from qjump_mn import listing

    listing.show(out)


@app.command()
def explain(
    experiment: Experiment,
    preset: Preset = "",
    settings: Settings = NO_SETTINGS,
    everything: Annotated[
        bool, typer.Option("--all", help="with workloads, limits, predicates and remarks")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the whole plan as JSON: what is run, shown and judged")
    ] = False,
) -> None:
    """Say what an experiment asks, with which arms and claims, and how long its presets take."""
    from qjump_mn import explanation

    say = explanation.explain_all if everything else explanation.explain
    say = explanation.explain_json if as_json else say
    name = loading.experiment_called(experiment)
    say(name, preset or loading.usual_preset(name), settings, out)


@app.command()
def new(
    kind: Annotated[
        str,
        typer.Argument(
            help="experiment, scheme or program", show_default=False, autocompletion=completion.kinds
        ),
    ],
    name: Annotated[str, typer.Argument(help="what it is called", show_default=False)],
) -> None:
    """Write a commented experiment, scheme or program of your own, which runs as it is."""
    from qjump_mn import beginnings

    name = name.removesuffix(".toml")
    written = [str(path) for path in beginnings.write(kind, name)]
    what = f"{written[0]} is written. Change it"
    if len(written) > 1:
        what = f"{' and '.join(written)} are written. Change them"
    out.print(f"{what}, and run  {beginnings.NEXT[kind].format(name=name)}", markup=False)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="a run directory", show_default=False)] = Path(
        "results/last"
    ),
    pdf: Annotated[
        bool,
        typer.Option("--pdf", help="print it into report.pdf too, with this machine's Chromium or Chrome"),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Draw the figures, judge the claims and write the report of a run again, from its files alone."""
    from qjump_mn.judging import judge

    raise typer.Exit(judge(directory, pdf=pdf, verbose=verbose))


@app.command()
def compare(
    directories: Annotated[list[Path], typer.Argument(metavar="RUN RUN ...", help="run directories")],
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="draw their latencies into this .png, .svg or .pdf, too"),
    ] = None,
) -> None:
    """Put runs side by side: what their plans have otherwise, and how many times the first run's the others'
    measures are."""
    from qjump_mn import comparison

    runs = comparison.read(directories)
    comparison.show(runs, out)
    if figure:
        from qjump_mn.report.figures import overlay

        overlay.write(runs, figure)
        out.print(f"drawn into {figure}", markup=False)


@app.command()
def verify(
    directory: Annotated[Path, typer.Argument(help="a run directory", show_default=False)] = Path(
        "results/last"
    ),
    arms: TheseArms = None,
    sample: Sample = None,
) -> None:
    """Run the trials of a run again here, and say whether they leave the same files."""
    from qjump_mn import verification

    raise typer.Exit(verification.verify(directory, out, arms=names(arms), sample=sample or 0))


@app.command()
def bundle(
    directory: Annotated[Path, typer.Argument(help="a run directory", show_default=False)] = Path(
        "results/last"
    ),
    output: Annotated[
        Path | None, typer.Option("--out", help="the file to write, else its name here", show_default=False)
    ] = None,
) -> None:
    """Write a run into one file, which somebody else can check."""
    from qjump_mn.bundle import writing

    made = writing.write(directory, output)
    out.print(
        f"{made}: {made.stat().st_size / 2**20:.1f} MiB, SHA-256 {cache.hash_of_file(made)}", markup=False
    )


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="a bundle", show_default=False)],
    assignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="the TOML file of what was to be run", show_default=False),
    ] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="run its trials again, too: the only proof")] = False,
    arms: TheseArms = None,
    sample: Sample = None,
) -> None:
    """Say whether a bundle is untouched and as assigned, and what its raw files say."""
    from qjump_mn.bundle import checking

    if (arms or sample) and not rerun:
        raise UsageError("--arms and --sample say what is run again: they go with --rerun")
    code = checking.check(
        file,
        out,
        options_of=options_of,
        assigned=assignment,
        again=rerun,
        arms=names(arms),
        sample=sample or 0,
    )
    raise typer.Exit(code)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print what was found as JSON")] = False,
) -> None:
    """Say what this machine can do, what is missing and how to get it; within 20 s.

    Exit code 3 if something is missing, else 0: also where other programs keep this machine too busy to try
    the guest, which is then "unknown".
    """
    from qjump_mn import diagnosis, environment

    raise typer.Exit(diagnosis.report(out, as_json=as_json, began=environment.BEGAN))


@app.command()
def clean(
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="also remove the cached tree, image and snapshots; they are built again when needed"
        ),
    ] = False,
) -> None:
    """End guests whose harness has died, take back what killed runs left on this machine's own kernel, and
    remove what interrupted builds left."""
    from qjump_mn import diagnosis

    diagnosis.clean(out, everything=everything)


def arguments(words: list[str]) -> list[str]:
    """``fig3a --preset smoke`` means ``run fig3a --preset smoke``; nothing, what there is."""
    if not words:
        return ["--help"]
    if not words[0].startswith("-") and words[0] not in VERBS:
        return ["run", *words]
    return words


def options_of(argv: Sequence[str]) -> dict[str, Any]:
    """The options of a run's command line, as its manifest has it; none of what is no run."""
    words = arguments([word for word in argv[1:] if word != "--debug"])
    if words[:1] != ["run"]:
        return {}
    of_run = typer.main.get_command(app).get_command(None, "run")  # type: ignore[attr-defined]
    params: dict[str, Any] = of_run.make_context("run", words[1:], resilient_parsing=True).params
    return {key: value for key, value in params.items() if value is not None}
