"""Compare the files that two executions of one trial left, in two run directories."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from qjump_mn.model import words
from qjump_mn.results import contents

MAX_TEXT = 60
"""The most characters that are quoted of a line that differs."""

_PRINTED = f"{contents.RAW}/output"
_BLOCK_BYTES = 1 << 16


class Names(NamedTuple):
    """What sentences call the two runs."""

    first: str = "the run"
    second: str = "the repetition"


NAMES = Names()


class Compared(NamedTuple):
    """The number of files that the first run has, and how the second one's differ: "in 1 of 3
    files, first in raw/output: line 2 is 'b', and 'a' in the run"; "" if they do not."""

    files: int
    difference: str


def compare(
    first: Path, second: Path, trial: str, *, part: str = "", names: Names = NAMES
) -> Compared:
    """Compare the files of a trial in the run directories ``first`` and ``second``.

    With ``part``, such as raw, only those in this folder of the trial, to which names are relative.
    """
    folder = f"{trial}/{part}" if part else trial
    firsts, seconds = (contents.hashes(root, folder) for root in (first, second))
    paths = sorted({*firsts, *seconds})
    different = [path for path in paths if firsts.get(path) != seconds.get(path)]
    if not different:
        return Compared(len(firsts), "")
    path = min(different, key=_rank)
    shown = words.plain(path.removeprefix(f"{contents.TRIALS}/{trial}/") if part else path)
    text = difference(first / path, second / path, names=names)
    return Compared(
        len(firsts), f"in {len(different)} of {len(paths)} files, first in {shown}: {text}"
    )


def _rank(path: str) -> tuple[bool, bool, str]:
    """Put first what explains most: what a command printed, then any program's output, then the
    network read back and the console."""
    return not path.endswith(f"/{_PRINTED}"), f"/{contents.RAW}/" not in path, path


def difference(first: Path, second: Path, *, names: Names = NAMES) -> str:
    """Describe the first difference between two files: both lines of a text, or a byte's number."""
    for path, name in zip((first, second), names, strict=True):
        if not path.is_file():
            return f"{name} has no such file"
    position = _shared_bytes(first, second)
    newlines, lines = 0, []
    for path in (first, second):
        with path.open("rb") as file:
            head = file.read(position)
            newlines = head.count(b"\n")
            line = head[head.rfind(b"\n") + 1 :] + file.readline()
        try:
            lines.append(line.decode().rstrip("\n"))
        except UnicodeDecodeError:
            return f"byte {position + 1}"
    return f"line {newlines + 1} is {_quote(lines[1])}, and {_quote(lines[0])} in {names.first}"


def _shared_bytes(first: Path, second: Path) -> int:
    """Return the length of the common prefix of two files, in bytes."""
    shared = 0
    with first.open("rb") as first_file, second.open("rb") as second_file:
        while True:
            first_block, second_block = (
                first_file.read(_BLOCK_BYTES),
                second_file.read(_BLOCK_BYTES),
            )
            if first_block != second_block or not first_block:
                pairs = enumerate(zip(first_block, second_block, strict=False))
                length = min(len(first_block), len(second_block))
                return shared + next((index for index, (a, b) in pairs if a != b), length)
            shared += len(first_block)


def _quote(line: str) -> str:
    if not line:
        return "missing"
    return repr(line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…")
