"""Every program that the simulator knows, both ways: a workload's plan as applications, and what these yield as the rows of the program's table.

Hosts take no time: a latency is what the network and the host's limiter made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import qjump_sim
from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.programs import (
    AnyPlan,
    BarrierPlan,
    FaninPlan,
    FlowsPlan,
    IperfPlan,
    MapReducePlan,
    MemcachedPlan,
    PingPlan,
    PtpPlan,
)
from qjump_mn.model.programs.barrier import MESSAGE_BYTES
from qjump_mn.model.programs.memcached import BINARY_HEADER_BYTES
from qjump_mn.model.programs.ptp import EVENT_BYTES
from qjump_mn.results import counters
from qjump_mn.simulation.stage import Stage, full_buffer, segments_bytes, wire_bytes
from qjump_mn.workloads import memcached
from qjump_sim import apps

INTERVALS = 500
"""Of the measured time, in each of which iperf's bytes are counted: each stream's begin with itself, so that the measured ones differ by one."""

MILLIONTHS = 1_000_000
_UDP = theory.IP_HEADER_BYTES + theory.UDP_HEADER_BYTES
_TCP = theory.IP_HEADER_BYTES + theory.TCP_HEADER_BYTES

Rows = Iterator[tuple[Any, ...]]
Apps = list[apps.App]


class Program(NamedTuple):
    """A program's two directions; ``rows`` are in the order of the columns of its module in ``qjump_mn.workloads``."""

    apps: Callable[[Any, Stage], Apps]
    rows: Callable[[Any, Stage, Sequence[Any], qjump_sim.Outcome], Rows]


def program(plan: AnyPlan, where: str) -> Program:
    """The program of a workload; raise :class:`UsageError` that begins with ``where`` if the simulator does not know it."""
    if type(plan) not in _PROGRAMS:
        raise UsageError(f"{where}: the simulator does not know the program of workloads.{plan.name}: use another backend")
    return _PROGRAMS[type(plan)]


def _level(plan: AnyPlan) -> int:
    """Level 0 of the simulator is the most urgent, 7 of 802.1Q is."""
    return 7 - plan.level


def _name(flow: tuple[str, str]) -> str:
    return ">".join(flow)


def _us(latency: int, gaps: int) -> float | None:
    """A latency in us, None of what has not come."""
    return None if latency < 0 else (latency - gaps) / qjump_sim.US


def _ping(plan: PingPlan, stage: Stage) -> Apps:
    if plan.reply_level != plan.level:
        raise UsageError(f"workloads.{plan.name}.reply_level: the simulator's replies have the requests' level: leave it out")
    size = wire_bytes(theory.IP_HEADER_BYTES + theory.ICMP_HEADER_BYTES + plan.payload_bytes)
    gap = plan.interval_ns * qjump_sim.NS
    return [
        apps.Ping(stage.numbers[source], stage.numbers[destination], size, gap, plan.count, stage.began, _level(plan)) for source, destination in plan.flows
    ]


def _ping_rows(plan: PingPlan, stage: Stage, results: Sequence[apps.PingResult], outcome: qjump_sim.Outcome) -> Rows:
    for flow, result in zip(plan.flows, results, strict=True):
        gaps = stage.gaps(flow, flow[::-1])
        for sequence, (start, latency) in enumerate(zip(result.start.tolist(), result.latency.tolist(), strict=True), 1):
            yield _name(flow), sequence, None if latency < 0 else (start + latency) / qjump_sim.S, _us(latency, gaps)


def _iperf(plan: IperfPlan, stage: Stage) -> Apps:
    if plan.congestion_control is not None:
        raise UsageError(f"workloads.{plan.name}.congestion_control: the simulator has one for all hosts, its scheme's: leave it out")
    chance, network = stage.chance(plan.name), stage.trial.network
    interval = _interval(stage)
    found: Apps = []
    for source, destination in plan.flows:
        ends = stage.numbers[source], stage.numbers[destination]
        for _ in range(plan.streams):
            if plan.udp_rate_bps is None:
                window = None if plan.window_bytes is None else max(1, plan.window_bytes // (network.mtu_bytes - _TCP))
                # Another seed is another phase of TCP's sawtooth.
                start = chance.randrange(full_buffer(network))
                found.append(apps.Bulk(*ends, until=stage.until, interval=interval, start=start, level=_level(plan), window=window))
            else:
                gap = (network.mtu_bytes - _UDP) * 8 * theory.PS_PER_S // plan.udp_rate_bps
                first = chance.randrange(gap)
                count = max(1, (stage.until - first) // gap)
                found.append(apps.Datagrams(*ends, wire_bytes(network.mtu_bytes), gap, count, first, _level(plan)))
    return found


def _interval(stage: Stage) -> int:
    return max(1, (stage.ended - stage.began) // INTERVALS)


def _iperf_rows(plan: IperfPlan, stage: Stage, results: Sequence[apps.BulkResult | apps.DatagramsResult], outcome: qjump_sim.Outcome) -> Rows:
    """How often TCP sent again is not known of each stream, nor what its sender's socket took."""
    mtu, mine = stage.trial.network.mtu_bytes, iter(zip(_iperf(plan, stage), results, strict=True))
    for flow in plan.flows:
        for stream in range(plan.streams):
            app, result = next(mine)
            if isinstance(app, apps.Bulk) and isinstance(result, apps.BulkResult):
                got = np.diff(result.delivered, prepend=0) // stage.data_bytes * (mtu - _TCP)
                yield from _intervals(flow, "receiver", stream, app.start, app.interval, got)
            elif isinstance(result, apps.DatagramsResult):
                arrived = (result.start + result.latency)[result.latency >= 0]
                for side, times in (("sender", result.start), ("receiver", arrived)):
                    sent = np.bincount(times // _interval(stage)) * (mtu - _UDP)
                    yield from _intervals(flow, side, stream, 0, _interval(stage), sent)


def _intervals(flow: tuple[str, str], side: str, stream: int, start: int, interval: int, sizes: Any) -> Rows:
    for number, size in enumerate(sizes.tolist()):
        begins = start + number * interval
        yield _name(flow), side, stream, begins / qjump_sim.S, (begins + interval) / qjump_sim.S, size, None


def _fanin(plan: FaninPlan, stage: Stage) -> Apps:
    size, gap = wire_bytes(_UDP + plan.payload_bytes), plan.interval_ns * qjump_sim.NS
    count, chance = max(1, stage.trial.duration_ns // plan.interval_ns), stage.chance(plan.name)
    return [
        apps.Datagrams(stage.numbers[source], stage.numbers[destination], size, gap, count, stage.began + chance.randrange(gap), _level(plan))
        for source, destination in plan.flows
        for _ in range(plan.streams)
    ]


def _fanin_rows(plan: FaninPlan, stage: Stage, results: Sequence[apps.DatagramsResult], outcome: qjump_sim.Outcome) -> Rows:
    mine = iter(results)
    for flow in plan.flows:
        gaps = stage.gaps(flow)
        for stream in range(plan.streams):
            result = next(mine)
            for sequence, (start, latency) in enumerate(zip(result.start.tolist(), result.latency.tolist(), strict=True)):
                yield _name(flow), stream, sequence, start // qjump_sim.NS, start // qjump_sim.NS, _us(latency, gaps)


def _memcached(plan: MemcachedPlan, stage: Stage) -> Apps:
    """A closed loop is one client for each connection, which begins at a random instant of its time to think."""
    chance, mtu = stage.chance(plan.name), stage.trial.network.mtu_bytes
    get = BINARY_HEADER_BYTES + plan.key_bytes, BINARY_HEADER_BYTES + 4 + plan.value_bytes
    put = BINARY_HEADER_BYTES + 8 + plan.key_bytes + plan.value_bytes, BINARY_HEADER_BYTES
    weight = round(plan.get_fraction * MILLIONTHS)
    kinds = (*get, weight), (*put, MILLIONTHS - weight)
    exchanges = [apps.Exchange(segments_bytes(asked, mtu), segments_bytes(answered, mtu), share) for asked, answered, share in kinds]
    found: Apps = []
    for source, destination in plan.flows:
        common: dict[str, Any] = {"client": stage.numbers[source], "servers": [stage.numbers[destination]], "exchanges": exchanges}
        common |= {"level": _level(plan), "until": stage.ended}
        if plan.rate_per_s is not None:
            # Twice as many as there will be: `until` ends them.
            most = round(2 * plan.rate_per_s * stage.trial.duration_ns / theory.NS_PER_S) + 1000
            arrival = apps.Open(round(theory.PS_PER_S / plan.rate_per_s), poisson=True)
            found.append(apps.Requests(**common, arrival=arrival, count=most, first=stage.began))
            continue
        think = plan.think_ns * qjump_sim.NS
        most = stage.trial.duration_ns // plan.think_ns + 1
        found += [
            apps.Requests(**common, arrival=apps.Closed(1, think), count=most, first=stage.began + chance.randrange(think)) for _ in range(plan.connections)
        ]
    return found


def _memcached_rows(plan: MemcachedPlan, stage: Stage, results: Sequence[apps.RequestsResult], outcome: qjump_sim.Outcome) -> Rows:
    each = len(results) // len(plan.flows)
    for index, flow in enumerate(plan.flows):
        gaps, mine = stage.gaps(flow, flow[::-1]), results[index * each : (index + 1) * each]
        columns = (np.concatenate([getattr(result, name) for result in mine]) for name in ("start", "latency", "kind"))
        starts, latencies, kinds = columns
        order = np.argsort(starts, kind="stable")
        for start, latency, kind in zip(starts[order].tolist(), latencies[order].tolist(), kinds[order].tolist(), strict=True):
            yield _name(flow), memcached.OPERATIONS[kind], start // qjump_sim.NS, start // qjump_sim.NS, _us(latency, gaps)


def _barrier(plan: BarrierPlan, stage: Stage) -> Apps:
    """The next one is due an interval after the last host passed, not after this one was due."""
    hosts, pause = [stage.numbers[host] for host in plan.hosts], plan.interval_ns * qjump_sim.NS
    return [apps.Barrier(hosts, segments_bytes(MESSAGE_BYTES, stage.trial.network.mtu_bytes), plan.count, pause, stage.began, _level(plan))]


def _barrier_rows(plan: BarrierPlan, stage: Stage, results: Sequence[apps.BarrierResult], outcome: qjump_sim.Outcome) -> Rows:
    """One row a barrier: from when its first host came to when the last one had heard of all."""
    (result,) = results
    gaps = max(stage.gaps(flow) for flow in plan.flows)
    for iteration, (start, latency) in enumerate(zip(result.start.tolist(), result.latency.tolist(), strict=True)):
        if start < stage.ended:
            yield "all", iteration, start // qjump_sim.NS, start // qjump_sim.NS, _us(latency, gaps)


def _ptp(plan: PtpPlan, stage: Stage) -> Apps:
    slaves, interval = [stage.numbers[slave] for slave, _ in plan.flows], plan.interval_ns * qjump_sim.NS
    count = max(1, stage.trial.duration_ns // plan.interval_ns)
    return [apps.Ptp(stage.numbers[plan.master], slaves, wire_bytes(_UDP + EVENT_BYTES), interval, count, stage.began, _level(plan))]


def _ptp_rows(plan: PtpPlan, stage: Stage, results: Sequence[apps.PtpResult], outcome: qjump_sim.Outcome) -> Rows:
    """Two rows an exchange that was completed, Sync and Delay_Req; the offset is of this exchange alone, without a program's filters."""
    (result,) = results
    for start, slave, offset, delay in zip(*(getattr(result, name).tolist() for name in ("start", "slave", "offset", "delay")), strict=True):
        if delay >= 0:
            flow = plan.flows[slave]
            at, known = start // qjump_sim.NS, offset / qjump_sim.US
            yield _name(flow), at, known, _us(delay + offset, stage.gaps(flow)), None
            yield _name(flow), at, known, None, _us(delay - offset, stage.gaps(flow))


def _flow_rows(plan: FlowsPlan, stage: Stage, results: Sequence[Any], outcome: qjump_sim.Outcome) -> Rows:
    names = sorted(stage.numbers, key=lambda name: stage.numbers[name])
    columns = (column.tolist() for column in (outcome.start, outcome.finish, outcome.src, outcome.dst, outcome.packets))
    for start, finish, source, destination, packets in zip(*columns, strict=True):
        yield names[source], names[destination], packets, start, None if finish < 0 else finish


def _job(plan: MapReducePlan, stage: Stage) -> Apps:
    """On the hosts that are named, or all."""
    if plan.window_bytes is not None:
        raise UsageError(f"workloads.{plan.name}: the simulator's jobs have no windows of their own: use another scheme, or leave out window")
    job = apps.MapReduce(
        nodes=[stage.numbers[host] for host in plan.hosts] or range(len(stage.numbers)),
        maps=plan.maps,
        map_bytes=plan.map_bytes,
        reducers=plan.reducers,
        map_time=apps.Exponential(plan.map_mean_ns * qjump_sim.NS) if plan.map_mean_ns else 0,
        reduce_time=apps.Exponential(plan.reduce_mean_ns * qjump_sim.NS) if plan.reduce_mean_ns else 0,
        map_slots=plan.map_slots,
        parallel_copies=plan.parallel_copies,
        first=stage.began,
        level=_level(plan),
    )
    return [job]


def _job_rows(plan: MapReducePlan, stage: Stage, results: Sequence[apps.MapReduceResult], outcome: qjump_sim.Outcome) -> Rows:
    """One row; packets are those of the whole network, whoever sent them."""
    (job,) = results
    counted = outcome.counters
    shuffled = int(job.shuffled.max()) - job.first if (job.shuffled >= 0).all() else None
    lost = [sum(dropped) for dropped in zip(*(counted[fate] for fate in counters.DROPS), strict=True)]  # type: ignore[literal-required]
    dropped = qjump_sim.ByKind(*lost)
    packets = counted["latency"].packets + counted["latency_again"].packets
    latency = (counted["latency"].sum + counted["latency_again"].sum) / packets if packets else None
    sent, delivered = sum(counted["sent"]), counted["delivered"].data
    drops = (dropped.data, dropped.acks, dropped.syns + dropped.syn_acks)
    yield job.runtime, shuffled, job.throughput, sent, latency, *drops, delivered, counted["marked"], counted["timeouts"]


_PROGRAMS: dict[type[AnyPlan], Program] = {
    BarrierPlan: Program(_barrier, _barrier_rows),
    FaninPlan: Program(_fanin, _fanin_rows),
    # Not an application: the simulator has a list of flows, or draws them.
    FlowsPlan: Program(lambda plan, stage: [], _flow_rows),
    IperfPlan: Program(_iperf, _iperf_rows),
    MapReducePlan: Program(_job, _job_rows),
    MemcachedPlan: Program(_memcached, _memcached_rows),
    PingPlan: Program(_ping, _ping_rows),
    PtpPlan: Program(_ptp, _ptp_rows),
}
