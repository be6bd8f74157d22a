"""Declare the arguments and options of commands, and parse and check their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from qjump_mn.cli import completion
from qjump_mn.errors import UsageError
from qjump_mn.model import tables
from qjump_mn.programs import user_programs


def check_settings(context: typer.Context, settings: list[str]) -> list[str]:
    """Return the settings unchanged; raise :class:`UsageError` if one is an option of ``run``."""
    command: Any = context.command
    run = context.parent.command.commands["run"] if context.parent else command  # type: ignore[attr-defined]
    for setting in settings:
        key, _, value = setting.partition("=")
        option = _find_option(key.strip(), run)
        if option is not None and not tables.is_setting(key.strip()):
            flag = max(option.opts, key=len)
            usage = flag if option.is_flag or not value else f"{flag} {shlex.quote(value.strip())}"
            has_option = any(flag in param.opts for param in command.params)
            owner, prefix = ("", "") if has_option else (" of run", "qjump-mn run ")
            raise UsageError(
                f"{key.strip()} is an option{owner}, not a setting: use {prefix}{usage}"
            )
    return settings


def _find_option(key: str, command: Any) -> Any:
    """Return the command's option named ``key``, such as dry-run or dry_run; None if there is
    none."""
    for param in command.params:
        names = (param.name, *(word[2:].replace("-", "_") for word in param.opts))
        is_option = param.param_type_name == "option" and param.name != "settings"
        if is_option and key.replace("-", "_") in names:
            return param
    return None


def _experiment(more: str = "") -> Any:
    """Return the argument that names an experiment; ``more`` continues its help."""
    return typer.Argument(
        help=f"name of the experiment, such as fig3a (see list){more}",
        show_default=False,
        autocompletion=completion.experiments,
    )


Experiment = Annotated[str, _experiment()]
ExperimentOrAll = Annotated[str, _experiment("; or all, for every one with the preset")]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        "-p",
        help="one of the experiment's presets (explain lists them); without it, the usual one",
        show_default=False,
        autocompletion=completion.presets,
    ),
]


def _set(more_help: str = "") -> Any:
    """Return the option ``-s``, with ``more_help`` at the end of its help."""
    text = "change a setting, such as link.rate=100Mbit (explain --all lists them)"
    return typer.Option(
        "-s", "--set", metavar="KEY=VALUE", callback=check_settings, help=text + more_help
    )


Setting = Annotated[list[str], _set()]
Settings = Annotated[list[str], _set("; link.rate=10Mbit,100Mbit makes one run for each value")]
NO_SETTINGS: list[str] = []
OnlyArms = Annotated[
    list[str] | None,
    typer.Option(
        "--arms",
        metavar="ARM,ARM",
        help="run only these arms; claims that need other arms are not judged",
        show_default=False,
        autocompletion=completion.arms,
    ),
]
Schemes = Annotated[
    list[str] | None,
    typer.Option(
        "--scheme",
        metavar="SCHEME,SCHEME",
        help="add an arm for each of these schemes, ours or your own (see list schemes)",
        show_default=False,
        autocompletion=completion.schemes,
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        help="guest: a virtual machine on a virtual clock; host: this machine's kernel; "
        "simulator: no kernel; without it, the experiment's usual one",
        show_default=False,
        autocompletion=completion.backends,
    ),
]
Run = Annotated[
    Path,
    typer.Argument(help="run directory; without it, results/last, the newest", show_default=False),
]
Listed = Annotated[
    str,
    typer.Argument(
        help="experiments or schemes; without it, both",
        show_default=False,
        autocompletion=completion.lists,
    ),
]
LAST = Path("results/last")
TheseArms = Annotated[
    list[str] | None,
    typer.Option("--arms", metavar="ARM,ARM", help="repeat only these arms", show_default=False),
]
Sample = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="repeat N random trials", show_default=False)
]
Rerun = Annotated[
    bool | None,
    typer.Option(
        "--rerun/--no-rerun",
        help="also repeat its trials here, which is the only proof; without either option, one "
        "short trial is repeated if the machine is built",
        show_default=False,
    ),
]
FindingsTable = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="also write the findings into this .csv or .json file; for one bundle, results.json "
        "has Gradescope's format",
        show_default=False,
    ),
]


def _trust(context: typer.Context, value: bool) -> bool:
    if value and not context.resilient_parsing:  # options_of parses a stranger's command line
        user_programs.trust()
    return value


Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        callback=_trust,
        help="import the experiment's own program from the current folder even as root: read it "
        "first",
    ),
]
Engine = Annotated[
    str, typer.Option(help="local: run trials on this machine; dask: on the workers of a cluster")
]
Scheduler = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="address of the cluster's Dask scheduler, such as tcp://10.0.0.1:8786",
        show_default=False,
    ),
]

Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="also print every verdict, fidelity check and remark"),
]


def names(lists: Sequence[str] | None, option: str = "--arms") -> tuple[str, ...]:
    """Split comma-separated lists into names without duplicates; () if the option was not given.

    Raises :class:`UsageError` for a list without a name, which would otherwise mean all.
    """
    unique: dict[str, None] = {}
    for text in lists or ():
        words = text.replace(",", " ").split()
        if not words:
            raise UsageError(
                f"{option}: {text!r} has no name: write one or more, such as {option} one,two"
            )
        unique |= dict.fromkeys(words)
    return tuple(unique)


def check_added(schemes: tuple[str, ...], arms: tuple[str, ...]) -> None:
    """Raise :class:`UsageError` if ``arms`` lacks the arms of an added scheme, which have its
    name."""
    for scheme in schemes:
        pattern = re.compile(rf"(^|_){re.escape(scheme.replace('-', '_'))}(_|$)")
        if arms and not any(pattern.search(arm.replace("-", "_")) for arm in arms):
            raise UsageError(
                f"--arms leaves out the arm that --scheme {scheme} adds: add it, such as --arms "
                f"{','.join((*arms, scheme))}"
            )


def folder(name: str | Path) -> Path:
    """Return ``name`` as a path; raise :class:`UsageError` if it is empty.

    pathlib would take an empty name for the current folder.
    """
    if not str(name):
        raise UsageError(
            "--out: the name of the folder is empty; for the current folder write --out ."
        )
    return Path(name)


WIDTHS = {"column": 3.33, "page": 7.0}
"""Widths of figures in inches: a column of a paper with two, and both of them."""
MIN_INCHES, MAX_INCHES = 3.0, 20.0

Width = Annotated[
    str,
    typer.Option(
        metavar="WIDTH",
        help="width of the figures: column (3.33 inches), page (7) or a number of inches",
        show_default=False,
    ),
]


def inches(width: str) -> float:
    """Return a width of figures in inches; raise :class:`UsageError` if it is not valid."""
    with suppress(ValueError):
        value = WIDTHS[width] if width in WIDTHS else float(width)
        if MIN_INCHES <= value <= MAX_INCHES:
            return value
    raise UsageError(
        f"--width: use {', '.join(WIDTHS)} or {MIN_INCHES:g} to {MAX_INCHES:g} inches (got "
        f"{width!r})"
    )


def cluster(engine: str, scheduler: str) -> str:
    """Return the address of the Dask scheduler; "" for the local engine.

    Raises :class:`UsageError` for an unknown engine, an invalid address, or one option without the
    other.
    """
    if engine not in ("local", "dask"):
        raise UsageError(f"there is no engine {engine!r}: use local or dask")
    if (engine == "dask") != bool(scheduler):
        raise UsageError(
            "--engine dask and --scheduler go together: give both, such as --engine dask "
            "--scheduler tcp://10.0.0.1:8786"
        )
    if scheduler and not re.fullmatch(r"(tcp|tls)://.+:[0-9]+", scheduler):
        raise UsageError(
            f"{scheduler!r} is not the address of a Dask scheduler: write tcp://HOST:PORT"
        )
    return scheduler


Seed = Annotated[int, typer.Option(help="seed of the first replicate; the next ones count up")]
Student = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="for an assignment with a seed for each student: the name or number that your course "
        "knows you by; it gives the seed",
    ),
]
Replicates = Annotated[
    int | None,
    typer.Option(help="number of seeds for each arm, instead of the preset's", show_default=False),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="print the run as a shell script, without running anything"),
]
Perturb = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="run each arm N more times, each time varying one thing that should not matter; "
        "verdicts then say which changes overturn them",
    ),
]
Watch = Annotated[
    str,
    typer.Option(
        "--watch",
        metavar="[START:LENGTH]",
        help="record every frame of this part of the measurement, such as 2s:100ms, and write "
        "player.html, in which packets move; without a part, from a quarter of it on, in the "
        "simulator its beginning",
        show_default=False,
    ),
]
Runs = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FOLDER", parser=folder, help="folder in which the run gets its own folder"
    ),
]
