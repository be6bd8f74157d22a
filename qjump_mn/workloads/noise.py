"""Bursts of fanin's datagrams, counted where they are sent and where they arrive."""

from __future__ import annotations

import bisect
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn import theory
from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import NoisePlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import log, transposed

COLUMNS = {"flow": "string", "start_ns": "int64", "end_ns": "int64", "sent": "int64", "arrived": "int64"}
"""A row for each burst: when it began and when the kernel had its last datagram, how many there were, and how many of them arrived."""

LINGER_S = 1.0
"""A receiver is ended after its senders: a full buffer of 10 Mb/s takes 0.12 s to drain, and there may be one at each of a path's switches."""


def output_name(plan: NoisePlan, host: str, end: str) -> str:
    """The raw file of a sender (``end`` "send") or a receiver ("receive")."""
    return f"{plan.name}-{host}.{end}.txt"


def launches(plan: NoisePlan, trial: Trial) -> Iterator[Launch]:
    """A receiver for each destination, a sender for each flow."""
    payload = trial.network.mtu_bytes - theory.IP_HEADER_BYTES - theory.UDP_HEADER_BYTES
    lasts_ns = trial.background_s * 10**9
    most = len(plan.flows) * plan.burst * (lasts_ns // plan.interval_ns + 2)
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        receive = ("fanin", "receive", "--port", str(plan.port), "--rows", str(most))
        yield Launch("serve", host, receive, output_name(plan, host, "receive"), listens=("udp", plan.port), itself=False, linger_s=LINGER_S)
    for index, (source, destination) in enumerate(plan.flows):
        send = (
            *("fanin", "send", "--to", f"{trial.network.addresses[destination]}:{plan.port}", "--payload", str(payload)),
            *("--interval", str(plan.interval_ns), "--burst", str(plan.burst)),
            *("--duration", str(lasts_ns), "--seed", str(1000 * trial.seed + index)),
        )
        yield Launch("load", source, send, output_name(plan, source, "send"), longest_s=trial.background_s)


def columns(plan: NoisePlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every burst of every flow."""
    numbers: dict[tuple[int, str], list[int]] = {}
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        got = log(read(output_name(plan, host, "receive")), "fanin")
        if got.end["overflowed"] != "0":
            raise LostError(f"the receiver on {host} had no room for {got.end['overflowed']} datagrams")
        for address, sequence in zip(got.columns["source"], got.columns["sequence"], strict=True):
            numbers.setdefault((address, host), []).append(sequence)
    rows = []
    for source, destination in plan.flows:
        arrived = sorted(numbers.get((int(ipaddress.ip_address(trial.network.addresses[source])), destination), []))
        bursts = log(read(output_name(plan, source, "send")), "fanin").columns
        for first, start, end, sent, dropped in zip(
            *(bursts[name] for name in ("sequence", "start_ns", "end_ns", "sent", "dropped")), strict=True
        ):
            # A burst's datagrams have the numbers from its first on.
            came = bisect.bisect_left(arrived, first + sent + dropped) - bisect.bisect_left(arrived, first)
            rows.append((f"{source}>{destination}", start, end, sent, came))
    return transposed(rows, COLUMNS)
