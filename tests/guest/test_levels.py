"""qjau in the guest: the level is in the VLAN tag of every frame, for programs that no library
reaches."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from qjump_mn.guest import Image, Job, Setup, run

pytestmark = pytest.mark.guest
SOURCE = Path(__file__).parents[1] / "native/app_util/programs/bare.c"


def static_program(folder: Path) -> str:
    if os.uname().machine != "x86_64" or not shutil.which("gcc"):
        pytest.skip("builds a static program for x86_64 by gcc: install gcc on such a machine")
    argv = ["gcc", "-Os", "-s", "-static", "-nostdlib", "-o", str(folder / "bare"), str(SOURCE)]
    subprocess.run(argv, check=True)
    return base64.b64encode(gzip.compress((folder / "bare").read_bytes(), mtime=0)).decode()


@pytest.fixture(scope="module")
def out(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What levels_job.py leaves, from one guest for all tests here."""
    folder = tmp_path_factory.mktemp("levels")
    script = Path(__file__).with_name("levels_job.py").read_text()
    job = Job(
        script=script, files={"static.txt": static_program(tmp_path_factory.mktemp("static"))}
    )
    assert run(image, Setup(), job, folder / "out", progress=print).exit_code == 0, (
        folder / "out/stderr"
    ).read_text()
    return folder / "out"


def tags(out: Path, name: str) -> Counter[tuple[int, str]]:
    """802.1Q priority and TCP flags of every frame that left."""
    found = re.findall(r"vlan 2, p (\d),.* Flags \[([^\]]+)\]", (out / f"{name}.txt").read_text())
    return Counter((int(level), flags) for level, flags in found)


@pytest.mark.parametrize("name", ["raw", "static", "server"])
def test_every_frame_is_tagged(out: Path, name: str) -> None:
    """But what the kernel answers for the server in TIME_WAIT, which has no priority since Linux
    6.14."""
    plain, marked = tags(out, f"{name}.plain"), tags(out, name)
    print(name, sorted(plain.items()), sorted(marked.items()))
    assert {level for level, _ in plain} == {0} and marked.total() == plain.total() >= 5
    untagged = {frame: number for frame, number in marked.items() if frame[0] != 6}
    assert untagged == ({(0, "."): 1} if name == "server" else {})
    assert marked[6, "S." if name == "server" else "S"] == 1


def test_a_refusal_and_nothing_left(out: Path) -> None:
    said = json.loads((out / "said.json").read_text())
    assert said["left"] == []
    status, sentence = said["refused"]
    assert status == 126 and "run qjau as root" in sentence
