"""From the words of ``qjump-mn mn`` to a command and the files that go into the machine."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.mn import folder as folders
from qjump_mn.mn import imports, typed
from qjump_mn.mn.typed import Typed
from qjump_mn.model.command import DEADLINE_NS, MAX_MEMORY_MB, MEMORY_MB, Command
from qjump_mn.model.units import Duration
from qjump_mn.results.command_directory import FOLDER, MININET, PACKAGES, TYPED

LINKS = ("qjwire", "qjtbf", "qjtc")
SWITCHES = ("qjprio",)
HOSTS = ("qjvlan",)
"""What mininet-qos has in place of Mininet's own."""

MAX_SEEDS = 1000
MIN_MEMORY_MB = 512

_FILES = ("--custom", "--pre", "--post")
"""Options of Mininet's mn that name files."""
_MN = "mn"
_CUSTOM = "/usr/lib/python3/dist-packages/mininet_qos/custom.py"
_PYTHON2 = re.compile(
    r"^\s*(print\s+[\"'\w%]|exec\s+[\"'\w]|except\s+\w+\s*,\s*\w+\s*:|raise\s+\w+\s*,)",
    re.MULTILINE,
)


class Options(NamedTuple):
    """The options of ``qjump-mn mn``, as typed."""

    link: str = ""
    switch: str = ""
    host: str = ""
    packages: tuple[str, ...] = ()
    mininet: Path | None = None
    folder: Path | None = None
    out: Path = Path("results")
    seeds: str = "1"
    deadline: str = ""
    memory: str = ""


class Request(NamedTuple):
    """A command, the files of its run's folder own/ by their names, and the Debian packages that it
    asks for, which are not in them yet."""

    command: Command
    own: dict[str, bytes]
    packages: tuple[str, ...] = ()

    def with_packages(self, lock: bytes) -> Request:
        """Return the request with the lock of its packages."""
        command = msgspec.structs.replace(self.command, packages_sha256=_sha256(lock))
        return Request(command, {**self.own, PACKAGES: lock})


def of_words(
    words: Sequence[str], options: Options, lines: Iterable[Typed] | None = None
) -> Request:
    """Return what the words ask for: Mininet's mn with its options, a script, or a command.

    ``lines`` are typed into it; None leaves that to who runs it.

    Raises :class:`UsageError` for what cannot be run.
    """
    if not words or words[0].startswith("-"):
        argv, folder = _mininet(words, options), _folder_of_mn(words, options)
    else:
        _check_classes(options)
        argv, folder = _script_or_command(words, options)
    packed = folders.pack(folder, options.out)
    own = {FOLDER: packed}
    if options.mininet:
        own[MININET] = _packed_mininet(options.mininet)
    if lines is not None:
        own[TYPED] = typed.encode(lines)
    command = Command(
        argv=argv,
        folder_sha256=_sha256(packed),
        mininet_sha256=_sha256(own.get(MININET)),
        typed_sha256=_sha256(own.get(TYPED)),
        # Mininet's mn has it among its words.
        link="" if argv[0] == _MN else options.link,
        seeds=_seeds(options.seeds),
        deadline_ns=_deadline(options.deadline),
        memory_mb=_memory(options.memory),
    )
    command.check("qjump-mn mn")
    return Request(command, own, _packages(words, options))


def _mininet(words: Sequence[str], options: Options) -> tuple[str, ...]:
    """Return the command line of Mininet's mn."""
    classes = (("--link", options.link), ("--switch", options.switch), ("--host", options.host))
    chosen = [(name, value) for name, value in classes if value]
    ours = {*LINKS, *SWITCHES, *HOSTS}
    uses_ours = any(value.partition(",")[0] in ours for _, value in chosen)
    custom = ["--custom", _CUSTOM] if uses_ours else []
    return (_MN, *custom, *(word for pair in chosen for word in pair), *words)


def _folder_of_mn(words: Sequence[str], options: Options) -> Path | None:
    """Return the folder that goes in with mn: the current one if an option names a file there."""
    names_file = any(word.partition("=")[0] in _FILES for word in words)
    return options.folder or (Path() if names_file else None)


def _script_or_command(words: Sequence[str], options: Options) -> tuple[tuple[str, ...], Path]:
    first, rest = Path(words[0]), words[1:]
    if first.is_dir():
        raise UsageError(
            f"{first} is a folder: name the script in it, or use  --in {first} -- COMMAND"
        )
    if not first.is_file():
        if first.suffix == ".py" or len(first.parts) > 1:
            raise UsageError(f"there is no script {first}")
        return tuple(words), options.folder or Path()
    folder = options.folder or first.parent
    try:
        inside = first.resolve().relative_to(folder.resolve())
    except ValueError:
        raise UsageError(
            f"{first} is not in {folder}, the folder that goes into the machine"
        ) from None
    if first.suffix == ".py":
        _check_python(first)
        return ("python3", str(inside), *rest), folder
    if not os.access(first, os.X_OK):
        raise UsageError(
            f"{first} is neither a Python script (.py) nor executable: use  chmod +x {first}  or "
            f"-- sh {shlex.quote(str(inside))}"
        )
    return (f"./{inside}", *rest), folder


def _check_python(script: Path) -> None:
    """Raise :class:`UsageError` for a script in Python 2."""
    try:
        text = script.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"{script} cannot be read: {reason_of(error)}") from None
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        # The machine's Python may know more than this one, so other errors are left to it.
        if match := _PYTHON2.search(text):
            number = text[: match.end()].count("\n") + 1
            line = text.splitlines()[number - 1].strip()
            raise UsageError(
                f"{script}:{number}: {line[:60]!r} is Python 2, which no current system has: "
                f"convert the script, for example with  2to3 -w {script}  (2to3 comes with Python "
                "up to 3.12)"
            ) from None


def _check_classes(options: Options) -> None:
    """Raise :class:`UsageError` for a class that cannot stand for one of a script's."""
    if options.link and options.link not in LINKS:
        raise UsageError(
            f"--link {options.link}: for a script it is one of {', '.join(LINKS)}, which then "
            "stands for TCLink"
        )
    for name, value in (("--switch", options.switch), ("--host", options.host)):
        if value:
            raise UsageError(
                f"{name} {value}: only Mininet's own mn takes it: name the class of mininet_qos in "
                "the script"
            )


def _packed_mininet(folder: Path) -> bytes:
    if not (folder / "mininet/net.py").is_file():
        raise UsageError(
            f"--mininet {folder}: there is no mininet/net.py: name a checkout of Mininet"
        )
    return folders.pack(folder)


def _packages(words: Sequence[str], options: Options) -> tuple[str, ...]:
    """Return the packages that are asked for, by name or by a script's imports."""
    script = Path(words[0]) if words else Path()
    imported = imports.packages(script) if script.suffix == ".py" else ()
    return tuple(sorted({*options.packages, *imported}))


def _seeds(text: str) -> tuple[int, ...]:
    """Parse "3" or "1..5"."""
    first, dots, last = text.partition("..")
    if not first.isdecimal() or (dots and not last.isdecimal()):
        raise UsageError(f"--seed {text}: give a number, or the first and the last, as in 1..3")
    seeds = tuple(range(int(first), int(last or first) + 1))
    if not 0 < len(seeds) <= MAX_SEEDS:
        raise UsageError(f"--seed {text}: give from 1 to {MAX_SEEDS} seeds, the smallest first")
    return seeds


def _deadline(text: str) -> int:
    if not text:
        return DEADLINE_NS
    try:
        return int(Duration.parse(text))
    except UsageError as error:
        raise UsageError(f"--deadline: {error}") from None


def _memory(text: str) -> int:
    if not text:
        return MEMORY_MB
    match = re.fullmatch(r"(\d+)\s*([MG])i?B?", text, re.IGNORECASE)
    megabytes = int(match[1]) * (1024 if match[2].upper() == "G" else 1) if match else 0
    if not MIN_MEMORY_MB <= megabytes <= MAX_MEMORY_MB:
        raise UsageError(
            f"--memory {text}: give from {MIN_MEMORY_MB}M to {MAX_MEMORY_MB >> 10}G, as in 2G"
        )
    return megabytes


def _sha256(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
