"""``machine``: what the guest is made of, where that came from, and whether it is the reference."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qjump_mn import cache
from qjump_mn.console import out
from qjump_mn.errors import MachineError, UsageError, reason_of

if TYPE_CHECKING:
    from qjump_mn.toolbox.processors import Processor

app = typer.Typer(
    help="Show, build and renew the machine that experiments run in.\n\nIt is a kernel and programs.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_MOST_DIFFERENCES = 20
MACHINE = "machine"
"""The lock of the machine file, beside those of Debian's packages."""
REFERENCES = "references"
"""The reference runs."""


class Format(StrEnum):
    """What the machine is written as."""

    MACHINE = "machine"
    BOX = "box"


@app.callback()
def status(context: typer.Context) -> None:
    """Say what is here, and whether it is the machine of the reference runs."""
    if context.invoked_subcommand is not None:
        return
    from qjump_mn import toolbox
    from qjump_mn.toolbox import lock as locks
    from qjump_mn.toolbox import machines, make_tree, origins

    packages, reference = locks.read(toolbox.NAME), machines.read()
    for name, file in reference.files.items():
        _say(f"reference  {file.sha256}, {file.size_bytes >> 20} MB, for {name} hosts")
    _say(f"           {len(packages.have)} packages of Debian {packages.suite}, of {packages.day}")
    others = machines.differences(reference)
    _list("checkout   its sources are the reference's", "checkout   its sources are others:", others)
    if folder := machines.found():
        _say(f"here       the reference, in {folder}")
        _say(f"           from {origins.told(folder)}")
        return
    tree = toolbox.found()
    if tree is None:
        _say(f"here       nothing yet: {make_tree.refusal() or 'as root run  qjump-mn machine build'}")
        return
    _say(f"here       made of packages, in {tree.root}")
    _say(f"           from {origins.told(tree.root.parent)}")
    _list("           the reference's packages", "           other packages:", toolbox.differences(tree))


def _list(none: str, heading: str, sentences: list[str]) -> None:
    """The sentences below their heading, as many as can be read at once."""
    _say(heading if sentences else none)
    for sentence in sentences[:_MOST_DIFFERENCES]:
        _say(f"             {sentence}")
    if len(sentences) > _MOST_DIFFERENCES:
        _say(f"             and {len(sentences) - _MOST_DIFFERENCES} more")


@app.command()
def build(
    newest: Annotated[
        bool, typer.Option("--newest", help="take the mirror's newest packages, not the locked ones")
    ] = False,
) -> None:
    """Build the machine, with the simulator; needs root.

    What is there already is kept.
    """
    from qjump_mn import toolbox
    from qjump_mn.backends import building
    from qjump_mn.toolbox import make_tree
    from qjump_mn.toolbox.packages import GoneError

    if newest:
        if not make_tree.by_sudo("--newest"):
            toolbox.newest(_say)
    elif os.geteuid() == 0:  # anybody else has root build what is missing (backends/building.py), or cannot
        try:
            toolbox.made(toolbox.NAME, _say)
        except GoneError as error:
            _say(str(error))
    if not building.build(_say).differences:
        _say("the machine is that of the reference runs")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="file to write", show_default=False)],
    processor: Annotated[
        str,
        typer.Option("--for", metavar="PROCESSOR", help="kind of computer that takes it: x86_64 or arm64"),
    ] = "x86_64",
    format_: Annotated[
        Format,
        typer.Option("--format", help="machine: for any Linux; box: a whole computer, for Vagrant or QEMU"),
    ] = Format.MACHINE,
) -> None:
    """Write the machine into one file for another computer.

    That computer then needs neither root nor a mirror.
    """
    from qjump_mn.toolbox import box, processors

    chosen = processors.named(processor)
    _check_target(file)
    if format_ is Format.MACHINE:
        _export(file, chosen)
    elif chosen is processors.X86_64:
        made = box.made(lambda path: _export(path, chosen), _say)
        with _whole(file) as temporary:
            shutil.copyfile(made, temporary)
    else:
        raise UsageError(f"a box is for x86_64 hosts: leave out --for {processor}")
    _say(f"{file}: {file.stat().st_size >> 20} MB, SHA-256 {cache.hash_of_file(file)}")


@app.command("import")
def import_(
    place: Annotated[str, typer.Argument(metavar="FILE|URL", help="machine file", show_default=False)],
) -> None:
    """Take this checkout's machine from a file or an address."""
    from qjump_mn.toolbox import machines

    if differences := machines.differences(machines.read()):
        raise UsageError(f"this checkout's machine is not the reference: {differences[0]} is another one")
    machines.taken(place, _say)
    _say("the machine is that of the reference runs")


@app.command()
def verify() -> None:
    """Check every file's hash; remove what is damaged.

    What is removed is built again when it is needed. The exit code is 3 if something was damaged.
    """
    from qjump_mn.cache import verification

    found = verification.verify(_say)
    if found.unchecked:
        _say(f"{found.unchecked} artefacts have no sums (an older qjump-mn built them): not checked")
        _say("  qjump-mn clean --all  as root removes all artefacts; those built then have sums")
    if found.damaged:
        _say(f"{found.damaged} of {found.all} artefacts are damaged: see above")
        raise typer.Exit(MachineError.exit_code)
    _say("no file that was checked is damaged")


@app.command()
def lock(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="locks to rewrite; without any, all")
    ] = None,
) -> None:
    """Rewrite the locks from what mirrors have now; needs root.

    The machine file and the reference runs have locks, too: machine and references.
    """
    from qjump_mn import guest, toolbox
    from qjump_mn.cli import references
    from qjump_mn.toolbox import arm64, machines, outer_machine, processors, relock, um
    from qjump_mn.toolbox import lock as locks

    known = locks.names()
    for name in names or known:
        if name not in (*known, MACHINE, REFERENCES):
            every = ", ".join((*known, MACHINE, REFERENCES))
            raise UsageError(f"there is no lock {name!r}: there are {every}")
    for name in names or known:
        if name not in (MACHINE, REFERENCES):
            made = relock.renewed(name, _say)
            _say(f"{name}: {len(made.have)} packages")
    if not names or {MACHINE, toolbox.NAME, um.LOCK, arm64.COMPILER, outer_machine.LOCK} & set(names):
        with tempfile.TemporaryDirectory() as folder:
            paths = {one.name: Path(folder, one.name) for one in processors.ALL}
            for processor in processors.ALL:
                _export(paths[processor.name], processor)
            image = guest.prepare(_say, of_packages=True)
            named = machines.name_reference(paths, image.identity)
        for name, file in named.files.items():
            _say(f"machine: {file.sha256} for {name} hosts")
    if not names or REFERENCES in names:
        references.renew(references.ours(), _say)


@app.command("debug-kernel")
def debug_kernel() -> None:
    """Build kernels that look for errors; needs root.

    They are for tests of the kernel modules.
    """
    from qjump_mn.toolbox import debug

    for suite in debug.CONFIGS:
        _say(str(debug.kernel_tree(suite, _say).kernel))


@app.command()
def package(folder: Annotated[Path, typer.Argument(help="folder for the packages")] = Path()) -> None:
    """Build Debian packages of the kernel modules; needs root.

    They also have tc's plugins for these modules.
    """
    from qjump_mn.toolbox import debian

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made ({reason_of(error)}): name another folder") from None
    _check_folder(folder, "the packages")
    for path in debian.packages(_say):
        _say(str(shutil.copy(path, folder)))


@cache.sentences()
def _export(file: Path, processor: Processor) -> None:
    """Write the machine file, for hosts with that processor, of what the locks and the sources make; it is
    there whole or not at all."""
    from qjump_mn import guest, toolbox
    from qjump_mn.toolbox import arm64, machine_file, outer_machine, processors, simulator

    tree = toolbox.made(toolbox.NAME, _say)
    image = guest.prepare(_say, of_packages=True)
    module = (arm64.simulator_package if processor is processors.AARCH64 else simulator.package)(_say)
    around = outer_machine.machine(_say) if processor is processors.AARCH64 else None
    parts = machine_file.parts(image.kernel, image.initrd, module, around)
    facts = machine_file.Facts(
        packages=image.packages,
        packages_sha256=image.packages_sha256,
        release=image.release,
        files={name: cache.hash_of_file(path) for name, path in parts.items()},
    )
    _say("writing the machine file, a minute")
    with _whole(file) as temporary:
        machine_file.write(parts, facts, tree, temporary)


def _check_target(file: Path) -> None:
    """Raise :class:`UsageError` for a file that cannot be written, before what is to be in it takes
    minutes."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder: name a file")
    _check_folder(file.absolute().parent, str(file))


def _check_folder(folder: Path, what: str) -> None:
    """The same for a folder that ``what`` is to be written into."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{what} cannot be written: {folder} is no folder that you may write to")


@contextmanager
def _whole(file: Path) -> Iterator[Path]:
    """A path to write to, which becomes the file when the block ends well."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _say(line: str) -> None:
    out.print(line, markup=False)
