"""What four processes on this host's loopback log, and how they end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native.barrier.barrier import Program, ended, hosts_of, listens, read, switches, together

pytestmark = pytest.mark.guest  # built in the guest's toolbox; no guest is needed

OK = (0, "")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_no_process_passes_before_all_have_come(program: Program, tmp_path: Path) -> None:
    with together(program, hosts_of(4), "--iterations", "400", folder=tmp_path) as processes:
        assert ended(processes) == [OK] * 4
    logs = [read(tmp_path / str(process)) for process in range(4)]
    assert [log.first["process"] for log in logs] == ["0", "1", "2", "3"]
    assert {
        (log.first["iterations"], log.first["interval_ns"], log.first["hosts"]) for log in logs
    } == {("400", "0", hosts_of(4))}
    assert {(log.last["rows"], log.last["early"], log.last["late"]) for log in logs} == {
        (400, 0, 0)
    }
    for barrier in zip(*(log.rows for log in logs), strict=True):
        assert max(start for start, _ in barrier) < min(end for _, end in barrier)
    for log in logs:
        assert all(
            before[1] <= after[0] for before, after in zip(log.rows, log.rows[1:], strict=False)
        )


def test_barriers_begin_on_one_schedule(program: Program, tmp_path: Path) -> None:
    with together(
        program, hosts_of(3), "--iterations", "100", "--interval", "3000000", folder=tmp_path
    ) as processes:
        assert ended(processes) == [OK] * 3
    logs = [read(tmp_path / str(process)) for process in range(3)]
    (first_due_ns,) = {log.last["first_due_ns"] for log in logs}
    for log in logs:
        due = [first_due_ns + 3_000_000 * index for index in range(100)]
        assert all(start >= at for (start, _), at in zip(log.rows, due, strict=True))
        # One that begins late did so because it waited for the one before.
        behind = sum(end > at for (_, end), at in zip(log.rows, due[1:], strict=False))
        assert behind <= log.last["late"] <= 100


@pytest.mark.parametrize("who", [0, 3])
def test_a_signal_to_one_ends_all_after_the_same_barrier(
    program: Program, tmp_path: Path, who: int
) -> None:
    with together(program, hosts_of(4), "--iterations", "1000000", folder=tmp_path) as processes:
        until(lambda: all(switches(process.pid) > 1000 for process in processes))
        processes[who].send_signal(signal.SIGTERM)
        assert ended(processes) == [OK] * 4
    logs = [read(tmp_path / str(process)) for process in range(4)]
    assert len({log.last["rows"] for log in logs}) == 1
    assert all(log.last["early"] == 1 and 0 < log.last["rows"] < 1_000_000 for log in logs)


def test_a_process_that_dies_ends_the_others_with_a_sentence(
    program: Program, tmp_path: Path
) -> None:
    with together(program, hosts_of(4), "--iterations", "1000000", folder=tmp_path) as processes:
        until(lambda: all(switches(process.pid) > 1000 for process in processes))
        processes[2].kill()
        left = ended([processes[index] for index in (0, 1, 3)])
    for status, said in left:
        assert status == 1
        assert said.startswith("barrier: a process is gone after ") and said.count("\n") == 1
    assert {read(tmp_path / str(process)).last["early"] for process in (0, 1, 3)} == {1}


def test_a_signal_before_all_are_there_ends_at_once(program: Program, tmp_path: Path) -> None:
    first = hosts_of(2).split(",")[0]
    alone = program.start(hosts_of(2), 0, "--iterations", "5", "--output", str(tmp_path / "0"))
    until(lambda: listens(first) or alone.poll() is not None)
    alone.send_signal(signal.SIGINT)
    assert ended([alone]) == [OK]
    log = read(tmp_path / "0")
    assert (log.rows, log.last["early"]) == ([], 1)


def test_processes_with_other_parameters_refuse_each_other(program: Program) -> None:
    hosts = hosts_of(2)
    processes = [
        program.start(hosts, process, "--iterations", str(5 + process)) for process in range(2)
    ]
    for status, said in ended(processes):
        assert status == 1 and "was started with other parameters" in said and said.count("\n") == 1


def test_without_output_the_log_goes_to_standard_output(program: Program, tmp_path: Path) -> None:
    hosts = hosts_of(2)
    processes = [program.start(hosts, process, "--iterations", "5") for process in range(2)]
    for process in processes:
        (tmp_path / "log").write_text(process.communicate(timeout=60)[0])
        assert read(tmp_path / "log").last["rows"] == 5
