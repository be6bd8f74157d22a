"""The command line of kmod-patches/series."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from upstream import iproute2, kernel, mail, single

_TREES = {
    "kernel": ("net/sched/sch_api.c", kernel.series),
    "iproute2": ("tc/tc_qdisc.c", iproute2.series),
}
"""The supported trees: a file that identifies each, and the function that makes its series."""


def main(arguments: list[str] | None = None) -> int:
    """Write a series. Return 0, 2 for a wrong command line, or 3 for an unsuitable tree."""
    parser = argparse.ArgumentParser(
        prog="kmod-patches/series",
        description="Write the qjump qdisc as a series of patches, as `git format-patch` does, "
        "against a tree of the kernel (7.x) or of iproute2, whichever TREE is. Read "
        "the letter, 0000-*.patch, before you send them.",
    )
    parser.add_argument("tree", type=Path, metavar="TREE", help="the folder with the source")
    parser.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="where the patches are put; must not contain patches",
    )
    parser.add_argument(
        "--author",
        help="who signs them off, as 'NAME <ADDRESS>' (default: git's user.name and user.email)",
    )
    given = parser.parse_args(arguments)
    made = next((make for mark, make in _TREES.values() if (given.tree / mark).is_file()), None)
    if made is None:
        print(
            f"{given.tree} is not a kernel or iproute2 source tree: "
            "give the directory that contains net/ or tc/",
            file=sys.stderr,
        )
        return 2
    author = given.author or mail.configured_author()
    sources = Path(__file__).parent.parent
    try:
        mail.author_of(author)
    except single.TextError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        for path in mail.written(
            made(given.tree, sources, author), given.tree, given.folder, author
        ):
            print(path)
    except (single.TextError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    return 0
