"""A run on a Dask cluster: byte for byte the one at home, also when a worker is killed half way."""

from __future__ import annotations

import importlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.results import contents, directory
from tests.simulator.short import TRIALS, command, figure_9
from tests.support.processes import execute

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("package")]

FEW = figure_9(mining=40)


class Cluster:
    """A scheduler and workers of one thread each on the loopback interface, ended with their block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        self._start(
            "distributed.cli.dask_scheduler", "--host", self.address, "--no-dashboard", "--no-show"
        )

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{len(self.processes)}.log").open("wb")
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=self._folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        """One more, without a nanny: killed, it stays dead."""
        name = str(len(self.processes))
        return self._start(
            "distributed.cli.dask_worker",
            self.address,
            *"--nthreads 1 --no-nanny --no-dashboard --name".split(),
            name,
        )

    def stop(self) -> None:
        # Killed: a worker that is asked to end waits for its scheduler, and for threads that are at work.
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.stop()


def wait_for_workers(cluster: Cluster, count: int) -> None:
    distributed: Any = importlib.import_module("distributed")
    with distributed.Client(cluster.address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


@pytest.mark.fresh
def test_a_killed_worker_changes_no_byte(cluster: Cluster, tmp_path: Path) -> None:
    victim, _ = cluster.worker(), cluster.worker()
    wait_for_workers(cluster, 2)
    argv = command(tmp_path / "far", *FEW, "--engine", "dask", "--scheduler", cluster.address)
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if re.search(r"\[3/", line):
            victim.send_signal(signal.SIGKILL)
    process.wait()
    far = directory.existing(tmp_path / "far" / "last")
    assert {record.status for record in far.manifest.trials.values()} == {"done"}, "".join(said)
    assert "2 threads of the Dask cluster" in "".join(said)
    assert victim.wait(10) == -signal.SIGKILL
    subprocess.run(command(tmp_path / "near", *FEW), capture_output=True, check=False)
    near = directory.existing(tmp_path / "near" / "last")
    assert len(near.manifest.trials) == TRIALS
    assert far.manifest.files == near.manifest.files


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--engine", "dask"), 2, "go together"),
        (("--scheduler", "tcp://127.0.0.1:1"), 2, "go together"),
        (("--engine", "ray"), 2, "there is no engine 'ray'"),
        (("--engine", "dask", "--scheduler", "nonsense://x"), 2,
         "'nonsense://x' is not the address of a Dask scheduler"),
        (("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"), 3,
         "no Dask scheduler answers at tcp://127.0.0.1:1"),
    ],
)  # fmt: skip
def test_a_cluster_that_is_not_there_is_told_in_a_sentence(
    arguments: tuple[str, ...], code: int, sentence: str, tmp_path: Path
) -> None:
    done = execute(command(tmp_path / "out", *FEW, *arguments))
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists()


def test_scheduler_without_workers_is_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    done = execute(
        command(tmp_path / "out", *FEW, "--engine", "dask", "--scheduler", cluster.address)
    )
    assert done.returncode == 3
    assert "has no workers: start some with `dask worker" in done.stderr


@pytest.mark.fresh
def test_a_guests_trial_on_a_cluster_is_the_one_at_home(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker()
    wait_for_workers(cluster, 1)
    one = ("fig3a", "--preset", "smoke", "--arms", "idle")
    for out, engine in (
        (tmp_path / "far", ("--engine", "dask", "--scheduler", cluster.address)),
        (tmp_path / "near", ()),
    ):
        subprocess.run(command(out, *one, *engine), capture_output=True, check=False)
    far, near = (directory.existing(tmp_path / name / "last") for name in ("far", "near"))
    assert {record.status for record in far.manifest.trials.values()} == {"done"}
    assert contents.results(far.path, far.manifest) == contents.results(near.path, near.manifest)
