"""The same bits in the machine around an instance, translated by QEMU, as without it. With -rP pytest shows
what both took."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from qjump_mn.guest import Image, Job, Setup, run
from qjump_mn.toolbox import outer_machine as around
from tests.guest import trees

pytestmark = [pytest.mark.guest, pytest.mark.fresh, pytest.mark.timeout(1800)]

# What depends on the kernel's random numbers, on addresses, on time and on the processor's features.
_SCRIPT = """
import hashlib, os, platform, subprocess, time
print(os.urandom(16).hex(), hash(object()), time.time_ns(), platform.processor())
print(open("/proc/sys/kernel/random/uuid").read(), id(os))
print(subprocess.run(["ip", "-s", "link"], capture_output=True, text=True).stdout)
print(hashlib.sha256(bytes(1 << 22)).hexdigest(), sum(1 / n for n in range(1, 10000)))
"""


@pytest.fixture
def inside(image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """The image, to be run in a machine around it by the QEMU of the lock."""
    program = trees.qemu_program(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return msgspec.structs.replace(image, outer=trees.needed(around.machine))


def test_a_job_leaves_the_same_bits(
    image: Image, inside: Image, booted: Setup, tmp_path: Path
) -> None:
    job = Job(script=_SCRIPT, seed=3)
    here = run(image, booted, job, tmp_path / "here")
    there = run(inside, booted, job, tmp_path / "there")
    print(here.used, there.used)
    assert (tmp_path / "there/stdout").read_text() == (tmp_path / "here/stdout").read_text()
    assert (here.exit_code, there.exit_code) == (0, 0)
    assert (there.sha256, there.virtual_s) == (here.sha256, here.virtual_s)
    assert there.console.read_text() == here.console.read_text()
