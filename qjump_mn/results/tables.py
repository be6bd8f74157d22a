"""Tables from raw output: one Parquet file a workload and trial, made again from the verbatim text whenever it is asked for.

``data/<workload>.parquet`` of ping: flow, sequence (from 1), received_s (Unix time, null if lost), rtt_us (null if lost).
Of iperf: flow, side ("sender", "receiver"), stream, start_s and end_s (since the flow's test began), bytes, retransmits (null at the receiver).
A flow is written "h8>h10".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from qjump_mn.errors import LostError, QJumpError
from qjump_mn.model.plan import IperfPlan, PingPlan, Trial
from qjump_mn.results.directory import RunDirectory, hand_over
from qjump_mn.workloads import iperf, ping

T = TypeVar("T")

PING_SCHEMA = pa.schema([("flow", pa.string()), ("sequence", pa.int32()), ("received_s", pa.float64()), ("rtt_us", pa.float64())])
IPERF_SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("side", pa.string()),
        ("stream", pa.int32()),
        ("start_s", pa.float64()),
        ("end_s", pa.float64()),
        ("bytes", pa.int64()),
        ("retransmits", pa.int32()),
    ]
)


class TrialFacts(msgspec.Struct, frozen=True):
    """What a trial says of itself in ``trial.json``; ``window_s`` is the measurement's start and end in s after the bulk started."""

    cpu_busy: float
    window_s: tuple[float, float]


class TrialTables(msgspec.Struct, frozen=True):
    """One done trial: its facts and a table a workload."""

    trial: Trial
    facts: TrialFacts
    tables: Mapping[str, pa.Table]


def facts(run: RunDirectory, trial: Trial) -> TrialFacts:
    """``trial.json``; raise :class:`LostError` if it is missing or damaged."""
    path = run.trial(trial.name) / "trial.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrialFacts)
    except (OSError, msgspec.DecodeError) as error:
        raise LostError(f"trial.json cannot be read: {error}") from None


def build(run: RunDirectory, trial: Trial) -> TrialTables:
    """Parse a done trial's raw output and write its tables; raise :class:`LostError` naming the file that is missing or damaged."""
    known = facts(run, trial)
    raw, data = run.raw(trial.name), run.data(trial.name)
    tables: dict[str, pa.Table] = {}
    for workload in trial.arm.workloads:
        match workload:
            case PingPlan():
                tables[workload.name] = _ping(raw, workload)
            case IperfPlan():
                tables[workload.name] = _iperf(raw, workload)
        data.mkdir(exist_ok=True)
        pq.write_table(tables[workload.name], data / f"{workload.name}.parquet", compression="zstd")
    hand_over(data)
    return TrialTables(trial, known, tables)


def _ping(raw: Path, plan: PingPlan) -> pa.Table:
    rows = [
        {"flow": f"{source}>{destination}", "sequence": echo.sequence, "received_s": echo.received_s, "rtt_us": echo.rtt_us}
        for source, destination in plan.flows
        for echo in _parsed(raw / ping.output_name(plan, (source, destination)), lambda text: ping.parse(text, plan.count))
    ]
    return pa.Table.from_pylist(rows, schema=PING_SCHEMA)


def _iperf(raw: Path, plan: IperfPlan) -> pa.Table:
    rows = [
        {"flow": f"{flow[0]}>{flow[1]}", "side": side, **interval._asdict()}
        for flow in plan.flows
        for end, side in (("client", "sender"), ("server", "receiver"))
        for interval in _parsed(raw / iperf.output_name(plan, flow, end), iperf.parse)
    ]
    return pa.Table.from_pylist(rows, schema=IPERF_SCHEMA)


def _parsed(path: Path, parse: Callable[[str], list[T]]) -> list[T]:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LostError(f"raw/{path.name} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (QJumpError, ValueError, KeyError, TypeError) as error:
        raise LostError(f"raw/{path.name}: {error}") from None
