"""What four processes on this host's loopback log, and how they end."""

from __future__ import annotations

import signal
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.native.barrier.barrier import PORT, Program, ended, hosts_of, logs, rows, switches
from tests.support.native_programs import Log, Running

pytestmark = pytest.mark.guest  # built in the guest's toolbox; no guest is needed

OK = (0, "")
ENDLESS = "--iterations 1000000 --output"


def has_passed_some(pid: int) -> bool:
    return switches(pid) > 1000


def wait_until_busy(processes: list[Running]) -> None:
    for process in processes:
        process.wait_for("it passed barriers", partial(has_passed_some, process.pid))


def test_no_process_passes_before_all_have_come(program: Program, tmp_path: Path) -> None:
    with program.processes(hosts_of(4), f"--iterations 400 --output {tmp_path}/{{}}") as processes:
        assert ended(processes) == [OK] * 4
    found = logs(tmp_path, 4)
    assert [log.parameters["process"] for log in found] == ["0", "1", "2", "3"]
    told = {"iterations": "400", "interval_ns": "0", "hosts": hosts_of(4)}
    assert all(told.items() <= log.parameters.items() for log in found)
    assert all({"rows": 400, "early": 0, "late": 0}.items() <= log.end.items() for log in found)
    for barrier in zip(*(log.rows for log in found), strict=True):
        assert max(row["start_ns"] for row in barrier) < min(row["end_ns"] for row in barrier)
    for log in found:
        assert all(before[1] <= after[0] for before, after in pairwise(rows(log)))


def test_barriers_begin_on_one_schedule(program: Program, tmp_path: Path) -> None:
    line = f"--iterations 100 --interval 3000000 --output {tmp_path}/{{}}"
    with program.processes(hosts_of(3), line) as processes:
        assert ended(processes) == [OK] * 3
    found = logs(tmp_path, 3)
    (first_due_ns,) = {log.end["first_due_ns"] for log in found}
    for log in found:
        due = [first_due_ns + 3_000_000 * index for index in range(100)]
        assert all(start >= at for start, at in zip(log.column("start_ns"), due, strict=True))
        # One that begins late did so because it waited for the one before.
        behind = sum(end > at for end, at in zip(log.column("end_ns"), due[1:], strict=False))
        assert behind <= log.end["late"] <= 100


@pytest.mark.parametrize("who", [0, 3])
def test_a_signal_to_one_ends_all_after_the_same_barrier(
    program: Program, tmp_path: Path, who: int
) -> None:
    with program.processes(hosts_of(4), f"{ENDLESS} {tmp_path}/{{}}") as processes:
        wait_until_busy(processes)
        processes[who].send_signal(signal.SIGTERM)
        assert ended(processes) == [OK] * 4
    found = logs(tmp_path, 4)
    assert len({log.end["rows"] for log in found}) == 1
    assert all(log.end["early"] == 1 and 0 < log.end["rows"] < 1_000_000 for log in found)


def test_a_process_that_dies_ends_the_others_with_a_sentence(
    program: Program, tmp_path: Path
) -> None:
    with program.processes(hosts_of(4), f"{ENDLESS} {tmp_path}/{{}}") as processes:
        wait_until_busy(processes)
        processes.pop().kill()
        left = ended(processes)
    for status, said in left:
        assert status == 1
        assert said.startswith("barrier: a process is gone after ") and said.count("\n") == 1
    assert {log.end["early"] for log in logs(tmp_path, 3)} == {1}


def test_a_signal_before_all_are_there_ends_at_once(program: Program) -> None:
    with program.started(f"--hosts {hosts_of(2)} --process 0 --iterations 5") as alone:
        alone.wait_for_port("tcp", PORT)
        log = alone.ended(signal.SIGINT)
    assert (log.rows, log.end["early"]) == ([], 1)


def test_processes_with_other_parameters_refuse_each_other(program: Program) -> None:
    with program.processes(hosts_of(2), "--iterations {0}5") as processes:
        for status, said in ended(processes):
            assert status == 1 and said.count("\n") == 1
            assert "was started with other parameters" in said


def test_without_output_the_log_goes_to_standard_output(program: Program) -> None:
    with program.processes(hosts_of(2), "--iterations 5") as processes:
        for process in processes:
            log: Log = process.log()
            assert log.end["rows"] == 5
