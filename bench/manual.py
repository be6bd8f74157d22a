"""Write the manual page docs/qjump-mn.1 (mdoc(7)) from the command line's help texts, and the
tables of verdicts and exit codes in docs/cli.md.

    python3 bench/manual.py [--write]

Without `--write`, print the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn.cli.commands import parser
from qjump_mn.cli.examples import EXAMPLES, Example
from qjump_mn.results import formatting

PAGE = ROOT / "docs/qjump-mn.1"
COMMANDS = ROOT / "docs/cli.md"
DATE = "November 29, 2026"
"""The date of the last change of the text in this module."""

EXIT_CODES = {
    0: "Every checked claim holds.",
    1: "A claim does not hold, or files differ.",
    2: "The command line, a file or a folder is wrong; nothing was started.",
    3: "This machine lacks something; the message says what.",
    4: "The run is not valid: do not believe it.",
    5: "A trial was lost: a program or the guest has died.",
    130: "Interrupted.",
}
FILES = {
    "experiments/, schemes/, topologies/, programs/": "Your own files, in the current folder.",
    "results/last": "The newest run directory.",
    "/var/cache/qjump-mn": "Everything that is built. QJUMP_MN_CACHE names another folder.",
}
VARIABLES = {
    "QJUMP_MN_ARCHIVE": "An archive of old packages, for packages that the mirrors have removed.",
    "QJUMP_MN_CACHE": "The folder for everything that is built.",
    "QJUMP_MN_MACHINE": "A machine file to use instead of packages.",
    "QJUMP_MN_MIRROR": "The mirrors to ask for packages first.",
    "QJUMP_MN_PATH": (
        "Folders with experiments, schemes, topologies and programs, separated by colons."
    ),
    "QJUMP_MN_OUTER": "If set, run the guest inside qemu-system-x86_64, as on arm64.",
}


def main(arguments: list[str]) -> None:
    """Print the page, or write it."""
    text = "\n".join(page()) + "\n"
    if "--write" in arguments:
        PAGE.write_text(text)
        for name, table in tables().items():
            marks.write(COMMANDS, name, table)
    else:
        print(text, end="")


def tables() -> dict[str, str]:
    """Return the tables of docs/cli.md, by their marks."""
    verdicts = [f"| {verdict} | {meaning} |" for verdict, meaning in formatting.MEANINGS.items()]
    codes = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return {
        "verdicts": "\n".join(["| verdict | meaning |", "|---|---|", *verdicts]),
        "exit-codes": "\n".join(["| code | meaning |", "|---|---|", *codes]),
    }


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    app = parser()
    yield '.\\" Written by bench/manual.py.'
    yield from (f".Dd {DATE}", ".Dt QJUMP-MN 1", ".Os", ".Sh NAME", ".Nm qjump-mn")
    yield f".Nd {_text(app.help)}".rstrip(".")
    yield from (".Sh SYNOPSIS", ".Nm", ".Op Fl -version", ".Ar command", ".Op Ar argument ...")
    yield from (".Sh DESCRIPTION", "An experiment's name alone means")
    yield from (".Cm run", "it. The commands are these.")
    for name, command in app.commands.items():
        yield from _command(name, command)
    yield from (
        ".Sh ENVIRONMENT",
        "Each option may be a variable:",
        ".Fl -preset",
        "of",
        ".Cm run",
        "is",
    )
    yield from (".Ev QJUMP_MN_RUN_PRESET .", "Others are:")
    yield from _list(f".It Ev {name}\n{_text(about)}" for name, about in VARIABLES.items())
    yield ".Sh FILES"
    yield from _list(f".It Pa {name}\n{_text(about)}" for name, about in FILES.items())
    yield ".Sh EXIT STATUS"
    yield from _list(f".It {code}\n{_text(about)}" for code, about in EXIT_CODES.items())
    yield ".Sh EXAMPLES"
    yield from _list(map(_example, EXAMPLES[""]))
    yield from (".Sh SEE ALSO", ".Xr ip 8 ,", ".Xr mn 1 ,", ".Xr tc 8 ,", ".Xr tc-qjump 8")


def _command(name: str, command: Any) -> Iterator[str]:
    """Yield a command, or the commands of a group."""
    if hasattr(command, "commands"):
        yield f".Ss {name}"
        yield _text(command.help)
        yield from (".Pp", "Examples:")
        yield from _list(map(_example, EXAMPLES[name]))
        for below, one in command.commands.items():
            yield from _command(f"{name} {below}", one)
        return
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    named = " ".join(_argument(one) for one in arguments)
    yield f".Ss {name} {named}".rstrip()
    yield _text(command.help)
    if options:
        yield from _list(f".It {_option(one)}\n{_text(one.help or '')}" for one in options)
    yield from (".Pp", "Examples:")
    yield from _list(map(_example, EXAMPLES[name]))


def _example(example: Example) -> str:
    """Return an item whose hyphens can be copied."""
    return f".It Li {_text(example.line)}\n{_text(example.does)}".replace("-", "\\-")


def _argument(argument: Any) -> str:
    shown = argument.metavar or argument.name.upper()
    shown = shown if argument.required else f"[{shown}]"
    return shown if argument.nargs == 1 else f"{shown} ..."


def _option(option: Any) -> str:
    words = " , ".join(f"Fl {word[1:]}" for word in sorted(option.opts, key=len))
    if option.is_flag:
        return words
    return f"{words} Ar {_text(option.metavar or option.name.upper())}"


def _list(items: Iterable[str]) -> Iterator[str]:
    yield ".Bl -tag -width Ds"
    yield from items
    yield ".El"


def _text(words: str) -> str:
    """Return a line in which no macro begins."""
    line = re.sub(r"\s+", " ", words).strip().replace("\\", "\\e")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    main(sys.argv[1:])
