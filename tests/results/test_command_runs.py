"""The run directory of a command: made, read as a stranger's, compared with earlier ones."""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from qjump_mn import api, resolve, session
from qjump_mn.analysis import judging
from qjump_mn.errors import UsageError
from qjump_mn.model.command import Command
from qjump_mn.results import command_directory, contents, directory, manifest, previous_runs
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.manifest import TrialRecord
from tests.support import commands, synthetic
from tests.support.screen import Screen
from tests.support.synthetic import NOW

LATER = NOW + datetime.timedelta(minutes=5)


@pytest.fixture
def run(tmp_path: Path) -> CommandDirectory:
    return commands.make(tmp_path / "results", seeds=(1, 2), own={"typed": b"pingall\n"})


def edit(run: CommandDirectory, **entries: object) -> None:
    """Change the manifest behind the run's back."""
    (run.path / manifest.NAME).write_bytes(msgspec.json.encode(replace(run.manifest, **entries)))


def test_commands_run_has_a_name_a_manifest_and_what_went_in(run: CommandDirectory) -> None:
    told = run.manifest
    assert run.path.name == f"mn-20260102T030405Z-{told.command_sha256[:12]}"
    assert (run.path.parent / "last").resolve() == run.path
    assert told.command_sha256 == told.command.hash and told.order == ("mn/1", "mn/2")
    assert (told.backend, told.clock, told.ended_utc) == ("guest", "virtual", told.started_utc)
    assert (run.own / "typed").read_bytes() == b"pingall\n"
    assert run.is_done("mn/1") and run.is_done("mn/2") and run.lost() == {}
    assert contents.discrepancies(run.path, told) == contents.unmarked(run.path, told) == []
    assert command_directory.problems(run.path, told) == []
    assert set(contents.results(run.path, told).trials) == {"mn/1", "mn/2"}
    assert isinstance(command_directory.existing(run.path), CommandDirectory)


def test_command_that_fails_is_done_and_a_lost_guest_is_not(run: CommandDirectory) -> None:
    run.finish("mn/1", TrialRecord(status="done", exit_code=124))
    run.finish("mn/2", TrialRecord(status="lost", exit_code=5, message="the guest died"))
    assert run.is_done("mn/1") and not run.is_done("mn/2")
    assert run.lost() == {"mn/2": "the guest died"}


@pytest.mark.parametrize("name", [b"\x1b[2J", b"\xff", b"a\nb", "\u202egpj.exe".encode()])
def test_file_whose_name_no_run_can_have_is_named(run: CommandDirectory, name: bytes) -> None:
    before = run.manifest
    (run.raw("mn/1") / "files" / os.fsdecode(name)).write_text("x")
    with pytest.raises(UsageError, match=r"a file whose name a run cannot have, in .*: '") as error:
        run.finish("mn/1", TrialRecord(status="done", exit_code=0))
    assert str(error.value).isprintable() and run.manifest == before


def test_tampering_with_a_commands_files_is_seen(run: CommandDirectory) -> None:
    (run.raw("mn/1") / "output").write_text("forged\n")
    (run.raw("mn/3")).mkdir(parents=True)
    (run.raw("mn/3") / "output").write_text("more\n")
    assert contents.discrepancies(run.path, run.manifest) == [
        "trials/mn/1/raw/output is not what the trial left",
        "trials/mn/3/raw/output does not belong to a trial of the run",
    ]


def test_what_went_in_is_checked(run: CommandDirectory) -> None:
    (run.own / "folder.tar").write_bytes(b"another")
    (run.own / "typed").unlink()
    (run.own / "more").mkdir()
    (run.own / "more/file").write_text("more")
    edit(run, command=replace(run.manifest.command, argv=("true",)))
    assert command_directory.problems(run.path, run.manifest) == [
        "the command is not the one that was run",
        "own/typed is gone",
        "own/more/file does not belong to the run",
        "own/folder.tar is not what the run began with",
    ]


COMMAND = Command(argv=("true",), folder_sha256="0" * 64)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"argv": ()}, "a command has 1 to 10000 words, not 0"),
        ({"argv": ("x" * 100_001,)}, "has 100001 bytes: text has at most 100000"),
        ({"argv": ("\u202eevil",)}, "is not text: leave out control and bidirectional characters"),
        ({"seeds": ()}, "0 seeds: use 1 to 100000"),
        ({"seeds": tuple(range(100_001))}, "100001 seeds: use 1 to 100000"),
        ({"seeds": (1, 1)}, "a seed is there twice"),
        ({"seeds": (-1,)}, "seed -1 is out of range: use 0 to 2147483647"),
        ({"seeds": (2**31,)}, "seed 2147483648 is out of range"),
        ({"folder_sha256": ""}, "folder_sha256 is no SHA-256"),
        ({"typed_sha256": "../../etc/passwd"}, "typed_sha256 is no SHA-256"),
        ({"link": "a b"}, "'a b' is not a valid name"),
        ({"deadline_ns": 0}, "deadline_ns is 0: use 1 to"),
        ({"memory_mb": 1 << 40}, "memory_mb is 1099511627776: use 1 to 65536"),
    ],
)
def test_strangers_command_has_bounds(
    run: CommandDirectory, changes: Mapping[str, object], told: str
) -> None:
    COMMAND.check("a command")
    edit(run, command=replace(run.manifest.command, **changes))
    with pytest.raises(UsageError, match=told) as error:
        manifest.read_command(run.path)
    assert str(run.path / manifest.NAME) in str(error.value)


def test_strangers_manifest_is_read_with_care(run: CommandDirectory) -> None:
    path, good = run.path / manifest.NAME, (run.path / manifest.NAME).read_bytes()
    for old, new, told in (
        (b'"my.py"', b'"my.py\\u001b[2J"', "has control characters"),
        (b'"seeds": [', b'"seeds": ["one", ', "is no manifest of this version: Expected `int`"),
        (b'"command_sha256"', b'"plan": {}, "command_sha256"', "unknown field `plan`"),
        (b'"schema": 3', b'"schema": 4', "has schema 4, this qjump-mn reads schema 3"),
        (b'"guest"', b'"host"', "names backend 'host' and clock virtual"),
        (b'"virtual"', b'"real"', "names backend 'guest' and clock real"),
    ):
        assert old in good
        path.write_bytes(good.replace(old, new, 1))
        with pytest.raises(UsageError, match=told):
            command_directory.existing(run.path)


def test_keys_of_a_manifest_are_in_the_order_of_older_versions(
    run: CommandDirectory, tmp_path: Path
) -> None:
    experiment = synthetic.create(tmp_path / "other", resolve.plan("fig3a", "smoke", []))
    common = ["backend", "clock", "started_utc", "ended_utc", "argv", "git", "versions"]
    common += ["machine", "order", "trials", "files"]
    for path, own in (
        (experiment.path, ["plan", "plan_sha256", "judged_sha256"]),
        (run.path, ["command", "command_sha256"]),
    ):
        assert list(json.loads((path / manifest.NAME).read_bytes())) == ["schema", *own, *common]


def test_what_takes_experiments_refuses_a_commands_run(
    run: CommandDirectory, tmp_path: Path
) -> None:
    told = "is the run of a command, not of an experiment: verify, compare, bundle and check take"
    with pytest.raises(UsageError, match=told):
        manifest.read(run.path)
    with pytest.raises(UsageError, match=told):
        directory.existing(run.path)
    with pytest.raises(UsageError, match=told):
        session.resume(run.path, Screen())
    with pytest.raises(UsageError, match=told):
        judging.judge(run.path)
    with pytest.raises(UsageError, match=told):
        api.Run.load(run.path)
    experiment = synthetic.create(tmp_path / "other", resolve.plan("fig3a", "smoke", []))
    with pytest.raises(UsageError, match="is the run of experiment fig3a, not of a command"):
        manifest.read_command(experiment.path)
    assert previous_runs.newest_first(run.path.parent, "mn") == []


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def left(seed: int) -> dict[str, bytes]:
    """What the command leaves, with another second line."""
    return commands.output(seed) | {"output": b"hello\nanother\nthe end\n"}


@pytest.mark.usefixtures("utc")
def test_newest_earlier_run_of_the_same_command_is_compared(tmp_path: Path) -> None:
    minute = datetime.timedelta(minutes=1)
    commands.make(tmp_path, now=NOW - minute, left=left)
    commands.make(tmp_path)
    commands.make(tmp_path, now=LATER - minute, argv=("true",))
    commands.make(tmp_path, now=LATER - minute, done=())
    run = commands.make(tmp_path, now=LATER)
    assert previous_runs.earlier(tmp_path, run) == "identical to your run of 03:04:05"
    other = commands.make(tmp_path, now=LATER + minute, left=left)
    assert previous_runs.earlier(tmp_path, other) == (
        "differs from your run of 03:09:05 in 1 of 3 files, first in raw/output: "
        "line 2 is 'another', and 'seed 1' in that run"
    )


@pytest.mark.usefixtures("utc")
def test_earlier_run_with_other_seeds_of_another_day_and_machine(tmp_path: Path) -> None:
    assert previous_runs.earlier(tmp_path, commands.make(tmp_path, seeds=(1, 2))) == ""
    day = NOW + datetime.timedelta(days=1)
    more = commands.make(tmp_path, now=day, seeds=(1, 2, 3))
    assert previous_runs.earlier(tmp_path, more) == ""
    fewer = commands.make(tmp_path, now=day, seeds=(2,), image="2" * 64)
    its = "your run of 03:04:05, made by another machine"
    assert previous_runs.earlier(tmp_path, fewer) == f"identical to {its}"
    last = commands.make(tmp_path, now=day, seeds=(2, 1), image="2" * 64, left=left)
    (more.trial("mn/2") / contents.MARK).unlink()
    its = "your run of 2026-01-02 03:04:05, made by another machine"
    assert previous_runs.earlier(tmp_path, last) == f"differs from {its}"
    same = commands.make(tmp_path, now=day, seeds=(2, 1))
    assert previous_runs.earlier(tmp_path, same) == (
        "differs from your run of 03:04:05, made by another machine"
    )


def test_only_folders_with_the_commands_hash_are_read(tmp_path: Path) -> None:
    first = commands.make(tmp_path)
    for number in range(1000):
        (tmp_path / f"mn-20260102T030405Z-{number:012}").mkdir()
    (tmp_path / f"{first.path.name}-nonsense").mkdir()
    again = commands.make(tmp_path)
    assert again.path.name == f"{first.path.name}-2"
    began = time.monotonic()
    assert previous_runs.earlier(tmp_path, again).startswith("identical to your run of ")
    assert time.monotonic() - began < 1
    os.remove(first.path / manifest.NAME)
    assert previous_runs.earlier(tmp_path, again) == ""


@pytest.mark.usefixtures("utc")
def test_session_is_compared_with_the_one_in_which_the_same_was_typed(tmp_path: Path) -> None:
    """A run has its name before a person types."""

    def session(typed: bytes, minutes: int) -> CommandDirectory:
        run = commands.make(tmp_path, now=NOW + datetime.timedelta(minutes=minutes))
        command = replace(run.manifest.command, typed_sha256=sha256(typed).hexdigest())
        edit(run, command=command, command_sha256=command.hash)
        return run

    session(b"pingall\n", 0)
    session(b"net\n", 1)
    told = previous_runs.earlier(tmp_path, session(b"pingall\n", 2))
    assert told == "identical to your run of 03:04:05"
    assert previous_runs.earlier(tmp_path, commands.make(tmp_path)) == ""
