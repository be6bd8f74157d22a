"""Start fanin's senders and receivers (native/fanin) and read their logs, for the programs fanin
and noise."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.programs.base import Flow, WorkloadPlan
from qjump_mn.programs.launch import Launch, Phase
from qjump_mn.programs.text import log


def output_name(plan: WorkloadPlan, host: str, end: str) -> str:
    """Raw file of a sender (``end`` "send") or a receiver ("receive")."""
    return f"{plan.name}-{host}.{end}.txt"


def receivers(plan: WorkloadPlan, *, rows: int, linger_s: float) -> Iterator[Launch]:
    """A receiver on each destination, with room for ``rows`` datagrams; it is stopped ``linger_s``
    after the senders."""
    for host in _destinations(plan):
        receive = ("fanin", "receive", "--port", str(plan.port), "--rows", str(rows))
        yield Launch(
            "serve",
            host,
            receive,
            output_name(plan, host, "receive"),
            listens=("udp", plan.port),
            itself=False,
            linger_s=linger_s,
        )


def senders(
    plan: WorkloadPlan, trial: Trial, phase: Phase, options: tuple[str, ...], *, duration_ns: int
) -> Iterator[Launch]:
    """A sender for each flow, with its own seed; ``options`` say what it sends."""
    for index, (source, destination) in enumerate(plan.flows):
        send = (
            *(
                "fanin",
                "send",
                "--to",
                f"{trial.network.addresses[destination]}:{plan.port}",
                *options,
            ),
            *("--duration", str(duration_ns), "--seed", str(1000 * trial.seed + index)),
        )
        yield Launch(
            phase, source, send, output_name(plan, source, "send"), longest_s=duration_ns / 1e9
        )


def sent(plan: WorkloadPlan, source: str, read: Callable[[str], str]) -> dict[str, list[int]]:
    """The columns of a sender's log, a row for each burst."""
    return log(read(output_name(plan, source, "send")), "fanin").columns


def arrivals(
    plan: WorkloadPlan, trial: Trial, read: Callable[[str], str]
) -> dict[Flow, list[tuple[int, int, int]]]:
    """(stream, sequence, received_ns) of every datagram that arrived, by flow and in the order of
    arrival.

    Raises :class:`LostError` if a receiver had no room for a datagram, or got one that belongs to
    no flow.
    """
    host_of = {
        int(ipaddress.ip_address(address)): host
        for host, address in trial.network.addresses.items()
    }
    by_flow: dict[Flow, list[tuple[int, int, int]]] = {flow: [] for flow in plan.flows}
    for host in _destinations(plan):
        receiver_log = log(read(output_name(plan, host, "receive")), "fanin")
        totals = receiver_log.end
        if totals["overflowed"] != "0" or totals["foreign"] != "0":
            raise LostError(
                f"the receiver on {host} had no room for {totals['overflowed']} datagrams, and "
                f"{totals['foreign']} were not fanin's"
            )
        names = ("source", "stream", "sequence", "received_ns")
        for address, stream, sequence, received_ns in zip(
            *(receiver_log.columns[name] for name in names), strict=True
        ):
            flow = (host_of.get(address, "an unknown address"), host)
            if flow not in by_flow:
                raise LostError(
                    f"the receiver on {host} got a datagram from {flow[0]}, where no flow to it "
                    "begins"
                )
            by_flow[flow].append((stream, sequence, received_ns))
    return by_flow


def _destinations(plan: WorkloadPlan) -> list[str]:
    return list(dict.fromkeys(destination for _, destination in plan.flows))
