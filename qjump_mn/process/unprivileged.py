"""Run a command that reads a stranger's files as an ordinary user, when root calls it.

Root opens such a file only to copy it where that user cannot read it, and parses nothing. The
user's half has no capabilities and cannot get any; where this kernel allows it, it has no network.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from qjump_mn.errors import LostError, MachineError, reason_of
from qjump_mn.process.caller import Caller, caller
from qjump_mn.process.die_with_parent import wrap_module

NOBODY = "nobody"
RIGHTS = ("--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")
ISOLATION = ("unshare", "--net", "--ipc", "--")

_FIRST_UNREADABLE = """for path; do
    [ -r "$path" ] && { [ ! -d "$path" ] || [ -x "$path" ]; } || { printf %s "$path"; exit 1; }
done"""
_BLOCK_BYTES = 1 << 20


def user() -> Caller:
    """Return sudo's caller, else the user nobody. Raises :class:`MachineError` without such a
    user."""
    calling = caller()
    if calling and calling.user:
        return calling
    try:
        nobody = pwd.getpwnam(NOBODY)
    except KeyError:
        raise MachineError(f"this machine has no user {NOBODY}: call as an ordinary user") from None
    return Caller(nobody.pw_uid, nobody.pw_gid)


def name_of(user: Caller) -> str:
    """Return the user's name, or "user" and the number."""
    try:
        return pwd.getpwuid(user.user).pw_name
    except KeyError:
        return f"user {user.user}"


def without_rights(user: Caller) -> list[str]:
    """Return the prefix of a command line that runs as this user, without root's rights."""
    return ["setpriv", f"--reuid={user.user}", f"--regid={user.group}", *RIGHTS, "--"]


def first_unreadable(user: Caller, paths: Sequence[Path]) -> Path | None:
    """Return the first path that the user cannot read.

    Raises :class:`MachineError` if this process cannot become that user.
    """
    argv = [*without_rights(user), "sh", "-c", _FIRST_UNREADABLE, "sh", *map(str, paths)]
    try:
        done = subprocess.run(argv, cwd="/", stdin=subprocess.DEVNULL, capture_output=True)
    except OSError as error:
        raise MachineError(
            f"{argv[0]} cannot be started ({reason_of(error)}): install util-linux"
        ) from None
    if done.stdout:
        return Path(os.fsdecode(done.stdout))
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        raise MachineError(
            f"root cannot act as {name_of(user)} here ({reason}): call as an ordinary user"
        )
    return None


def check_checkout(user: Caller) -> None:
    """Raise :class:`MachineError` if the user cannot read this checkout or its Python."""
    if unreadable := first_unreadable(
        user, [Path(__file__).parents[1] / "run.py", Path(sys.executable)]
    ):
        raise MachineError(
            f"{name_of(user)} cannot read {unreadable}, and root does not read strangers' files: "
            "call as an ordinary user, or move the checkout to a folder that every user may read"
        )


def run(user: Caller, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    """Run ``qjump-mn`` with these words as the user, with ``folder`` as home, and return its exit
    code.

    Raises :class:`MachineError` if the user cannot use the folder, and :class:`LostError` if it was
    killed.
    """
    argv, environment = wrap_module("qjump_mn.run", *words)
    if first_unreadable(user, [folder]):
        raise MachineError(
            f"{name_of(user)} cannot use {folder}: set TMPDIR to a folder that every user may write"
        )
    isolated = subprocess.run([*ISOLATION, "true"], cwd="/", capture_output=True).returncode == 0
    ours = ("SUDO_", "XDG_")
    environment = {name: value for name, value in environment.items() if not name.startswith(ours)}
    home = dict.fromkeys(("HOME", "MPLCONFIGDIR", "TMPDIR"), str(folder))
    with subprocess.Popen(
        [*(ISOLATION if isolated else ()), *without_rights(user), *argv],
        cwd=folder,
        env={**environment, **home, **variables},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # no terminal to type into
    ) as process:
        try:
            code = process.wait()
        except BaseException:
            process.kill()
            raise
    if code < 0:
        raise LostError(
            f"what {name_of(user)} ran was ended by signal {-code}, perhaps for want of memory"
        )
    return code


def copy(source: Path, target: Path, most_bytes: int) -> None:
    """Copy the first ``most_bytes`` of a stranger's file; what is not a plain file becomes a
    folder, which is refused later."""
    handle = os.open(source, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(
            os.fstat(handle).st_mode
        ):  # to open a device or a pipe may do or wait for anything
            target.mkdir()
            return
        with open(f"/proc/self/fd/{handle}", "rb") as file, target.open("xb") as made:
            while most_bytes and (block := file.read(min(most_bytes, _BLOCK_BYTES))):
                most_bytes -= made.write(block)
    finally:
        os.close(handle)
