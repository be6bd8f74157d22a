"""A guest does the same thing twice, to the bit: beside a busy host, and for another user.

These are facts about an image and this machine (tests/support/facts.py): shown once, and by
`--all`.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qjump_mn.guest import Image, Job, Setup, run
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan
from qjump_mn.results.manifest import sha256_of
from tests.guest.laboratory import Laboratory, fig3a
from tests.guest.strangers import Stranger
from tests.support import facts
from tests.support.load import busy_host

pytestmark = pytest.mark.guest

# Sees differences of a nanosecond: stamps, timers, threads that wait for each other, the order of
# processes, the pool of random numbers, addresses of memory, what the kernel counts.
PROBE = """
import os, subprocess, threading, time
for step in range(20):
    time.sleep(0.0013)
    print(time.monotonic_ns(), time.time_ns())
def turn(number):
    for _ in range(5):
        time.sleep(number * 1e-5)
        print(number, time.monotonic_ns())
threads = [threading.Thread(target=turn, args=[number]) for number in range(9)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
said = [subprocess.Popen(["sh", "-c", "date +%N; echo $$ $PPID"], stdout=subprocess.PIPE) for _ in range(9)]
print(*(one.communicate()[0].decode() for one in said))
subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
for name in ("/sys/class/net/v0/address", "/proc/self/maps", "/proc/meminfo", "/proc/stat", "/proc/timer_list"):
    print(open(name).read())
open("random", "w").write(os.urandom(16).hex())
"""


def files_of(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256_of(path) for path in paths}


@facts.of_the_guest
def test_ten_guests_beside_busy_loops_are_identical(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    def one(number: int) -> str:
        result = run(image, booted, Job(script=PROBE, seed=1), tmp_path / str(number))
        assert result.exit_code == 0, (tmp_path / str(number) / "stderr").read_text()
        return result.sha256["result"]

    with busy_host(), ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, range(10)))
    assert len(set(results)) == 1
    files = {tuple(files_of(tmp_path / str(number)).items()) for number in range(10)}
    assert len(files) == 1, "the console is one of them"
    run(image, booted, Job(script=PROBE, seed=2), tmp_path / "other")
    assert (tmp_path / "other/random").read_text() != (tmp_path / "0/random").read_text()


@facts.of_the_guest
def test_another_user_has_the_same_bits(
    image: Image, booted: Setup, tmp_path: Path, stranger: Stranger
) -> None:
    code = (
        "import pickle, sys; from pathlib import Path; from qjump_mn.guest import run\n"
        "image, setup, job, out = pickle.load(sys.stdin.buffer); run(image, setup, job, Path(out))"
    )
    job, theirs = Job(script=PROBE, seed=1), stranger.home / "out"
    stranger.run(code, pickle.dumps((image, booted, job, str(theirs))))
    run(image, booted, job, tmp_path)
    assert files_of(theirs) == files_of(tmp_path)


def loaded(rate: str) -> Plan:
    """Figure 3a with links of 10 Mb/s; or of 10 Gb/s, cut short: 12,000 full-size frames a link."""
    if rate == "10 Mb/s":
        return fig3a()
    return plan("fig3a", "paper", ["warmup=5ms", "duration=10ms"], replicates=1)


@pytest.mark.nightly
@pytest.mark.parametrize("rate", ["10 Mb/s", "10 Gb/s"])
@facts.of_the_guest
def test_ten_guests_with_a_loaded_arm_beside_busy_loops_are_identical(
    rate: str, image: Image, laboratory: Laboratory
) -> None:
    resolved = loaded(rate)

    def one(number: int) -> Path:
        return laboratory.run(resolved, "contended", name=f"same-{resolved.hash[:8]}-{number}")[1]

    with busy_host(), ThreadPoolExecutor(laboratory.backend(resolved).parallel) as pool:
        folders = list(pool.map(one, range(10)))
    assert len({tuple(files_of(folder).items()) for folder in folders}) == 1
