"""How a step reaches a node: today a network namespace of this machine; by ssh it would be another class with
these two methods."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from .steps import MACHINE


class Shell(Protocol):
    """Runs commands on nodes, by the nodes' names."""

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        folder: Path | None = None,
        deadline_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; raise subprocess.TimeoutExpired if that takes longer."""

    def start(
        self, node: str, argv: Sequence[str], *, stdout: Path, stderr: Path, folder: Path
    ) -> subprocess.Popen[bytes]:
        """Start a program in ``folder``; what it prints goes to the two files, its standard input is
        empty."""


class Namespaces:
    """Nodes are network namespaces that ``ip netns`` knows."""

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        folder: Path | None = None,
        deadline_s: float,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            inside(node, argv),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=folder,
            timeout=deadline_s,
            check=False,
        )

    def start(
        self, node: str, argv: Sequence[str], *, stdout: Path, stderr: Path, folder: Path
    ) -> subprocess.Popen[bytes]:
        with stdout.open("wb") as out, stderr.open("wb") as errors:
            return subprocess.Popen(
                inside(node, argv), stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=folder
            )


def inside(node: str, argv: Sequence[str]) -> list[str]:
    """The command line that runs ``argv`` on a node, from the machine itself."""
    return list(argv) if node == MACHINE else ["ip", "netns", "exec", node, *argv]
