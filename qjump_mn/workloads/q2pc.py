"""q2pc: a coordinator that logs every request, and the clients that answer."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import Q2PCPlan
from qjump_mn.model.topology import PREFIX_BITS
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import log, transposed

COLUMNS = {"start_ns": "int64", "votes_ns": "int64", "retries": "int32", "latency_us": "double"}
"""A row for each request that was completed or failed; ``votes_ns`` is null if a vote was missing, ``latency_us`` if it failed."""


def output_name(plan: Q2PCPlan, host: str) -> str:
    """The raw file of a host: the coordinator's has the requests."""
    return f"{plan.name}-{host}.q2pc.txt"


def launches(plan: Q2PCPlan, trial: Trial) -> Iterator[Launch]:
    """A client on each destination, and the coordinator."""
    sizes = ("--transport", plan.transport, "--message", str(plan.message_bytes))
    for number, host in enumerate(plan.clients):
        named = ("--client", str(number)) if plan.transport == "broadcast" else ()
        serve = ("q2pc", "serve", *sizes, "--port", str(plan.port), *named)
        listens: tuple[Literal["tcp", "udp"], int] = ("tcp" if plan.transport == "tcp" else "udp", plan.port)
        yield Launch("serve", host, serve, output_name(plan, host), listens=listens, itself=False)
    coordinate = ("q2pc", "coordinate", *sizes, "--duration", str(trial.duration_ns), "--interval", str(plan.interval_ns), *_towards(plan, trial))
    yield Launch("probe", plan.coordinator, coordinate, output_name(plan, plan.coordinator), longest_s=trial.duration_ns / 1e9)


def _towards(plan: Q2PCPlan, trial: Trial) -> tuple[str, ...]:
    """Where the clients are, and what is done about those that do not answer."""
    addresses = trial.network.addresses
    if plan.transport == "broadcast":
        everyone = ipaddress.ip_interface(f"{addresses[plan.coordinator]}/{PREFIX_BITS}").network.broadcast_address
        return ("--broadcast", f"{everyone}:{plan.port}", "--clients", str(len(plan.clients)), "--wait", str(plan.wait_ns))
    peers = ("--peers", ",".join(f"{addresses[host]}:{plan.port}" for host in plan.clients))
    return (*peers, "--rto", str(plan.rto_ns)) if plan.transport == "udp" else peers


def columns(plan: Q2PCPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every request."""
    found = log(read(output_name(plan, plan.coordinator)), "q2pc").columns
    rows = (
        (start, votes or None, retries, None if failed else (end - start) / 1e3)
        for start, votes, end, retries, failed in zip(
            *(found[name] for name in ("start_ns", "votes_ns", "end_ns", "retries", "failed")), strict=True
        )
    )
    return transposed(rows, COLUMNS)
