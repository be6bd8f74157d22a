"""An intruder in the place of a guest's kernel reaches nothing of the host."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from qjump_mn.guest import fence, instance
from tests.guest.strangers import Stranger

HERE = Path(__file__).parent
ALL = "tried 30\n"


@pytest.fixture(scope="module")
def intruder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc") or os.uname().machine != "x86_64":
        pytest.skip("builds a static program for x86_64 by gcc: install gcc on such a machine")
    program = tmp_path_factory.mktemp("intruder") / "intruder"
    source = str(HERE / "intruder.c")
    subprocess.run(["gcc", *"-Wall -Werror -static -o".split(), program, source], check=True)
    return program


@pytest.fixture(scope="module")
def aims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What it is after: a server's port, an abstract socket, a file."""
    secret = tmp_path_factory.mktemp("secret") / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    name = f"qjump-mn-fence-{os.getpid()}"
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as server,
        socket.socket(socket.AF_UNIX) as named,
    ):
        named.bind("\0" + name)
        named.listen()
        yield [str(server.getsockname()[1]), name, str(secret)]


def test_intruder_reaches_nothing(intruder: Path, aims: list[str], tmp_path: Path) -> None:
    outcome = instance.run(intruder, intruder, b"", tmp_path, words=aims)
    assert outcome.out.read_text() == ALL, outcome.log.read_text()


def test_intruder_run_by_ordinary_user_reaches_nothing(
    intruder: Path, aims: list[str], stranger: Stranger, tmp_path: Path
) -> None:
    program = stranger.home / "intruder"
    shutil.copy(intruder, program)
    code = f"""
from pathlib import Path
from qjump_mn.guest import instance
folder = Path({str(stranger.home)!r}, "instance")
folder.mkdir()
program = Path({str(program)!r})
print(instance.run(program, program, b"", folder, words={aims!r}).out.read_text(), end="")
"""
    assert stranger.run(code, b"") == ALL


def test_intruder_without_fence_reaches_the_host(
    intruder: Path, aims: list[str], stranger: Stranger
) -> None:
    """So the attempts are real ones; as an ordinary user, for root's would do harm."""
    program = stranger.home / "intruder"
    shutil.copy(intruder, program)
    code = f"""
import subprocess
argv = ["sh", "-c", '"$@" 5>&1', "sh", {str(program)!r}, *{aims!r}]
print(subprocess.run(argv, capture_output=True, text=True).stdout)
"""
    reached = stranger.run(code, b"").splitlines()
    real = "lists /|reads /etc/passwd|reaches a server|sends datagrams|signals its parent"
    assert set(real.split("|")) <= set(reached)
    for left in ("/tmp/intruder", "/dev/shm/intruder", "/tmp/intruder.l"):
        Path(left).unlink(missing_ok=True)
    shutil.rmtree("/tmp/intruder.d", ignore_errors=True)


def test_descriptors_are_renumbered(tmp_path: Path) -> None:
    files = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(3)]
    given = [files[2], files[0], files[1]]
    names = [os.readlink(f"/proc/self/fd/{fd}") for fd in given]
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(fence.__file__).parent)!r})
import fence
fence._renumber({given})
names = [os.readlink(f"/proc/self/fd/{{fd}}") for fd in range(3, 6)]
print(names, len(os.listdir("/proc/self/fd")))
"""
    said = subprocess.check_output([sys.executable, "-I", "-c", code], pass_fds=given, text=True)
    assert said == f"{names} 7\n"  # 0 to 5, and that of the listing
