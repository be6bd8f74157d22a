"""The arguments and options that several commands have, and what their words stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from qjump_mn import completion, toolbox
from qjump_mn.errors import UsageError

Experiment = Annotated[
    str,
    typer.Argument(
        help="the experiment's name, such as fig3a; see list",
        show_default=False,
        autocompletion=completion.experiments,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        "-p",
        help="how long and how loaded, else the experiment's usual one; see explain",
        show_default=False,
        autocompletion=completion.presets,
    ),
]
Settings = Annotated[
    list[str],
    typer.Option(
        "-s",
        "--set",
        metavar="KEY=VALUE",
        help="change a setting of the experiment, such as link.rate=100Mbit; with several values, such as "
        "link.rate=10Mbit,100Mbit, there is a run for each",
    ),
]
NO_SETTINGS: list[str] = []
TheseArms = Annotated[
    list[str] | None,
    typer.Option("--arms", metavar="ARM,ARM", help="run the trials of these arms only", show_default=False),
]
Sample = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="run N trials, drawn at random", show_default=False)
]
Kernel = Annotated[
    str,
    typer.Option(
        metavar="|".join(toolbox.OTHER_KERNELS),
        help="run in a guest with another Linux than its own; root builds it, the first time",
        show_default=False,
        autocompletion=completion.kernels,
    ),
]
Engine = Annotated[
    str, typer.Option(help="local: trials on this machine's cores; dask: on the workers of a cluster")
]
Scheduler = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="of the cluster's Dask scheduler, such as tcp://10.0.0.1:8786",
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


def kernel_named(name: str) -> str:
    """One of the guest's other kernels; "" is its own. Raise :class:`UsageError` for any other."""
    if name and name not in toolbox.OTHER_KERNELS:
        raise UsageError(
            f"--kernel: there is no kernel {name!r}: known are {', '.join(toolbox.OTHER_KERNELS)}; for "
            "the guest's own leave it out"
        )
    return name


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
