"""Refuse to resume a run that another user can change."""

from __future__ import annotations

import os
from collections.abc import Container

from qjump_mn.errors import UsageError
from qjump_mn.install import launcher
from qjump_mn.results import contents
from qjump_mn.results.directory import RunDirectory


def check(run_directory: RunDirectory, confined_backends: Container[str]) -> None:
    """Raise :class:`UsageError` for a run that this process must not resume.

    Root would write through links that another user puts there. On a backend that is not confined,
    the command lines of the plan would run as root on this machine, so an unpacked bundle is
    refused too: its files belong to whoever unpacked it.
    """
    path, backend = run_directory.path, run_directory.manifest.backend
    is_confined = backend in confined_backends
    if is_confined and os.geteuid() != 0:
        return
    reason = launcher.distrust_path(str(path), deep=True)
    if link := next((file for file in path.rglob("*") if file.is_symlink()), None):
        reason = f"{link} is a link"
    if not is_confined and (path / contents.SUMS).exists():
        reason = "it is an unpacked bundle"
    if reason:
        how = "as root" if is_confined else f"with the backend {backend}"
        raise UsageError(
            f"{path}: only your own run can be resumed {how}, and {reason}: run the experiment "
            "anew, or resume it as its owner"
        )
