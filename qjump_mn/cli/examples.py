"""Add two examples to the help of every command, and hide the names of environment variables."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

WIDTH = 74
"""The width in columns of the text below an example, so that a page has at most 80 columns."""


class Example(NamedTuple):
    """A command line as a user types it, and what it does."""

    line: str
    does: str


EXAMPLES = {
    "": (
        Example(
            "qjump-mn run fig3a --preset 10g",
            "Simulate Figure 3a at 10 Gb/s, in seconds, and write a report.",
        ),
        Example("qjump-mn explain fig3a", "Describe this experiment and the cost of its presets."),
    ),
    "run": (
        Example(
            "qjump-mn run fig3a --preset 10g --arms idle,contended,qjump",
            "Simulate three arms of Figure 3a at 10 Gb/s.",
        ),
        Example(
            "qjump-mn run fig3a --preset smoke --scheme ecn",
            "Run it at 10 Mb/s on real Linux in a virtual machine, with another arm for the "
            "scheme ecn.",
        ),
    ),
    "mn": (
        Example(
            "qjump-mn mn --topo tree,2 --test pingall", "Run Mininet's mn with its own options."
        ),
        Example("qjump-mn mn my.py --n 4", "Run a script; what it writes comes out into the run."),
    ),
    "resume": (
        Example("qjump-mn resume", "Finish the newest run, results/last."),
        Example(
            "qjump-mn resume results/last --engine dask --scheduler tcp://10.0.0.1:8786",
            "Run the missing trials on the workers of a cluster.",
        ),
    ),
    "list": (
        Example("qjump-mn list", "List the experiments, then the schemes."),
        Example("qjump-mn list schemes", "List the schemes, which --scheme takes."),
    ),
    "explain": (
        Example("qjump-mn explain fig3a", "Describe Figure 3a with its usual preset."),
        Example(
            "qjump-mn explain fig3a --preset 10g --all",
            "Show everything about another preset, with every setting that -s can change.",
        ),
    ),
    "new": (
        Example(
            "qjump-mn new experiment mine", "Write experiments/mine.toml, and print how to run it."
        ),
        Example(
            "qjump-mn new scheme mine --congestion",
            "Write schemes/mine.toml and tcp_mine.c, a TCP congestion control for the guest.",
        ),
    ),
    "report": (
        Example("qjump-mn report", "Write the report of the newest run again."),
        Example("qjump-mn report results/last --pdf", "Write it again, and as report.pdf, too."),
    ),
    "compare": (
        Example("qjump-mn compare slow/last fast/last", "Compare the newest runs of two folders."),
        Example(
            "qjump-mn compare slow/last fast/last --figure both.png",
            "Also draw the latencies of both into one figure.",
        ),
    ),
    "verify": (
        Example("qjump-mn verify", "Repeat every trial of the newest run."),
        Example("qjump-mn verify results/last --sample 1", "Repeat one random trial."),
    ),
    "bundle": (
        Example("qjump-mn bundle", "Pack the newest run into a file in this folder."),
        Example("qjump-mn bundle results/last --out mine.qjump.zip", "Name the file yourself."),
    ),
    "export": (
        Example("qjump-mn export --pcapng", "Write a file for Wireshark for each arm."),
        Example(
            "qjump-mn export results/last --perfetto --arms qjump --out traces",
            "Write one arm for Perfetto into a folder.",
        ),
    ),
    "check": (
        Example(
            "qjump-mn check mine.qjump.zip --assignment assignment.toml",
            "Check that the files are unchanged and that the run is the one that was assigned.",
        ),
        Example(
            "qjump-mn check handed-in/ --assignment assignment.toml --table class.csv",
            "Check each bundle in a folder, and write a table of the results.",
        ),
    ),
    "doctor": (
        Example("qjump-mn doctor", "Check this machine, and say how to fix what is missing."),
        Example("qjump-mn doctor --json", "Print the findings as JSON, for a program."),
    ),
    "clean": (
        Example("qjump-mn clean", "Remove what killed runs and builds have left behind."),
        Example("qjump-mn clean --all", "As root: also remove everything that was built."),
    ),
    "machine": (
        Example("qjump-mn machine", "Show which machine is here, and whether it is the reference."),
        Example("qjump-mn machine build", "As root: build it, if it is not here."),
    ),
    "machine build": (
        Example("qjump-mn machine build", "As root: build the machine from the locked packages."),
        Example(
            "qjump-mn machine build --newest",
            "Build it from today's packages; it then differs from the reference.",
        ),
    ),
    "machine export": (
        Example(
            "qjump-mn machine export qjump-mn-machine.tar.xz", "Write it for x86_64 computers."
        ),
        Example(
            "qjump-mn machine export --for arm64 qjump-mn-machine-arm64.tar.xz",
            "Write it for arm64 computers.",
        ),
    ),
    "machine import": (
        Example("qjump-mn machine import qjump-mn-machine.tar.xz", "Import it from a file."),
        Example(
            "qjump-mn machine import https://example.org/qjump-mn-machine.tar.xz",
            "Download it.",
        ),
    ),
    "machine verify": (
        Example("qjump-mn machine verify", "Check everything that was built."),
        Example("QJUMP_MN_CACHE=/srv/cache qjump-mn machine verify", "Check another cache."),
    ),
    "machine lock": (
        Example("qjump-mn machine lock", "Rewrite all locks, and run the reference runs again."),
        Example(
            "qjump-mn machine lock machine references",
            "Make the machine of this checkout the reference.",
        ),
    ),
    "machine debug-kernel": (
        Example("qjump-mn machine debug-kernel", "Build the machines, once."),
        Example(
            "QJUMP_MN_CACHE=/srv/cache qjump-mn machine debug-kernel",
            "Build them into another cache.",
        ),
    ),
    "machine package": (
        Example("qjump-mn machine package", "Put the packages into this folder."),
        Example("qjump-mn machine package packages", "Put them into the folder packages."),
    ),
}
"""Two examples of each command, by the command's words; "" is qjump-mn itself."""


def complete(command: Any, words: str = "") -> None:
    """Append examples to the help of a click command and its subcommands, and hide variables."""
    for param in command.params:
        param.show_envvar = False
    lines = ["\b", "Examples:"]
    for line, does in EXAMPLES[words]:
        lines += [
            f"  {line}",
            *textwrap.wrap(does, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6),
        ]
    command.epilog = "\n\n".join(filter(None, ("\n".join(lines), command.epilog)))
    for name, subcommand in getattr(command, "commands", {}).items():
        complete(subcommand, f"{words} {name}".strip())
