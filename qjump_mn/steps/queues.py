"""Steps that record how many bytes wait at ports over time: the trace event wire:wire_queue."""

from __future__ import annotations

from collections.abc import Iterator

from qjump_mn.executor.steps import AnyStep, Read, Run
from qjump_mn.model import filenames
from qjump_mn.model.plan import Trial
from qjump_mn.steps import frames

WINDOWS = 500
"""In how many windows of time the measurement is split."""
MOST_LINES = 8
"""Of ports and levels that are kept: those where most bytes waited."""

_EVENTS = "/sys/kernel/tracing/instances/qjump-mn-queues"
_WINDOW = "/sys/module/sch_wire/parameters/window_ns"
_SHORTEST_NS, _LONGEST_NS = 1_000, 4_000_000_000
_EVENT_BYTES = 200

_BEGIN = """
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
mkdir {folders}
echo {buffer_kb} >{events}/buffer_size_kb
echo {window_ns} >{window}
echo 1 >{events}/events/wire/wire_queue/enable
"""

READS = r"""
import json, re, sys
events, window_ns, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(f"{events}/events/wire/wire_queue/enable", "w") as file:
    file.write("0")
with open(f"{events}/trace") as file:
    text = file.read()
counts = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", text)
EVENT = re.compile(r"dev=(\S+) window=(\d+) peak=\{(.*)\} then=\{(.*)\} drops=\{(.*)\}")
NAMES = "at", "peak", "then", "dropped"
lines, dropped = {}, {}
for device, window, *arrays in EVENT.findall(text):
    levels = zip(*([int(word, 16) for word in array.split(",")] for array in arrays))
    for level, (peak, then, drops) in enumerate(levels):
        more = drops - dropped.get((device, level), drops)
        dropped[device, level] = drops
        if peak or more:
            line = lines.setdefault((device, level), {name: [] for name in NAMES})
            for name, value in zip(NAMES, (int(window), peak, then, more)):
                line[name].append(value)
shown = sorted(lines, key=lambda key: (-max(lines[key]["peak"]), key))
print(json.dumps({
    "window_ns": window_ns,
    "lost": int(counts[2]) - int(counts[1]),
    "others": max(0, len(shown) - most),
    "lines": [{"device": key[0], "level": key[1], **lines[key]} for key in shown[:most]],
}))
"""
"""The program that ends the recording and prints a :class:`qjump_mn.results.queues.Queues`."""


def record(trial: Trial) -> Iterator[AnyStep]:
    """Yield steps that begin to record."""
    if not _is_recorded(trial):
        return
    ports = 2 * len(trial.network.edges)
    folders = (_EVENTS, frames.FOLDER) if trial.watch else (_EVENTS,)
    script = _BEGIN.format(
        folders=" ".join(folders),
        events=_EVENTS,
        # Twice: a measurement may take longer than was planned.
        buffer_kb=64 + 2 * ports * WINDOWS * _EVENT_BYTES // 1024,
        window=_WINDOW,
        window_ns=_window_ns(trial),
    )
    argv = ("sh", "-e", "-c", script + frames.begin(trial))
    yield Run(argv=argv, undo=Run(argv=("rmdir", *folders)))


def keep(trial: Trial) -> Iterator[AnyStep]:
    """Yield the step that ends the recording and keeps it."""
    if _is_recorded(trial):
        argv = ("python3", "-c", READS, _EVENTS, f"{_window_ns(trial)}", f"{MOST_LINES}")
        yield Read(argv=argv, output=filenames.QUEUES)


def _is_recorded(trial: Trial) -> bool:
    """Return whether the links are wires, and the clock stands still while this code runs."""
    return not trial.arm.real_time and trial.network.model == "wire"


def _window_ns(trial: Trial) -> int:
    return min(max(trial.duration_ns // WINDOWS, _SHORTEST_NS), _LONGEST_NS)
