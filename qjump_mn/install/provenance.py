"""Say which checkout and commit this code is."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import msgspec

import qjump_mn
from qjump_mn.install import environment


class Git(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of the checkout; ``commit`` is empty for an installed package."""

    commit: str
    dirty: bool


def versions() -> dict[str, str]:
    """Return the versions of what makes a run here, for its manifest."""
    return {"qjump-mn": qjump_mn.__version__, "python": platform.python_version()}


def git(folder: Path = environment.CHECKOUT) -> Git:
    """Return the checkout's commit, and whether its files differ from it.

    A copy without git has no commit, even inside somebody's repository.
    """
    # As root in a user's checkout, git asks for this before it answers.
    base = ["git", "-c", f"safe.directory={folder}", "-C", str(folder)]

    def answer(*words: str) -> str:
        done = subprocess.run([*base, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        top = answer("rev-parse", "--show-toplevel")
        if not top or Path(top).resolve() != folder.resolve():
            return Git("", False)
        return Git(answer("rev-parse", "HEAD"), bool(answer("status", "--porcelain")))
    except FileNotFoundError:  # this machine has no git
        return Git("", False)


def describe(state: Git, folder: Path = environment.CHECKOUT) -> str:
    """Return version, folder and commit in one line, for the first line of a run."""
    what = f"qjump-mn {qjump_mn.__version__}"
    if not (folder / "requirements.lock").is_file():
        return f"{what}, installed in {folder}"
    commit = f"commit {state.commit[:10]}" if state.commit else "a copy without git"
    return f"{what}, {folder}, {commit}{', changed' if state.dirty else ''}"
