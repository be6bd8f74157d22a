"""Translate an arm's scheme to a scheme of the simulator, with the changes of its file and
limiter."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import qjump_sim
from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.scheme import Law, Setting, Simulated
from qjump_mn.model.topology import Link
from qjump_mn.programs.simulated_api import wire_bytes
from qjump_mn.simulation.setting_values import Settings, changed, made, parse_time, wrong

_QUEUES: dict[str, type[Any]] = {**qjump_sim.QUEUES, "linux-red": qjump_sim.Red}
_PAUSES: dict[str, type[Any]] = {"pause": qjump_sim.Pause, "pfc": qjump_sim.Pfc}
_LAWS: dict[str, Any] = dict(qjump_sim.LAWS)
_CUSTOM = "custom"
"""The law of a file in WebAssembly, which the transport's ``law`` names."""
_TRANSPORTS: dict[str, Any] = {
    "linux": qjump_sim.Transport.linux,
    "hadoop": qjump_sim.Transport.hadoop,
}
_KIND = "kind"
_LINUX = "linux"
"""With this ``like``, hosts and switches behave as in the emulation."""
_CONNECTIONS = 4095
"""The connections that each pair of hosts keeps open, as the emulation's programs connect in
advance.
"""
_G = "g_shift"
_HOST_BYTES = 2**30
"""The size of a host's own priority queue: more than all windows together, because Linux's TCP does
not send what this queue would drop.
"""
_NS2_MEAN_BYTES = 500
"""ns-2's default packet size, for which it computes automatic thresholds."""


def scheme(arm: ArmPlan, topology: qjump_sim.network.Topology) -> qjump_sim.Scheme:
    """Return the scheme of an arm. Raise :class:`UsageError`, with the location, for settings that
    the simulator does not have.
    """
    where = f"scheme {arm.scheme.name!r}: simulator"
    spec, network = arm.scheme.simulator, arm.network
    if spec is None:
        raise UsageError(
            f"{where}: the scheme's file has no table [simulator]: add one, such as  like = "
            "'linux', or use --backend guest"
        )
    _check_transport(arm, where)
    if arm.network.link.switch_ns:
        raise UsageError(
            "link.switch_time: the simulator's switches take no time: leave it out, or use "
            "--backend guest"
        )
    if network.impaired:
        raise UsageError(
            "link.loss, link.jitter, link.reorder and link.trace: the simulator's links have none "
            "of them: leave them out, or use --backend guest"
        )
    if arm.clock:
        raise UsageError(
            "clock: the simulator runs no programs, so that no system call and no wake-up takes "
            "time: leave the table out (link.host_time and link.host_jitter do apply), or use "
            "--backend guest"
        )
    try:
        made = (
            _linux(arm, topology)
            if spec.like == _LINUX
            else qjump_sim.Scheme.named(spec.like, topology)
        )
    except ValueError as error:
        raise UsageError(f"{where}.like: {error} and {_LINUX}") from None
    queue = _queue(f"{where}.queue", spec.queue, made.queue, network.link)
    trunk_queue = _queue(
        f"{where}.queue", spec.queue, made.trunk_queue or made.queue, network.trunk
    )
    made = dataclasses.replace(
        made,
        queue=queue,
        trunk_queue=None if trunk_queue == queue else trunk_queue,
        host_queue=_queue(f"{where}.host_queue", spec.host_queue, made.host_queue, network.link),
        pause=_pause(f"{where}.pause", spec.pause, network.link) if spec.pause else made.pause,
        transport=_transport(
            f"{where}.transport", spec.transport, made.transport, network.link, arm.scheme.law
        ),
        shared_buffer=_shared_buffer(where, spec, network.link) or made.shared_buffer,
        routing=_routing(where, spec) or made.routing,
    )
    if arm.qjump is None:
        return made
    _check_packets(where, arm, arm.qjump, made.transport.data_bytes)
    return dataclasses.replace(made, limiter=_limiter(where, arm.qjump))


def _routing(where: str, spec: Simulated) -> Any:
    """Return how packets choose among equal paths; None if the scheme does not say."""
    if spec.flowlet_gap is None:
        return spec.routing
    if spec.routing is not None:
        raise UsageError(f"{where}.flowlet_gap: routing has another rule: leave one of them out")
    return qjump_sim.Flowlets(parse_time(f"{where}.flowlet_gap", spec.flowlet_gap))


def _shared_buffer(where: str, spec: Simulated, link: Link) -> Any:
    """Return the buffer that ports share; None if the scheme does not say."""
    settings = spec.shared_buffer
    place = f"{where}.shared_buffer"
    return made(place, qjump_sim.SharedBuffer, settings, link) if settings else None


def _check_transport(arm: ArmPlan, where: str) -> None:
    """Raise :class:`UsageError` if the scheme's TCP differs from the simulator's for this
    scheme."""
    spec, scheme = arm.scheme.simulator, arm.scheme
    if spec is None or spec.like != _LINUX or "congestion" in spec.transport:
        return
    others = {
        "congestion_control": scheme.congestion_control not in (None, "cubic")
        and scheme.congestion_control,
        "ecn": scheme.ecn,
    }
    for name, value in others.items():
        if value:
            raise UsageError(
                f"{where}: the scheme sets {name}, but like = 'linux' is CUBIC without ECN: choose "
                "a law in simulator.transport.congestion"
            )


def _linux(arm: ArmPlan, topology: qjump_sim.network.Topology) -> qjump_sim.Scheme:
    """Return the emulation's scheme: Linux's TCP, one path for each flow, and the topology's
    buffers at every port. Queues are drop-tail, strict priority if the arm uses levels, or
    unlimited if links are paused.

    A host's own queue drops nothing. Sizes are wire bytes. All levels share a port's buffer, and
    ACKs are served first (simulator/README.md).
    """
    network = arm.network
    full = wire_bytes(network.mtu_bytes)
    ack = wire_bytes(theory.TCP_HEADERS_BYTES)
    transport = qjump_sim.Transport.linux(qjump_sim.Cubic())
    transport = dataclasses.replace(
        transport, data_bytes=full, ack_bytes=ack, connections=_CONNECTIONS, handshake=None
    )
    buffers = (
        link.buffer_bytes // theory.frame_bytes(network.mtu_bytes) * full
        for link in (network.link, network.trunk)
    )
    queue, trunk_queue = (
        qjump_sim.Priority(buffer) if arm.uses_levels else qjump_sim.DropTail(bytes=buffer)
        for buffer in buffers
    )
    own = qjump_sim.Priority(_HOST_BYTES) if arm.uses_levels else qjump_sim.DropTail()
    pause = None
    if network.link.pfc:
        raise UsageError(
            f"scheme {arm.scheme.name!r}: with like = 'linux' the simulator pauses whole links, "
            "not levels: leave pfc out, or use --backend guest"
        )
    if network.link.xoff_bytes:
        room = max(
            qjump_sim.Pause.headroom(cable(link), full) for link in (network.link, network.trunk)
        )
        pause = qjump_sim.Pause(
            network.link.xoff_bytes, network.link.xon_bytes, network.link.xoff_bytes + room
        )
        queue = trunk_queue = qjump_sim.DropTail()
    base = qjump_sim.Scheme.named("tcp", topology)
    base = dataclasses.replace(base, routing="per-flow", transport=transport, limiter=None)
    return dataclasses.replace(
        base, queue=queue, trunk_queue=trunk_queue, host_queue=own, pause=pause
    )


def cable(link: Link) -> qjump_sim.Cable:
    """Return a link as the simulator's type; its delay includes the host time for each frame."""
    return qjump_sim.Cable(rate=link.rate_bps, delay=(link.delay_ns + link.host_ns) * qjump_sim.NS)


def quantiles(points: tuple[tuple[float, int], ...]) -> qjump_sim.Quantiles:
    """Return (per cent, ns) points as the simulator's type."""
    return qjump_sim.Quantiles([(percent, ns * qjump_sim.NS) for percent, ns in points])


def _check_packets(where: str, arm: ArmPlan, limiter: QJumpPlan, data_bytes: int) -> None:
    """Raise :class:`UsageError` if a level's budget is less than a full packet of a workload."""
    for workload in arm.workloads:
        for level in hooks.levels(workload):
            budget = limiter.budget_bytes[level]
            if (
                hooks.sends(workload)
                and not hooks.packet_bytes(workload)
                and 0 < budget < data_bytes
            ):
                raise UsageError(
                    f"{where}: level {level}'s budget of {budget} B is less than a full packet of "
                    f"{workload.name}, {data_bytes} B, and the simulator sends no smaller ones: "
                    "raise the factor or budget_packet"
                )


def _limiter(where: str, limiter: QJumpPlan) -> qjump_sim.PerHost:
    """Return the arm's limiter with the rules of the kernel modules. The simulator's most urgent
    level is 0, that of 802.1Q is 7. In mode "drop" the bytes that sch_qjump2015 does not count are
    free here, too.
    """
    if limiter.mode not in ("delay", "drop"):
        raise UsageError(
            f"{where}: its limiter has the modes 'delay' and 'drop', not {limiter.mode!r}"
        )
    counted = limiter.overhead, limiter.mpu
    if limiter.mode == "delay" and counted != (theory.TAG_TO_GAP_BYTES, theory.LEAST_WIRE_BYTES):
        raise UsageError(
            f"{where}: it always charges a frame's bytes on the wire: leave overhead and mpu out"
        )
    return qjump_sim.PerHost(
        epoch=(limiter.epoch_ns + limiter.slack_ns) * qjump_sim.NS,
        budgets=[limiter.budget_bytes[level] or None for level in reversed(theory.LEVELS)],
        mode=limiter.mode,
        epochs=limiter.epochs,
        limit=limiter.limit_packets,
        uncounted=theory.TAG_TO_GAP_BYTES if limiter.mode == "drop" else 0,
    )


def _queue(where: str, spec: Settings, base: Any, link: Link) -> Any:
    settings: dict[str, Any] = dict(spec)
    kind = settings.pop(_KIND, None)
    if kind is None:
        return changed(where, base, settings, link)
    if str(kind) not in _QUEUES:
        raise UsageError(
            f"{where}.kind: there is no queue {kind!r}: known are {', '.join(_QUEUES)}"
        )
    if kind == "linux-red":
        # As `tc qdisc add ... red ... ecn`, whose thresholds have no defaults.
        settings = {"gentle": False, "reading": "linux", "mark_p": None, **settings}
    if kind == "red" and "target" in settings:
        mean = settings.get("mean_packet", _NS2_MEAN_BYTES)
        if not isinstance(mean, int):
            raise wrong(f"{where}.mean_packet", mean, (int,))
        settings |= _automatic(parse_time(f"{where}.target", settings.pop("target")), mean)
    if "weights" in settings:
        settings["weights"] = _weights(f"{where}.weights", settings["weights"])
    if "entries" in settings:
        settings["entries"] = _entries(f"{where}.entries", settings["entries"])
    return made(where, _QUEUES[str(kind)], settings, link)


def _weights(where: str, weights: Any) -> Any:
    """Return weights in the simulator's order, the most urgent level first, from the order of
    802.1Q.
    """
    if not isinstance(weights, list) or len(weights) != len(theory.LEVELS):
        raise UsageError(
            f"{where}: needs {len(theory.LEVELS)} numbers, one for each level from 0 to 7 (got "
            f"{weights!r})"
        )
    return weights[::-1]


def _entries(where: str, texts: Any) -> Any:
    """Parse a gate list of texts such as "20us 7" and "80us 0-6": a time, and the 802.1Q levels
    whose gates are open.
    """
    entries = []
    for index, text in enumerate(texts if isinstance(texts, list) else [texts]):
        match = re.fullmatch(r"(\S+) ([0-7])(?:-([0-7]))?", str(text))
        if not match:
            raise UsageError(
                f"{where}[{index}]: needs a time and levels, such as '80us 0-6' (got {text!r})"
            )
        duration, first, last = match.groups()
        open_levels = range(int(first), int(last or first) + 1)
        simulated_levels = [theory.LEVELS[-1] - level for level in open_levels]
        entries.append((parse_time(f"{where}[{index}]", duration), simulated_levels))
    return entries


def _pause(where: str, spec: Settings, link: Link) -> Any:
    settings = dict(spec)
    kind = settings.pop(_KIND, "pause")
    if str(kind) not in _PAUSES:
        raise UsageError(
            f"{where}.kind: there is no kind of pause {kind!r}: known are {', '.join(_PAUSES)}"
        )
    return made(where, _PAUSES[str(kind)], settings, link)


def _automatic(target_ps: int, mean_packet: int) -> Settings:
    """Return RED's thresholds for a target delay like ns-2: half of the target, and three times
    that, in packets of 500 bytes.
    """
    least = target_ps // 2 * mean_packet // _NS2_MEAN_BYTES
    return {"min": f"{least // qjump_sim.NS}ns", "max": f"{3 * least // qjump_sim.NS}ns"}


def _transport(
    where: str, spec: Settings, base: qjump_sim.Transport, link: Link, law: Law | None
) -> Any:
    settings = dict(spec)
    kind = settings.pop(_KIND, None)
    control = _control(where, settings, base.congestion, law)
    if _G in settings:
        shift = settings.pop(_G)
        if not isinstance(control, qjump_sim.Dctcp) or not isinstance(shift, int):
            raise UsageError(
                f"{where}.{_G}: needs congestion 'dctcp' and a whole number, for g = 2^-{_G} (got "
                f"{shift!r})"
            )
        control = dataclasses.replace(control, shift=shift)
    names = {field.name for field in dataclasses.fields(control)} & settings.keys()
    control = changed(where, control, {name: settings.pop(name) for name in names}, link)
    if kind is None:
        return dataclasses.replace(changed(where, base, settings, link), congestion=control)
    if str(kind) not in _TRANSPORTS:
        raise UsageError(
            f"{where}.kind: there is no transport {kind!r}: known are {', '.join(_TRANSPORTS)}"
        )
    return changed(where, _TRANSPORTS[str(kind)](control), settings, link)


def _control(
    where: str, settings: dict[str, Setting], base: qjump_sim.Congestion, law: Law | None
) -> Any:
    """Return the law of congestion control; take what names it from ``settings``."""
    congestion, file = settings.pop("congestion", None), settings.pop("law", None)
    if (congestion == _CUSTOM) != (law is not None and file == law.file):
        raise UsageError(
            f"{where}.law: a law in WebAssembly needs congestion = {_CUSTOM!r} and its file: law = "
            "'mine.wasm'"
        )
    if congestion is None:
        return base
    if str(congestion) not in _LAWS:
        raise UsageError(
            f"{where}.congestion: there is no law {congestion!r}: known are {', '.join(_LAWS)}"
        )
    if law is None:
        return _LAWS[str(congestion)]()
    try:
        control = qjump_sim.Custom(law.content)
        qjump_sim.Transport.linux(control)
    except ValueError as error:
        problem = str(error).removeprefix("congestion.law: ")
        raise UsageError(f"{where}.law: {law.file}: {problem}") from None
    return control
