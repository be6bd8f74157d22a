"""The arguments and options that several commands have, and what their words stand for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from qjump_mn.cli import completion
from qjump_mn.errors import UsageError
from qjump_mn.model import tables
from qjump_mn.programs import user_programs


def check_settings(context: typer.Context, settings: list[str]) -> list[str]:
    """The settings as they are. Raise :class:`UsageError` where one of them is an option of ``run``."""
    command: Any = context.command
    of_run = context.parent.command.commands["run"] if context.parent else command  # type: ignore[attr-defined]
    for setting in settings:
        key, _, value = setting.partition("=")
        option = _option_called(key.strip(), of_run)
        if option is not None and not tables.is_setting(key.strip()):
            flag = max(option.opts, key=len)
            use = flag if option.is_flag or not value else f"{flag} {shlex.quote(value.strip())}"
            has_it = any(flag in one.opts for one in command.params)
            where, before = ("", "") if has_it else (" of run", "qjump-mn run ")
            raise UsageError(f"{key.strip()} is an option{where}, not a setting: use {before}{use}")
    return settings


def _option_called(key: str, command: Any) -> Any:
    """The option of a command that ``key`` names, such as dry-run or dry_run; None where there is none."""
    for one in command.params:
        names = (one.name, *(word[2:].replace("-", "_") for word in one.opts))
        if one.param_type_name == "option" and one.name != "settings" and key.replace("-", "_") in names:
            return one
    return None


Experiment = Annotated[
    str,
    typer.Argument(
        help="name of the experiment, such as fig3a (see list)",
        show_default=False,
        autocompletion=completion.experiments,
    ),
]
ExperimentOrAll = Annotated[
    str,
    typer.Argument(
        help="name of the experiment, such as fig3a (see list); or all, for each that has the preset",
        show_default=False,
        autocompletion=completion.experiments,
    ),
]
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


def _set(more: str = "") -> Any:
    """The option ``-s``; ``more`` continues its help."""
    change = "change a setting, such as link.rate=100Mbit (explain --all lists them)"
    return typer.Option("-s", "--set", metavar="KEY=VALUE", callback=check_settings, help=change + more)


Setting = Annotated[list[str], _set()]
Settings = Annotated[list[str], _set("; several values, such as link.rate=10Mbit,100Mbit, make a run each")]
NO_SETTINGS: list[str] = []
OnlyArms = Annotated[
    list[str] | None,
    typer.Option(
        "--arms",
        metavar="ARM,ARM",
        help="run these arms only; claims that need other arms are not judged",
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
        help="guest: a virtual machine on a virtual clock; host: this machine's kernel; simulator: no "
        "kernel; without it, the experiment's usual one",
        show_default=False,
        autocompletion=completion.backends,
    ),
]
Run = Annotated[
    Path, typer.Argument(help="run directory; without it, results/last, the newest", show_default=False)
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
    typer.Option("--arms", metavar="ARM,ARM", help="repeat these arms only", show_default=False),
]
Sample = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="repeat N trials, drawn at random", show_default=False)
]
Rerun = Annotated[
    bool | None,
    typer.Option(
        "--rerun/--no-rerun",
        help="also repeat its trials here: the only proof; without either, one trial that takes seconds, "
        "if the machine is built",
        show_default=False,
    ),
]
FindingsTable = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="also write the findings into this .csv or .json; results.json of one bundle has Gradescope's "
        "format",
        show_default=False,
    ),
]


def _trusted(context: typer.Context, value: bool) -> bool:
    if value and not context.resilient_parsing:  # a stranger's command line is parsed, too
        user_programs.trust()
    return value


Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        callback=_trusted,
        help="import the experiment's own program from the current folder as root, too: read it first",
    ),
]
Engine = Annotated[
    str, typer.Option(help="local: run trials on this machine's cores; dask: on the workers of a cluster")
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
    typer.Option("--verbose", "-v", help="print every verdict, the checks of fidelity and remarks, too"),
]


def names(lists: Sequence[str] | None, option: str = "--arms") -> tuple[str, ...]:
    """The names in lists with commas, as many as the option was given; none where it was not. Raise
    :class:`UsageError` for a list of none: it would stand for all."""
    found: dict[str, None] = {}
    for words in lists or ():
        some = words.replace(",", " ").split()
        if not some:
            raise UsageError(f"{option}: {words!r} names none: write one or more, such as {option} one,two")
        found |= dict.fromkeys(some)
    return tuple(found)


def check_added(schemes: tuple[str, ...], arms: tuple[str, ...]) -> None:
    """Raise :class:`UsageError` where the arms that are run leave out those that a scheme adds, which bear
    its name."""
    for scheme in schemes:
        added = re.compile(rf"(^|_){re.escape(scheme.replace('-', '_'))}(_|$)")
        if arms and not any(added.search(arm.replace("-", "_")) for arm in arms):
            raise UsageError(
                f"--arms leaves out what --scheme {scheme} adds: name its arm, too, such as --arms "
                f"{','.join((*arms, scheme))}"
            )


def folder(name: str | Path) -> Path:
    """The folder of that name; raise :class:`UsageError` for an empty one, which pathlib takes for the
    current folder."""
    if not str(name):
        raise UsageError("--out: it names no folder; for the current one write --out .")
    return Path(name)


def cluster(engine: str, scheduler: str) -> str:
    """The scheduler's address; none for this machine alone."""
    if engine not in ("local", "dask"):
        raise UsageError(f"there is no engine {engine!r}: use local or dask")
    if (engine == "dask") != bool(scheduler):
        raise UsageError(
            "--engine dask and --scheduler go together: give both, such as --engine dask --scheduler "
            "tcp://10.0.0.1:8786"
        )
    if scheduler and not re.fullmatch(r"(tcp|tls)://.+:[0-9]+", scheduler):
        raise UsageError(f"{scheduler!r} is no address of a Dask scheduler: write tcp://HOST:PORT")
    return scheduler


Seed = Annotated[int, typer.Option(help="seed of the first replicate; the next ones count up")]
Replicates = Annotated[
    int | None,
    typer.Option(help="number of seeds for each arm, instead of the preset's", show_default=False),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="print the shell script that the run stands for; touch nothing"),
]
Perturb = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="run each arm N more times, each with one thing varied that should not matter; verdicts "
        "then say what overturns them",
    ),
]
Runs = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FOLDER", parser=folder, help="folder of runs, in which this one gets its own"
    ),
]
