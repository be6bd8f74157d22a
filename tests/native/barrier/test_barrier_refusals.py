"""What barrier refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.barrier.barrier import Program, ended, hosts_of

pytestmark = pytest.mark.guest  # built in the guest's toolbox; no guest is needed

TWO = "127.0.0.1:2101,127.0.0.2:2101"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "--hosts is required"),
        (f"--hosts {TWO} --iterations 1", "--process is required"),
        (f"--hosts {TWO} --process 0", "--iterations is required"),
        ("--hosts 127.0.0.1:2101 --process 0 --iterations 1", "--hosts names 1 processes"),
        ("--hosts a:1,b:2 --process 0 --iterations 1", "--hosts contains \"a:1\""),
        ("--hosts 127.0.0.1:2101,127.0.0.2 --process 0 --iterations "
         "1", "--hosts contains \"127.0.0.2\""),
        (f"--hosts {TWO} --process 2 --iterations "
         "1", "--process must be a whole number from 0 to 1 (got \"2\")"),
        (f"--hosts {TWO} --process -1 --iterations "
         "1", "--process must be a whole number from 0 to 1 (got \"-1\")"),
        (f"--hosts {TWO} --process 0 --iterations "
         "0", "--iterations must be a whole number from 1 to 10000000 (got \"0\")"),
        (f"--hosts {TWO} --process 0 --iterations "
         "10000001", "--iterations must be a whole number from 1 to 10000000 (got \"10000001\")"),
        (f"--hosts {TWO} --process 0 --iterations "
         "+1", "--iterations must be a whole number from 1 to 10000000 (got \"+1\")"),
        (f"--hosts {TWO} --process 0 --iterations 1 --interval "
         "1e6", "--interval must be a whole number from 0 to 3600000000000 (got \"1e6\")"),
        (f"--hosts {TWO} --process 0 --iterations 1 again", "again is not an option"),
        (f"--hosts {TWO} --process 0 --iterations 1 --seed 1", "Unrecognized option: 'seed'"),
        (f"--hosts {TWO} --hosts {TWO} --process 0 --iterations "
         "1", "Option 'hosts' given more than once"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_refused_with_a_sentence(program: Program, line: str, words: str) -> None:
    done = program.run(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.startswith("barrier: ")
        and words in done.stderr
        and done.stderr.count("\n") == 1
    )


def test_help_is_no_failure(program: Program) -> None:
    done = program.run("--help")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("usage: barrier ")


def test_an_address_of_another_host_cannot_be_listened_on(program: Program) -> None:
    done = program.run(
        "--hosts", "192.0.2.1:2101,127.0.0.1:2101", "--process", "0", "--iterations", "1"
    )
    assert (
        done.returncode == 1
        and done.stderr.startswith("barrier: cannot listen on 192.0.2.1:2101 (")
        and done.stderr.count("\n") == 1
    )


def test_a_log_that_cannot_be_written_is_a_failure(program: Program, tmp_path: Path) -> None:
    processes = [
        program.start(
            hosts_of(2), process, "--iterations", "3", "--output", str(tmp_path / "no" / "log")
        )
        for process in range(2)
    ]
    for status, said in ended(processes):
        assert status == 1 and "the log cannot be written to" in said and said.count("\n") == 1
