"""The series for iproute2: the header, the tc code and the manual page."""

from __future__ import annotations

import re
from pathlib import Path

from upstream import insert, kernel, single
from upstream.mail import Patch, Series

TEXTS = Path(__file__).with_name("texts")
PLUGIN = "tc/q_qjump.c"
PAGE = "man/man8/tc-qjump.8"

_DECLARED = ("pkt_sched_qjump.h", "qdisc_util", "output_type")
"""Names that iproute2's own headers declare."""

_HEADERS = ("utils.h", "tc_util.h")

_LETTER = """tc: add the qjump qdisc

The iproute2 part of "net/sched: qjump: strict priority levels with a
byte budget each". The tdc cases are in the kernel series.
"""


def series(tree: Path, sources: Path, author: str) -> Series:
    """Make the series against a tree from the sources in kmod-patches.

    Raises TextError if a file is not as this program expects it.
    """
    header = single.read(tree / kernel.UAPI)
    makefile = single.read(tree / "tc/Makefile")
    patches = [
        _patch(
            "tc-uapi",
            {kernel.UAPI: insert.before(header, "#endif.*", kernel.uapi(sources), kernel.UAPI)},
        ),
        _patch(
            "tc-plugin",
            {
                "tc/Makefile": insert.after(
                    makefile, r"TCMODULES \+= q_ets\.o", "TCMODULES += q_qjump.o\n", "tc/Makefile"
                ),
                PLUGIN: plugin(tree, sources),
            },
        ),
        _patch("tc-man", {PAGE: page(sources)}),
    ]
    return Series("PATCH iproute2-next", _LETTER, patches)


def plugin(tree: Path, sources: Path) -> str:
    """Return the text of tc/q_qjump.c."""
    merged = single.merged(sources / "tc/q_qjump.c", absent=_DECLARED)
    own = "".join(f'#include "{name}"\n' for name in _HEADERS)
    text = single.replaced(
        merged.main,
        r"^ \*/\n+",
        f" */\n\n{merged.includes}\n{own}\n{merged.helpers}\n\n",
        "q_qjump.c",
    )
    # Before 6.8 the parameter is not const.
    if "const struct qdisc_util *qu" not in single.read(tree / "tc/tc_util.h"):
        text = text.replace("const struct qdisc_util *qu", "struct qdisc_util *qu")
    text = text.replace("; below tc's buffer in every version", "")
    return re.sub(r"^#define COLOR_NONE.*\n", "", text, flags=re.M)


def page(sources: Path) -> str:
    """Return the manual page, without references to qdiscs that are not in the series."""
    text = single.read(sources / "tc/tc-qjump.8")
    for pattern, by in (
        (r'(?<=") "qjump-mn"(?= "Linux"$)', ' "iproute2"'),
        (r"^\.BR tc-htb \(8\)\nor\n\.BR tc-wire \(8\),$", ".BR tc-htb (8),"),
        (
            r'^\.BR tc-htb "\(8\), " tc-prio \(8\)\nand\n\.BR tc-wire \(8\)\ndo not\.$',
            ".BR tc-htb (8)\nand\n.BR tc-prio (8)\ndo not.",
        ),
        (r"^\.BR tc-qjump2015 \(8\),\n", ""),
        (r"^\.BR tc-tbf \(8\),\n\.BR tc-wire \(8\)$", ".BR tc-tbf (8)"),
    ):
        text = single.replaced(text, pattern, by, "tc-qjump.8")
    if re.search(r"tc-(wire|qjump2015)", text):
        raise single.TextError(
            "tc-qjump.8 names a qdisc that is not in the series where this program does not know "
            "of it"
        )
    return text


def _patch(name: str, files: dict[str, str]) -> Patch:
    return Patch((TEXTS / f"{name}.txt").read_text(), files)
