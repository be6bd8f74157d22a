"""What barrier refuses, and in which words."""

from __future__ import annotations

import subprocess

import pytest

from tests.native.barrier.barrier import Program, hosts_of

pytestmark = pytest.mark.guest  # built in the guest's toolbox; no guest is needed

TWO = "127.0.0.1:2101,127.0.0.2:2101"
GOOD = f"--hosts {TWO} --process 0 --iterations 1"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "--hosts is required"),
        (f"--hosts {TWO} --iterations 1", "--process is required"),
        (f"--hosts {TWO} --process 0", "--iterations is required"),
        ("--hosts 127.0.0.1:2101 --process 0 --iterations 1", "--hosts names 1 processes"),
        ("--hosts a:1,b:2 --process 0 --iterations 1", "--hosts contains \"a:1\""),
        ("--hosts 127.0.0.1:2101,127.0.0.2 --process 0 --iterations 1", "--hosts contains \"127.0.0.2\""),
        *((f"--hosts {TWO} --process {bad} --iterations 1", f"--process must be a whole number from 0 to 1 (got \"{bad}\")")
          for bad in ("2", "-1")),
        *((f"--hosts {TWO} --process 0 --iterations {bad}", f"--iterations must be a whole number from 1 to 10000000 (got \"{bad}\")")
          for bad in ("0", "10000001", "+1")),
        (f"{GOOD} --interval 1e6", "--interval must be a whole number from 0 to 3600000000000 (got \"1e6\")"),
        (f"{GOOD} again", "again is not an option"),
        (f"{GOOD} --seed 1", "Unrecognized option: 'seed'"),
        (f"{GOOD} --hosts {TWO}", "Option 'hosts' given more than once"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_refused_with_a_sentence(program: Program, line: str, words: str) -> None:
    with program.started(line) as process:
        check_refused(process.result(), 2, words)


def check_refused(done: subprocess.CompletedProcess[str], status: int, words: str) -> None:
    assert done.returncode == status and (status == 1 or done.stdout == "")
    assert done.stderr.startswith("barrier: ") and words in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_is_no_failure(program: Program) -> None:
    with program.started("--help") as process:
        done = process.result()
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("usage: barrier ")


def test_an_address_of_another_host_cannot_be_listened_on(program: Program) -> None:
    line = "--hosts 192.0.2.1:2101,127.0.0.1:2101 --process 0 --iterations 1"
    with program.started(line) as process:
        check_refused(process.result(), 1, "cannot listen on 192.0.2.1:2101 (")


def test_a_log_that_cannot_be_written_is_a_failure(program: Program) -> None:
    with program.processes(hosts_of(2), "--iterations 3 --output /nowhere/log") as processes:
        for process in processes:
            check_refused(process.result(), 1, "the log cannot be written to")
