"""memcached with memload, which logs every request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import MemcachedPlan, WorkloadPlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import log, transposed

COLUMNS = {"flow": "string", "op": "string", "due_ns": "int64", "sent_ns": "int64", "latency_us": "double"}
"""A row for each request; ``latency_us`` counts from when it was due, and is null if no answer came in time."""

OPERATIONS = ("GET", "SET")
ERROR = 2
LINGER_NS = 5 * 10**9
"""How long a client waits for the last answers; a full buffer at 10 Mb/s holds 0.12 s, and TCP's least timeout is 0.2 s."""


def output_name(plan: MemcachedPlan, flow: tuple[str, str], end: str) -> str:
    """The raw file of one flow's ``end``: "load" has the requests."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.{end}.txt"


def servers(plan: WorkloadPlan, trial: Trial) -> Iterator[Launch]:
    """A memcached on each destination, whoever loads it."""
    for host in dict.fromkeys(destination for _, destination in plan.flows):
        server = ("memcached", "-u", "root", "-m", "64", "-t", "1", "-U", "0", "-p", str(plan.port), "-l", trial.network.addresses[host])
        yield Launch("serve", host, server, f"{plan.name}-{host}.memcached.txt", listens=("tcp", plan.port), itself=False)


def launches(plan: MemcachedPlan, trial: Trial) -> Iterator[Launch]:
    """The servers, and for each flow a client that stores the keys, and one that measures."""
    yield from servers(plan, trial)
    loop = ("--closed", "--think", str(plan.think_ns)) if plan.rate_per_s is None else ("--rate", f"{plan.rate_per_s:g}")
    for index, (source, destination) in enumerate(plan.flows):
        sizes = (
            *("memload", "--server", f"{trial.network.addresses[destination]}:{plan.port}", "--connections", str(plan.connections)),
            *("--key-bytes", str(plan.key_bytes), "--value-bytes", str(plan.value_bytes), "--keys", str(plan.keys)),
        )
        flow, duration_s = (source, destination), (trial.duration_ns + LINGER_NS) / 1e9
        # Before anything disturbs: through a full buffer it would take longer than the measurement.
        yield Launch("serve", source, (*sizes, "--store"), output_name(plan, flow, "store"), longest_s=60.0)
        client = (
            *(*sizes, "--stored", *loop, "--get-fraction", f"{plan.get_fraction:g}", "--duration", str(trial.duration_ns)),
            *("--linger", str(LINGER_NS), "--seed", str(1000 * trial.seed + index)),
        )
        yield Launch("probe", source, client, output_name(plan, flow, "load"), longest_s=duration_s)


def columns(plan: MemcachedPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every request of every flow."""
    rows = []
    for flow in plan.flows:
        found = log(read(output_name(plan, flow, "load")), "memload")
        requests = found.columns
        if ERROR in requests["status"] or 1 in requests["status"]:
            raise LostError(f"memcached answered {requests['status'].count(ERROR)} requests with an error and missed {requests['status'].count(1)} keys")
        rows += [
            (f"{flow[0]}>{flow[1]}", OPERATIONS[op], due, sent, (done - due) / 1e3 if done else None)
            for op, due, sent, done in zip(requests["op"], requests["due_ns"], requests["sent_ns"], requests["done_ns"], strict=True)
        ]
    return transposed(rows, COLUMNS)
