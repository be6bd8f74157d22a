"""``machine``: what the guest is made of, where that came from, and whether it is the reference."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Show, build and renew the machine that experiments run in: QEMU, kernel and programs.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_out = Console(highlight=False, soft_wrap=True)
_MOST_DIFFERENCES = 20


@app.callback()
def status(context: typer.Context) -> None:
    """Say what is here, and whether it is the machine of the reference runs."""
    if context.invoked_subcommand is not None:
        return
    from qjump_mn import toolbox
    from qjump_mn.toolbox import lock as locks

    lock = locks.read(toolbox.NAME)
    _say(f"reference  {len(lock.have)} packages of Debian {lock.suite}, as they were on {lock.day}")
    tree = toolbox.found()
    if tree is None:
        _say("here       nothing yet: run  sudo qjump-mn machine build")
        return
    _say(f"here       Linux {tree.kernel_release}, {len(tree.packages)} packages in {tree.root}")
    differences = toolbox.differences(tree)
    _say("           the reference" if not differences else "           another machine:")
    for sentence in differences[:_MOST_DIFFERENCES]:
        _say(f"           {sentence}")
    if len(differences) > _MOST_DIFFERENCES:
        _say(f"           and {len(differences) - _MOST_DIFFERENCES} more")


@app.command()
def build(
    newest: Annotated[
        bool, typer.Option("--newest", help="of what the mirror has now, instead of what is locked")
    ] = False,
) -> None:
    """Build the machine, or what is missing of it; needs root."""
    from qjump_mn import guest, toolbox
    from qjump_mn.toolbox.packages import GoneError

    if newest:
        toolbox.newest(_say)
    else:
        try:
            toolbox.made(toolbox.NAME, _say)
        except GoneError as error:
            _say(str(error))
    if not guest.prepare(_say).differences:
        _say("the machine is that of the reference runs")


@app.command()
def lock(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="of the locks; else all")
    ] = None,
) -> None:
    """Rewrite the locks: what they ask for, as the mirrors have it now; needs root.

    The references are those of another machine then: they are made anew by the runs that they are of.
    """
    from qjump_mn.toolbox import lock as locks
    from qjump_mn.toolbox import renewal

    known = locks.names()
    for name in names or known:
        if name not in known:
            raise typer.BadParameter(f"there is no lock {name!r}: there are {', '.join(known)}")
    for name in names or known:
        made = renewal.renewed(name, _say)
        _say(f"{name}: {len(made.have)} packages")


@app.command("debug-kernel")
def debug_kernel() -> None:
    """Build a machine whose kernel looks for errors, for tests of the kernel modules; needs root."""
    from qjump_mn import guest
    from qjump_mn.toolbox import debug

    _say(str(guest.prepare(_say, other_kernel=debug.SUITE).kernel))


@app.command()
def package(folder: Annotated[Path, typer.Argument(help="where it is put")] = Path()) -> None:
    """Build the Debian package of the kernel modules and of tc's plugins; needs root."""
    from qjump_mn.toolbox import debian

    _say(str(shutil.copy(debian.package(_say), folder)))


def _say(line: str) -> None:
    _out.print(line, markup=False)
