"""Queues over time: the program that reads the trace in the guest, and the lines of a time line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.executor.steps import Read
from qjump_mn.report.timelines import recorded
from qjump_mn.results import queues
from qjump_mn.results.queues import Line, Queues
from qjump_mn.steps.queues import READS, keep, record

_ZEROS = ",".join(["0x0"] * 7)


def _event(device: str, window: int, peak: int, then: int, drops: int) -> str:
    told = (
        f"{name}={{{value:#x},{_ZEROS}}}"
        for name, value in (("peak", peak), ("then", then), ("drops", drops))
    )
    return f"    python3-1   [000] b....   1.0: wire_queue: dev={device} window={window} {' '.join(told)}\n"


def _read(folder: Path, text: str, most: int = 8) -> Queues:
    (folder / "events/wire/wire_queue").mkdir(parents=True)
    (folder / "trace").write_text(text)
    argv = [sys.executable, "-c", READS, str(folder), "1000", str(most)]
    printed = subprocess.run(argv, capture_output=True, check=True).stdout
    assert (folder / "events/wire/wire_queue/enable").read_text() == "0"
    return msgspec.json.decode(printed, type=Queues)


def test_the_trace_becomes_lines_of_ports_and_levels(tmp_path: Path) -> None:
    found = _read(
        tmp_path,
        "# entries-in-buffer/entries-written: 4/6   #P:1\n"
        + _event("s0-eth1", 5, 3000, 1500, 7)
        + _event("s0-eth2", 5, 100, 0, 0)
        + _event("s0-eth1", 6, 4500, 0, 9)
        + _event("s0-eth1", 9, 1500, 0, 9),
        most=1,
    )
    line = Line("s0-eth1", 0, [5, 6, 9], [3000, 4500, 1500], [1500, 0, 0], [0, 2, 0])
    assert found == Queues(window_ns=1000, lost=2, others=1, lines=[line])


def test_a_line_has_the_most_of_each_window_and_what_waited_between() -> None:
    network = resolve.plan("fig3a", "smoke", []).shown.network
    device = network.switch_ports()[0]
    line = Line(device, 7, [5, 6, 9], [3000, 4500, 1500], [1500, 600, 0], [0, 2, 0])
    waiting, dropped = recorded.tracks(Queues(1000, 0, 0, [line]), network, began_ns=5000)
    assert waiting.until_ns is not None
    rows = [list(row) for row in zip(waiting.at_ns, waiting.until_ns, waiting.values, strict=True)]
    assert rows == [[0, 1000, 3000], [1000, 2000, 4500], [2000, 4000, 600], [4000, 5000, 1500]]
    assert list(dropped.values) == [0, 2, 0] and dropped.label.endswith(", priority 7")


def test_only_wires_on_the_virtual_clock_are_recorded() -> None:
    (trial, *_) = resolve.plan("fig3a", "smoke", []).trials()
    begin, (kept,) = [*record(trial)], [*keep(trial)]
    assert begin and isinstance(kept, Read) and kept.output == "asbuilt/queues.json"
    real = msgspec.structs.replace(trial, arm=msgspec.structs.replace(trial.arm, real_time=True))
    assert not [*record(real), *keep(real)]


def test_a_damaged_file_is_an_error_and_none_is_none(tmp_path: Path) -> None:
    assert queues.read(tmp_path) is None
    (tmp_path / "asbuilt").mkdir()
    line = Line("s0-eth1", 0, [5], [3000], [0], [0])
    found = msgspec.to_builtins(Queues(1000, 0, 0, [line]))
    (row,) = found["lines"]
    changes: list[dict[str, list[int]]] = [
        {"peak": []},
        {"at": [], "peak": [], "then": [], "dropped": []},
    ]
    damaged = [{**found, "lines": [{**row, **change}]} for change in changes]
    for text in ("{", *map(json.dumps, damaged)):
        (tmp_path / "asbuilt/queues.json").write_text(text)
        with pytest.raises(msgspec.DecodeError):
            queues.read(tmp_path)
