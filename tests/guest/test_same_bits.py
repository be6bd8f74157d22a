"""A guest does the same thing twice, to the bit: forks beside a busy host, cold runs, other users, snapshots
made anew.

These are facts about an image, QEMU and this machine (tests/facts.py): shown once, and by `--all`.
"""

from __future__ import annotations

import functools
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qjump_mn.backends.guest import GuestBackend
from qjump_mn.guest import Image, Job, Snapshot, run, snapshots
from qjump_mn.guest.cores import core
from qjump_mn.guest.machine import Stop, machine
from qjump_mn.model.plan import Plan
from qjump_mn.model.resolve import plan
from qjump_mn.results.manifest import sha256_of
from tests import facts
from tests.guest.laboratory import Laboratory, fig3a
from tests.guest.strangers import Stranger
from tests.load import busy_host

pytestmark = pytest.mark.guest

# Sees differences of a nanosecond: stamps, the scheduler's account of run times, timers, the pool of random
# numbers.
PROBE = """
import hashlib, os, random, subprocess, time
until = time.monotonic() + 0.3
digest = b""
while time.monotonic() < until:
    digest = hashlib.sha256(digest + str(time.monotonic_ns()).encode()).digest()
for step in range(20):
    time.sleep(0.0013)
    print(time.monotonic_ns())
subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
print(digest.hex(), open("/proc/schedstat").read(), open("/proc/self/schedstat").read(), open("/sys/class/net/v0/address").read())
open("random", "w").write(os.urandom(16).hex())
"""


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256_of(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }


@facts.of_the_guest
def test_ten_forks_beside_busy_loops_are_identical(image: Image, booted: Snapshot, tmp_path: Path) -> None:
    def fork(number: int) -> str:
        result = run(image, Job(script=PROBE, seed=1), tmp_path / str(number), snapshot=booted)
        assert result.exit_code == 0
        return result.sha256["result"]

    with busy_host(), ThreadPoolExecutor(2) as pool:
        results = list(pool.map(fork, range(10)))
    assert len(set(results)) == 1
    files = {tuple(files_of(tmp_path / str(number)).items()) for number in range(10)}
    assert len(files) == 1, "the console is one of them"
    run(image, Job(script=PROBE, seed=2), tmp_path / "other", snapshot=booted)
    assert (tmp_path / "other/random").read_text() != (tmp_path / "0/random").read_text()


@pytest.mark.nightly
@facts.of_the_guest
def test_cold_runs_and_forks_and_another_user_give_the_same_bits(
    image: Image, booted: Snapshot, tmp_path: Path, stranger: Stranger
) -> None:
    job = Job(script=PROBE, seed=1)
    code = (
        "import pickle, sys; from pathlib import Path; from qjump_mn.guest import run\n"
        "image, job, setup, out = pickle.load(sys.stdin.buffer); run(image, job, Path(out), setup=setup)"
    )
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(
            stranger.run, code, pickle.dumps((image, job, booted.setup, str(stranger.home / "out")))
        )
        run(image, job, tmp_path / "cold", setup=booted.setup)
        theirs.result()
    run(image, job, tmp_path / "fork", snapshot=booted)
    cold, fork = files_of(tmp_path / "cold"), files_of(tmp_path / "fork")
    assert files_of(stranger.home / "out") == cold
    del cold["console.log"], fork["console.log"]  # a fork's begins later
    assert cold == fork


@pytest.mark.nightly
@facts.of_the_guest
def test_a_snapshot_made_anew_is_the_same(image: Image, booted: Snapshot, tmp_path: Path) -> None:
    with busy_host(), core() as number:
        start = functools.partial(machine, core=number, stop=Stop())
        snapshots._bring_up(image, booted.setup, tmp_path, print, booted.memory_mb, 300, start)
    assert booted.reproducible
    assert booted.sha256 in (tmp_path / "facts.json").read_text()


def loaded(rate: str) -> Plan:
    """Figure 3a with links of 10 Mb/s; or on a clock that is dilated a thousandfold, cut short: 12,000
    full-size frames a link."""
    if rate == "10 Mb/s":
        return fig3a()
    return plan("fig3a", "paper", ["warmup=5ms", "duration=10ms"], replicates=1)


@pytest.mark.nightly
@pytest.mark.parametrize("rate", ["10 Mb/s", "10 Gb/s"])
@facts.of_the_guest
def test_ten_forks_of_a_loaded_arm_beside_busy_loops_are_identical(
    rate: str, image: Image, laboratory: Laboratory
) -> None:
    resolved = loaded(rate)

    def fork(number: int) -> Path:
        return laboratory.run(resolved, "contended", name=f"same-{resolved.hash[:8]}-{number}")[1]

    with busy_host(), ThreadPoolExecutor(laboratory.backend(resolved).parallel) as pool:
        folders = list(pool.map(fork, range(10)))
    assert len({tuple(files_of(folder).items()) for folder in folders}) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("rate", ["10 Mb/s", "10 Gb/s"])
@pytest.mark.slow
@facts.of_the_guest
def test_two_cold_runs_of_a_loaded_arm_are_identical_to_a_fork(
    rate: str, image: Image, laboratory: Laboratory
) -> None:
    resolved = loaded(rate)
    trial, fork = laboratory.run(resolved, "qjump", name=f"fork-{resolved.hash[:8]}")
    cold = GuestBackend(cold=True)
    cold.prepare(resolved, print)
    for name in ("cold", "again"):
        out = laboratory.folder / f"{name}-{resolved.hash[:8]}"
        assert cold.run(trial, out, print).exit_code == 0
        assert files_of(fork / "raw") == files_of(out / "raw")
