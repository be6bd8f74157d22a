"""Frames of a part of the measurement: what begins to record them, and what reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qjump_mn import resolve
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Read, Run
from qjump_mn.model.plan import Plan
from qjump_mn.model.watch import SIMULATED, USUAL, Watch, check, parse
from qjump_mn.results import frames
from qjump_mn.steps import queues
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.frames import FOLDER, begin
from tests.resolve.test_wiring import fabric, network
from tests.support.recorded import Event, ping, recorded, tagged

HEAD = ping("10.0.0.1", "10.0.0.2", 5)


def planned(watched: str, replicates: int = 1, perturb: int = 0) -> Plan:
    return resolve.plan(
        "fig3a", "smoke", [], only=["contended"], watched=watched, replicates=replicates,
        perturb=perturb,
    )  # fmt: skip


def written(folder: Path, events: list[Event], **options: int) -> Path:
    """A trial whose guest recorded these events."""
    (folder / "trial/asbuilt").mkdir(parents=True)
    text = recorded(folder / "trace", events, from_ns=1000, to_ns=9000, **options)
    (folder / "trial/asbuilt/frames.json").write_bytes(text)
    return folder / "trial"


def test_parse_knows_parts_and_the_usual_one() -> None:
    assert parse("", 4000) is None
    assert parse("1us:2us", 4000) == Watch(start_ns=1000, length_ns=2000)
    assert parse(USUAL, 4000) == Watch(start_ns=1000, length_ns=3000)
    assert parse(USUAL, 4000, 500) == Watch(start_ns=0, length_ns=500)
    assert parse(USUAL, 400, 500) == Watch(start_ns=0, length_ns=400)
    assert parse(USUAL, 0, 500) == Watch(start_ns=0, length_ns=500)


def test_usual_part_of_a_simulated_run_is_the_beginning() -> None:
    # 10,000 packets of 1,522 bytes and what is around them, at 10 Gb/s.
    plan = resolve.plan("fig3a", "10g", [], watched=USUAL)
    assert plan.run.watch == Watch(start_ns=0, length_ns=12_330_000)


@pytest.mark.parametrize(
    ("experiment", "preset", "backend", "message"),
    [
        ("fig3a", "smoke", "host", "this run is for the host"),
        ("fig9", "smoke", "simulator", "has 144 links between two layers, more than 32"),
        ("links", "smoke", "guest", "has links of the model"),
    ],
)
def test_check_says_where_frames_cannot_be_recorded(
    experiment: str, preset: str, backend: str, message: str
) -> None:
    plan = resolve.plan(experiment, preset, [], backend=backend, watched="0s:1ns")
    with pytest.raises(UsageError, match=message):
        check(plan.run.watch, {arm.name: arm.network for arm in plan.run.arms}, backend)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cables": [["s1", "s2"]]}, "joins s1 and s2, which are in one layer"),
        ({"cables": [["s0", "s1"]]}, "joins s0 and s1 by 2 links"),
        (fabric(3, 11, 2), "has 33 links between two layers, more than 32"),
        (fabric(3, 1, 11), "has 33 links between two layers, more than 32"),
        (fabric(4, 8, 8), ""),
        ({"switches": {}, "fat_tree": {"ports": 4}}, ""),
    ],
)
def test_check_says_which_networks_are_not_drawn(changes: dict[str, Any], message: str) -> None:
    networks = {"mine": network(**changes)}
    if not message:
        check(Watch(start_ns=0, length_ns=1), networks, SIMULATED)
        return
    with pytest.raises(UsageError, match=f"the network of arm mine {message}: leave it out"):
        check(Watch(start_ns=0, length_ns=1), networks, SIMULATED)


@pytest.mark.parametrize("text", ["1us", "1:2", "1us:0ns", "3us:2us", "1us:x"])
def test_parse_refuses_what_is_no_part_of_the_measurement(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--watch: "):
        parse(text, 4000)


def test_watching_changes_no_identity_and_only_two_steps() -> None:
    plain, watched = planned(""), planned("1s:1s")
    assert plain.hash == watched.hash
    (one,), (other,) = plain.trials(), watched.trials()
    assert one.hash == other.hash and other.watch
    *steps, last = trial_steps(other)
    assert isinstance(last, Read) and last.output == "asbuilt/frames.json"
    pairs = zip(trial_steps(one), steps, strict=True)
    ((before, after),) = [(before, after) for before, after in pairs if before != after]
    assert isinstance(before, Run) and isinstance(after, Run)
    assert FOLDER in after.argv[3] and FOLDER not in before.argv[3]


def test_the_shell_that_begins_starts_no_further_program() -> None:
    """A program's start moves the guest's clock, so the results would be others."""
    (plain,), (watched,) = planned("").trials(), planned("1s:1s").trials()
    steps = [next(iter(queues.record(trial))) for trial in (plain, watched)]
    texts = [step.argv[3] for step in steps if isinstance(step, Run)]
    builtins = {"echo", "while", "case", "done", "now=${now%:}"}
    for line in begin(watched).strip().splitlines():
        word = line.split()[0]
        assert word in builtins or word.startswith(("from=", "to=")), line
    assert texts[1].replace(f" {FOLDER}", "", 1) == texts[0] + begin(watched)


def test_only_the_first_seed_is_watched() -> None:
    trials = planned(USUAL, replicates=2, perturb=1).trials()
    assert [trial.watch is not None for trial in trials] == [True, False, False]


def test_the_filter_is_from_the_marker_on(tmp_path: Path) -> None:
    (trial,) = planned("1s:500ms").trials()
    for name in ("options", "events/wire/wire_frame", "events/wire/wire_drop"):
        (tmp_path / name).mkdir(parents=True)
    marker = "   sh-77     [000] .....    12.000345: tracing_mark_write: now"
    (tmp_path / "trace").write_text(f"# tracer: nop\n#\n{marker}\n")
    script = begin(trial).replace(FOLDER, str(tmp_path))
    subprocess.run(["sh", "-e", "-c", script], check=True)
    bounds = [
        (tmp_path / f"events/wire/wire_{event}/filter").read_text() for event in ("frame", "drop")
    ]
    assert bounds == [
        "handover >= 13000345000 && arrival < 13500345000\n",
        "arrival >= 13000345000 && arrival < 13500345000\n",
    ]
    assert (tmp_path / "options/overwrite").read_text() == "0\n"
    assert (tmp_path / "events/wire/wire_frame/enable").read_text() == "1\n"


def test_frames_are_read_as_they_were_traced(tmp_path: Path) -> None:
    trial = written(
        tmp_path,
        [
            Event("h1-eth0", 0, 102, 1500, 1600, 1700, 2, HEAD),
            Event("s0-eth2", 7, 102, 1700, 1700, 1800, -1, tagged(HEAD, 7)),
            Event("s0-eth1", 0, 1522, 900, 0, 0, -1, b""),
        ],
    )
    found = frames.read(trial)
    assert found is not None
    assert found.devices == ["h1-eth0", "s0-eth2", "s0-eth1"]
    assert list(found.level) == [0, 7, 0] and list(found.length) == [102, 102, 1522]
    assert list(found.arrival) == [1500, 1700, 900] and list(found.dropped) == [False, False, True]
    assert list(found.start[:2]) == [1600, 1700] and list(found.handover[:2]) == [1700, 1800]
    assert list(found.head) == [0, 0, 1] and found.heads == [HEAD[:92], b""]
    assert (found.from_ns, found.to_ns, found.lost) == (1000, 9000, 0)


def test_a_full_buffer_ends_the_recording_before_what_waits_is_missing(tmp_path: Path) -> None:
    events = [
        Event("h1-eth0", 0, 102, 1500, 1800, 1900, 2, HEAD),
        Event("h1-eth0", 0, 102, 2500, 4000, 4100, 2, HEAD),
    ]
    found = frames.read(written(tmp_path, events, lost=3))
    assert found is not None and (found.lost, found.to_ns) == (3, 4000 - 1500)


def test_a_trial_that_was_not_watched_has_no_frames(tmp_path: Path) -> None:
    assert frames.read(tmp_path) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"lost"', b'"lots"'),
        (b'"level": "', b'"level": "A'),
        (b'"devices": ["h1-eth0"', b'"devices": ['),
    ],
)
def test_a_damaged_file_is_a_value_error(tmp_path: Path, old: bytes, new: bytes) -> None:
    trial = written(tmp_path, [Event("h1-eth0", 0, 102, 1500, 1600, 1700, 2, HEAD)])
    path = trial / "asbuilt/frames.json"
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(ValueError):
        frames.read(trial)


def test_encode_writes_what_the_guest_writes(tmp_path: Path) -> None:
    events = [
        Event("h1-eth0", 0, 102, 1500, 1600, 1700, 2, HEAD),
        Event("h1-eth0", 6, 102, 1550, 0, 0, -1, ping("10.0.0.1", "10.0.0.2", 6)),
        Event("h2-eth0", 6, 102, 1540, 1800, 1900, -1, tagged(HEAD, 6)),
    ]
    trial = written(tmp_path, events, lost=3)
    found = frames.read(trial)
    assert found is not None
    path = trial / "asbuilt/frames.json"
    guests = json.loads(path.read_text())
    path.write_bytes(frames.encode(found))
    again = frames.read(trial)
    assert again is not None
    for name, column in found._asdict().items():
        assert np.array_equal(column, again._asdict()[name])
    # Only the end is where the recording was last complete.
    assert {**json.loads(path.read_text()), "to_ns": 9000} == guests
