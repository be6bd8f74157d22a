"""The series for the kernel: the qdisc, its netlink specification, tdc cases and a selftest."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from upstream import cover, insert, single, spec
from upstream.mail import Patch, Series

TEXTS = Path(__file__).with_name("texts")
MODULE = "net/sched/sch_qjump.c"
SPEC = "Documentation/netlink/specs/tc.yaml"
TC_TESTING = "tools/testing/selftests/tc-testing"
CASES = f"{TC_TESTING}/tc-tests/qdiscs/qjump.json"
SELFTEST = "tools/testing/selftests/net/qjump.py"
UAPI = "include/uapi/linux/pkt_sched.h"

_HAS = (
    "HAVE_NET_GSO_H",
    "HAVE_NLA_UINT",
    "HAVE_NLA_UINT_DEFAULT",
    "HAVE_PKT_SEGS",
    "HAVE_QDISC_DROP_REASON",
    "HAVE_QDISC_QLEN_INC",
    "HAVE_QSTATS_BACKLOG_ADD",
    "MODULE_ALIAS_NET_SCH",
)
"""The features that compat.h tests for; a 7.x tree has all of them."""

_OWN_NAMES = {
    "compat_set_pkt_len": "qjump_set_pkt_len",
    "compat_drop_at_limit": "qjump_drop_band_limit",
    "qdisc_under_mq": "qjump_under_mq",
}
"""New names for helpers that several modules share here but the series has for qjump alone."""


def series(tree: Path, sources: Path, author: str) -> Series:
    """Make the series against a tree from the sources in kmod-patches, sent by `author`.

    Raises TextError if a file is not as this program expects it.
    """

    make = _Maker(tree, sources, author)
    patches = [make.qdisc(), make.spec(), make.tdc(), make.selftest()]
    return Series("PATCH net-next", cover.letter(sources.parent / "docs", module(sources)), patches)


def uapi(sources: Path) -> str:
    """Return the section for pkt_sched.h."""
    text = single.body((sources / "include/pkt_sched_qjump.h").read_text())
    return (
        (TEXTS / "uapi.txt").read_text()
        + re.sub(r"\A\s*#include <linux/types.h>\n", "", text).rstrip()
        + "\n\n"
    )


def module(sources: Path) -> str:
    """Return the text of net/sched/sch_qjump.c."""
    merged = single.merged(sources / "sch_qjump.c", defined=_HAS, absent=["pkt_sched_qjump.h"])
    name, text = "sch_qjump.c", merged.main
    text = single.replaced(
        text, r"^ \*/\n\n+(?=#define QJUMP_MAX)", f" */\n\n{merged.includes}\n", name
    )
    # Put the helpers from headers after constants and types, before the functions that call them.
    first = re.search(r"^static [^\n=;]+\(", text, re.M)
    if not first:
        raise single.TextError(f"{name} has no function: change the series with its source")
    text = f"{text[: first.start()]}{merged.helpers}\n\n{text[first.start() :]}"
    for old, new in _OWN_NAMES.items():
        text = _renamed(text, old, new)
    return re.sub(r"(/\* A level is full\.) [^*]* \*/", r"\1 */", text)


def cases(sources: Path) -> str:
    """Return the tdc cases, without the one that needs wire, which is not in the series."""
    found = json.loads((sources / "tdc/qjump.json").read_text())
    kept = [case for case in found if " wire " not in str(case["setup"])]
    return json.dumps(kept, indent=4) + "\n"


@dataclass(frozen=True)
class _Maker:
    """Makes the patches against a tree; `now` returns the current text of one of its files."""

    tree: Path
    sources: Path
    author: str

    def now(self, name: str) -> str:
        return single.read(self.tree / name)

    def maintainers(self, *names: str) -> dict[str, str]:
        """Return MAINTAINERS with the files added so far; each patch adds its own."""
        files = "".join(f"F:\t{name}\n" for name in sorted(names))
        section = f"M:\t{self.author}\nL:\tnetdev@vger.kernel.org\nS:\tMaintained\n{files}"
        return {
            "MAINTAINERS": insert.maintainers(
                self.now("MAINTAINERS"), "QJUMP QUEUEING DISCIPLINE", section
            )
        }

    def after(self, name: str, line: str, new: str) -> dict[str, str]:
        return {name: insert.after(self.now(name), line, new, name)}

    def qdisc(self) -> Patch:
        kconfig = "net/sched/Kconfig"
        option = (TEXTS / "Kconfig.txt").read_text()
        return _patch(
            "qdisc",
            self.maintainers(MODULE)
            | {UAPI: insert.before(self.now(UAPI), "#endif.*", uapi(self.sources), UAPI)}
            | {
                kconfig: insert.before(
                    self.now(kconfig), "menuconfig NET_SCH_DEFAULT", option, kconfig
                )
            }
            | self.after(
                "net/sched/Makefile",
                r"obj-\$\(CONFIG_NET_SCH_DUALPI2\).*",
                "obj-$(CONFIG_NET_SCH_QJUMP)\t+= sch_qjump.o\n",
            )
            | {MODULE: module(self.sources)},
        )

    def spec(self) -> Patch:
        header = single.read(self.sources / "include/pkt_sched_qjump.h")
        return _patch("spec", {SPEC: spec.written(self.now(SPEC), header)})

    def tdc(self) -> Patch:
        config = self.after(
            f"{TC_TESTING}/config", "CONFIG_NET_SCH_QFQ=m", "CONFIG_NET_SCH_QJUMP=m\n"
        )
        return _patch(
            "tdc", self.maintainers(MODULE, CASES) | config | {CASES: cases(self.sources)}
        )

    def selftest(self) -> Patch:
        folder = Path(SELFTEST).parent
        return _patch(
            "selftest",
            self.maintainers(MODULE, CASES, SELFTEST)
            | self.after(f"{folder}/Makefile", r"\tpsock_snd\.sh \\", "\tqjump.py \\\n")
            | self.after(f"{folder}/config", "CONFIG_NET_SCH_PRIO=m", "CONFIG_NET_SCH_QJUMP=m\n")
            | {SELFTEST: (TEXTS / "qjump.py").read_text()},
        )


def _patch(name: str, files: dict[str, str]) -> Patch:
    return Patch((TEXTS / f"{name}.txt").read_text(), files)


def _renamed(text: str, old: str, new: str) -> str:
    """Rename a function, and re-align the continuation lines of its parameters."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if f"{old}(" not in line:
            continue
        lines[i] = re.sub(rf"\b{old}\b", new, line)
        opened = line.count("(") - line.count(")")
        while opened > 0:
            i += 1
            width = len(lines[i].expandtabs()) - len(lines[i].lstrip()) + len(new) - len(old)
            opened += lines[i].count("(") - lines[i].count(")")
            lines[i] = "\t" * (width // 8) + " " * (width % 8) + lines[i].lstrip()
    return "\n".join(lines)
