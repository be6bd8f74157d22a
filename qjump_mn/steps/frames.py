"""Steps that record every frame of a part of the measurement: the trace events wire:wire_frame and
wire:wire_drop."""

from __future__ import annotations

from collections.abc import Iterator

from qjump_mn.executor.steps import AnyStep, Read
from qjump_mn.model import filenames
from qjump_mn.model.plan import Trial
from qjump_mn.model.watch import MAX_FRAMES

FOLDER = "/sys/kernel/tracing/instances/qjump-mn-frames"
_FRAME_BYTES = 184
"""Of a frame in the tracing buffer, with 96 bytes of its own."""

_BEGIN = """
echo 0 >{frames}/options/overwrite
echo {buffer_kb} >{frames}/buffer_size_kb
echo now >{frames}/trace_marker
while read -r task cpu flags now text; do
    case $text in *now) break ;; esac
done <{frames}/trace
now=${{now%:}}
from=$((${{now%.*}} * 1000000000 + (1${{now#*.}} - 1000000) * 1000 + {start_ns}))
to=$((from + {length_ns}))
echo "handover >= $from && arrival < $to" >{frames}/events/wire/wire_frame/filter
echo "arrival >= $from && arrival < $to" >{frames}/events/wire/wire_drop/filter
echo 1 >{frames}/events/wire/wire_frame/enable
echo 1 >{frames}/events/wire/wire_drop/enable
"""
"""Runs in the shell of steps/queues.py and starts no program. To start one, or to ask for the time,
moves the guest's clock by 10 ns, and then a run's results would depend on being watched."""

READS = r"""
import array, base64, json, re, sys, zlib
frames = sys.argv[1]
def text(name):
    with open(f"{frames}/{name}") as file:
        return file.read()
EVENT = re.compile(
    r"wire_(frame|drop): dev=(\S+) level=(\d+) len=(\d+) arrival=(\d+) start=(\d+) handover=(\d+)"
    r" vlan=(-?\d+) head=(\w*)"
)
NAMES = "device", "level", "length", "tag", "arrival", "waited", "crossed", "packet"
columns, devices, heads, last = {name: array.array("q") for name in NAMES}, {}, {}, 0
with open(f"{frames}/trace") as file:
    for line in file:
        if not (event := EVENT.search(line)):
            continue
        kind, device, *numbers, head = event.groups()
        level, length, arrival, start, handover, vlan = map(int, numbers)
        data = bytes.fromhex(head)
        if data[12:14] == b"\x81\0":  # at some ports the tag is inline, at others apart
            vlan, data = int.from_bytes(data[14:16], "big"), data[:12] + data[16:]
        data = data[:92]
        dropped = kind == "drop"
        row = (
            devices.setdefault(device, len(devices)), level, length, vlan, arrival - last,
            -1 if dropped else start - arrival, 0 if dropped else handover - start,
            heads.setdefault(data, len(heads)),
        )
        last = arrival
        for name, value in zip(NAMES, row):
            columns[name].append(value)
def packed(data):
    return base64.b64encode(zlib.compress(data, 9)).decode()
bounds = re.findall(r"\d+", text("events/wire/wire_frame/filter"))
print(json.dumps({
    "from_ns": int(bounds[0]),
    "to_ns": int(bounds[1]),
    "lost": int(re.search(r"dropped events: (\d+)", text("per_cpu/cpu0/stats"))[1]),
    "devices": list(devices),
    "columns": {name: packed(column.tobytes()) for name, column in columns.items()},
    "heads": packed(b"".join(bytes([len(head)]) + head for head in heads)),
}))
"""
"""The program that prints a :class:`qjump_mn.results.frames.Recorded`."""


def begin(trial: Trial) -> str:
    """Return lines for the shell that begin to record; "" if the trial is not watched."""
    if trial.watch is None:
        return ""
    return _BEGIN.format(
        frames=FOLDER,
        buffer_kb=MAX_FRAMES * _FRAME_BYTES // 1024,
        start_ns=trial.watch.start_ns,
        length_ns=trial.watch.length_ns,
    )


def keep(trial: Trial) -> Iterator[AnyStep]:
    """Yield the step that keeps what was recorded."""
    if trial.watch is not None:
        yield Read(argv=("python3", "-c", READS, FOLDER), output=filenames.FRAMES, deadline_s=600.0)
