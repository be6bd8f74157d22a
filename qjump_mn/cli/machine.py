"""``machine``: show, build, export, import, verify and lock the machine that experiments run in."""

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
    help="Show, build and renew the machine that experiments run in.\n\nIt is a kernel with "
    "programs.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_MAX_DIFFERENCES = 20
MACHINE = "machine"
"""The name of the machine file's lock."""
REFERENCES = "references"
"""The name that stands for the reference runs."""


class Format(StrEnum):
    """The file formats that the machine can be exported to."""

    MACHINE = "machine"
    BOX = "box"


@app.callback()
def status(context: typer.Context) -> None:
    """Show which machine is here, and whether it is that of the reference runs."""
    if context.invoked_subcommand is not None:
        return
    from qjump_mn import toolbox
    from qjump_mn.toolbox import lock as locks
    from qjump_mn.toolbox import machines, make_tree, origins

    packages, reference = locks.read(toolbox.NAME), machines.read()
    for name, file in reference.files.items():
        _say(f"reference  {file.sha256}, {file.size_bytes >> 20} MB, for {name} hosts")
    _say(f"           {len(packages.have)} packages of Debian {packages.suite}, of {packages.day}")
    changed = machines.differences(reference)
    _list(
        "checkout   its sources are the reference's", "checkout   its sources differ in:", changed
    )
    if folder := machines.found():
        _say(f"here       the reference, in {folder}")
        _say(f"           from {origins.told(folder)}")
        return
    tree = toolbox.found()
    if tree is None:
        _say(f"here       nothing yet: {make_tree.remedy()}")
        return
    _say(f"here       built from packages, in {tree.root}")
    _say(f"           from {origins.told(tree.root.parent)}")
    _list(
        "           the reference's packages",
        "           other packages:",
        toolbox.differences(tree),
    )


def _list(if_empty: str, heading: str, sentences: list[str]) -> None:
    """Print the first sentences below their heading, or ``if_empty``."""
    _say(heading if sentences else if_empty)
    for sentence in sentences[:_MAX_DIFFERENCES]:
        _say(f"             {sentence}")
    if len(sentences) > _MAX_DIFFERENCES:
        _say(f"             and {len(sentences) - _MAX_DIFFERENCES} more")


@app.command()
def build(
    newest: Annotated[
        bool, typer.Option("--newest", help="use the mirror's newest packages, not the locked ones")
    ] = False,
) -> None:
    """Build the machine and the simulator; needs root.

    Existing parts are kept.
    """
    from qjump_mn import toolbox
    from qjump_mn.backends import building
    from qjump_mn.toolbox import make_tree
    from qjump_mn.toolbox.packages import GoneError

    if newest:
        if not make_tree.by_sudo("--newest"):
            toolbox.newest(_say)
    elif os.geteuid() == 0:  # for others, building.build calls sudo if something is missing
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
        typer.Option(
            "--for", metavar="PROCESSOR", help="processor of the other computer: x86_64 or arm64"
        ),
    ] = "x86_64",
    format_: Annotated[
        Format,
        typer.Option(
            "--format", help="machine: for any Linux; box: a complete computer for Vagrant or QEMU"
        ),
    ] = Format.MACHINE,
) -> None:
    """Write the machine into one file for another computer.

    That computer then needs neither root nor a mirror.
    """
    from qjump_mn.toolbox import box, processors

    target = processors.named(processor)
    _check_target(file)
    if format_ is Format.MACHINE:
        _export(file, target)
    elif target is processors.X86_64:
        box_file = box.made(lambda path: _export(path, target), _say)
        with _atomic(file) as temporary:
            shutil.copyfile(box_file, temporary)
    else:
        raise UsageError(f"a box is for x86_64 hosts: leave out --for {processor}")
    _say(f"{file}: {file.stat().st_size >> 20} MB, SHA-256 {cache.hash_of_file(file)}")


@app.command("import")
def import_(
    place: Annotated[
        str, typer.Argument(metavar="FILE|URL", help="machine file", show_default=False)
    ],
) -> None:
    """Import this checkout's machine from a file or an address."""
    from qjump_mn.toolbox import machines

    if differences := machines.differences(machines.read()):
        raise UsageError(f"this checkout's machine is not the reference: {differences[0]} differs")
    machines.taken(place, _say)
    _say("the machine is that of the reference runs")


@app.command()
def verify() -> None:
    """Check the hash of every built file; remove what is damaged.

    Removed files are rebuilt when needed. The exit code is 3 if something was damaged.
    """
    from qjump_mn.cache import verification

    counts = verification.verify(_say)
    if counts.unchecked:
        _say(
            f"{counts.unchecked} artefacts were not checked: an older version built them without "
            "sums"
        )
        _say("  qjump-mn clean --all  as root removes all artefacts; new ones have sums")
    if counts.damaged:
        _say(f"{counts.damaged} of {counts.all} artefacts are damaged: see above")
        raise typer.Exit(MachineError.exit_code)
    _say("no file that was checked is damaged")


@app.command()
def lock(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="locks to rewrite; by default all")
    ] = None,
) -> None:
    """Rewrite the locks from what mirrors have now; needs root.

    The lock machine is that of the machine file, and references that of the reference runs.
    """
    from qjump_mn import guest, toolbox
    from qjump_mn.cli import references
    from qjump_mn.toolbox import arm64, machines, outer_machine, processors, relock, um
    from qjump_mn.toolbox import lock as locks

    package_locks = locks.names()
    for name in names or package_locks:
        if name not in (*package_locks, MACHINE, REFERENCES):
            choices = ", ".join((*package_locks, MACHINE, REFERENCES))
            raise UsageError(f"there is no lock {name!r}: use one of {choices}")
    for name in names or package_locks:
        if name not in (MACHINE, REFERENCES):
            packages = relock.renewed(name, _say)
            _say(f"{name}: {len(packages.have)} packages")
    if not names or {MACHINE, toolbox.NAME, um.LOCK, arm64.COMPILER, outer_machine.LOCK} & set(
        names
    ):
        with tempfile.TemporaryDirectory() as folder:
            paths = {processor.name: Path(folder, processor.name) for processor in processors.ALL}
            for processor in processors.ALL:
                _export(paths[processor.name], processor)
            image = guest.prepare(_say, of_packages=True)
            reference = machines.name_reference(paths, image.identity)
        for name, file in reference.files.items():
            _say(f"machine: {file.sha256} for {name} hosts")
    if not names or REFERENCES in names:
        references.renew(references.ours(), _say)


@app.command("debug-kernel")
def debug_kernel() -> None:
    """Build kernels with debugging checks; needs root.

    They are for tests of the kernel modules.
    """
    from qjump_mn.toolbox import debug

    for suite in debug.CONFIGS:
        _say(str(debug.kernel_tree(suite, _say).kernel))


@app.command()
def package(
    folder: Annotated[Path, typer.Argument(help="folder for the packages")] = Path(),
) -> None:
    """Build Debian packages of the kernel modules; needs root.

    They also contain the plugins of tc for these modules.
    """
    from qjump_mn.toolbox import debian

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be created ({reason_of(error)}): name another folder"
        ) from None
    _check_folder(folder, "the packages")
    for path in debian.packages(_say):
        _say(str(shutil.copy(path, folder)))


@cache.sentences()
def _export(file: Path, processor: Processor) -> None:
    """Build the machine from locks and sources, and write its file for hosts with that processor.

    The file is written atomically.
    """
    from qjump_mn import guest, toolbox
    from qjump_mn.toolbox import added, arm64, machine_file, outer_machine, processors, simulator
    from qjump_mn.toolbox import lock as locks

    tree = toolbox.made(toolbox.NAME, _say)
    image = guest.prepare(_say, of_packages=True)
    if processor is processors.AARCH64:  # where `mn` does not run
        module, outer = arm64.simulator_package(_say), outer_machine.machine(_say)
        parts = machine_file.parts(image.kernel, image.initrd, module, outer=outer)
    else:
        lock = locks.read(added.NAME)
        archives = {lock: added.archive(lock, _say)}
        module = simulator.package(_say)
        parts = machine_file.parts(image.kernel, image.initrd, module, packages=archives)
    facts = machine_file.Facts(
        packages=image.packages,
        packages_sha256=image.packages_sha256,
        release=image.release,
        files={name: cache.hash_of_file(path) for name, path in parts.items()},
    )
    _say("writing the machine file, which takes a minute")
    with _atomic(file) as temporary:
        machine_file.write(parts, facts, tree, temporary)


def _check_target(file: Path) -> None:
    """Raise :class:`UsageError` if the file cannot be written, before its content takes minutes."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder: name a file")
    _check_folder(file.absolute().parent, str(file))


def _check_folder(folder: Path, content: str) -> None:
    """Raise :class:`UsageError` if ``content`` cannot be written into the folder."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"{content} cannot be written: {folder} is not a folder that you may write to"
        )


@contextmanager
def _atomic(file: Path) -> Iterator[Path]:
    """Yield a temporary path, which becomes the file if the block succeeds."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _say(line: str) -> None:
    out.print(line, markup=False)
