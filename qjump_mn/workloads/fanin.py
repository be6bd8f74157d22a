"""fanin: datagrams at set times, each with the time when it was sent and when it arrived."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FaninPlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import Log, log, transposed

COLUMNS = {"flow": "string", "stream": "int32", "sequence": "int32", "due_ns": "int64", "sent_ns": "int64", "latency_us": "double"}
"""A row for each datagram that was to be sent; ``latency_us``, from the sender's call to the receiver's socket, is null if it did not arrive."""

LINGER_S = 0.5
"""A receiver is ended after its senders: what is under way then has this long to arrive."""


def output_name(plan: FaninPlan, host: str, end: str) -> str:
    """The raw file of a sender (``end`` "send") or a receiver ("receive")."""
    return f"{plan.name}-{host}.{end}.txt"


def launches(plan: FaninPlan, trial: Trial) -> Iterator[Launch]:
    """A receiver for each destination, a sender for each flow."""
    most = 2 * len(plan.flows) * plan.streams * (trial.duration_ns // plan.interval_ns + 2)
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        receive = ("fanin", "receive", "--port", str(plan.port), "--rows", str(most))
        yield Launch("serve", host, receive, output_name(plan, host, "receive"), listens=("udp", plan.port), itself=False, linger_s=LINGER_S)
    for index, (source, destination) in enumerate(plan.flows):
        send = (
            *("fanin", "send", "--to", f"{trial.network.addresses[destination]}:{plan.port}", "--interval", str(plan.interval_ns)),
            *("--streams", str(plan.streams), "--payload", str(plan.payload_bytes)),
            *("--duration", str(trial.duration_ns), "--seed", str(1000 * trial.seed + index)),
        )
        yield Launch("probe", source, send, output_name(plan, source, "send"), longest_s=trial.duration_ns / 1e9)


def columns(plan: FaninPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every datagram of every flow."""
    host_of = {int(ipaddress.ip_address(address)): host for host, address in trial.network.addresses.items()}
    arrived: dict[tuple[str, int, int], int] = {}
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        got = log(read(output_name(plan, host, "receive")), "fanin")
        if got.end["overflowed"] != "0" or got.end["foreign"] != "0":
            raise LostError(f"the receiver had no room for {got.end['overflowed']} datagrams, and {got.end['foreign']} were not fanin's")
        keys = zip(map(host_of.__getitem__, got.columns["source"]), got.columns["stream"], got.columns["sequence"], strict=True)
        arrived |= dict(zip(keys, got.columns["received_ns"], strict=True))
    rows = []
    for source, destination in plan.flows:
        sent = log(read(output_name(plan, source, "send")), "fanin")
        rows += [
            (f"{source}>{destination}", stream, sequence, due, start, (when - start) / 1e3 if when is not None else None)
            for stream, sequence, due, start in _bursts(sent)
            for when in [arrived.get((source, stream, sequence))]
        ]
    return transposed(rows, COLUMNS)


def _bursts(sent: Log) -> Iterator[tuple[int, int, int, int]]:
    columns = sent.columns
    return zip(columns["stream"], columns["sequence"], columns["due_ns"], columns["start_ns"], strict=True)
