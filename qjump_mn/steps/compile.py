"""Compile a trial into steps: a pure function, shared by all backends that run on a kernel."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from qjump_mn.executor.steps import (
    LOAD,
    MACHINE,
    MEASUREMENT,
    AnyStep,
    Finish,
    Mark,
    Measure,
    Measured,
    Run,
    Sleep,
    Start,
    Steps,
    Stop,
    Wait,
)
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.launch import Launch
from qjump_mn.steps import frames, queues, readback, traces
from qjump_mn.steps.apply_arm import apply_arm, introduce_flows

BACKGROUND_OFFSET_S = 0.1
"""At 10 Mb/s, background traffic starts at a random instant within this time.

So each seed meets another phase of TCP's sawtooth.
"""

LATENESS_EVERY_S = 0.023
"""Interval of the wake-ups that measure how late programs get the processor, where code takes time.

It is short enough to meet any busy period that lasts as long as a full buffer at 10 Mb/s (122 ms).
It is not a multiple of the programs' own intervals, so it meets all their phases.
"""

MARGIN_S = 60.0
"""How much longer than planned a program may take."""

CLOCK = "/sys/module/time_travel/parameters"
"""Parameters of the guest kernel's clock."""

LIBRARIES = "/usr/lib/qjump-mn"

SOCKET_STATES = {"tcp": "0A", "udp": "07"}
"""State of a socket that is ready, as in /proc/net/{tcp,udp}: TCP_LISTEN, and TCP_CLOSE for UDP."""

Pairs = Sequence[tuple[WorkloadPlan, Launch]]


def trial_steps(trial: Trial) -> Steps:
    """Return all steps of a trial, for a network that is up.

    They apply the arm, introduce its flows to the switches and read the network back; start
    servers, background load and probes; end them; and read the counters. The seed decides when
    programs start.
    """
    rng = random.Random(trial.seed)
    time_scale = trial.arm.time_scale
    offset_s = rng.uniform(0, BACKGROUND_OFFSET_S) / time_scale
    phase_s = rng.uniform(0, _phase_s(trial))
    pairs = [
        (workload, launch)
        for workload in trial.arm.workloads
        for launch in registry.of(workload).launches(workload, trial)
    ]
    return (
        *apply_arm(trial.arm, trial.seed),
        *traces.follow(trial.arm.network),
        *introduce_flows(trial.arm),
        *readback.built(trial.arm),
        *_clock(trial),
        *_serve(pairs),
        Sleep(after_s=round(offset_s, 9)),
        Mark(name=LOAD),
        *(_start(workload, launch) for workload, launch in pairs if launch.phase == "load"),
        # The warm-up has a fixed length; the seed shifts the probes, such as a ping's phase.
        Sleep(mark=LOAD, after_s=round(trial.warmup_ns / 1e9 + phase_s, 9)),
        *readback.counters(trial.arm, "began"),
        *queues.record(trial),
        Measure(every_s=LATENESS_EVERY_S if trial.arm.real_time else None),
        *_measure(trial, pairs),
        Measured(),
        *readback.counters(trial.arm, "ended"),
        *queues.keep(trial),
        *_end([launch for _, launch in pairs if launch.phase != "probe"]),
        *traces.stop(trial.arm.network),
        *readback.counters(trial.arm, "after"),
        *frames.keep(trial),
    )


def _clock(trial: Trial) -> Iterator[Run]:
    """From here on, system calls and wake-ups take their declared time (kernel/0008-*.patch)."""
    if clock := trial.arm.clock:
        # The seed comes last: writing it starts the random sequence.
        values = {"syscall_ns": clock.syscall_ns, "wake_ns": clock.wakeup_ns, "seed": trial.seed}
        lines = (f"echo {value} >{CLOCK}/{name}" for name, value in values.items())
        yield Run(argv=("sh", "-e", "-c", "\n".join(lines)))


def _phase_s(trial: Trial) -> float:
    return (
        min(
            (
                hooks.phase_ns(workload)
                for workload in trial.arm.workloads
                if hooks.phase_ns(workload)
            ),
            default=0,
        )
        / 1e9
    )


def _serve(pairs: Pairs) -> Iterator[AnyStep]:
    """Start each server and wait until it is ready: without a condition, until it ends."""
    for workload, launch in pairs:
        if launch.phase == "serve":
            yield _start(workload, launch)
            yield _ready(launch) or Finish(
                program=launch.output, deadline_s=launch.longest_s + launch.ready_s
            )


def _start(workload: WorkloadPlan, launch: Launch) -> Start:
    return Start(
        node=launch.host,
        argv=(*wrapper(workload, launch), *launch.argv),
        output=launch.output,
        shown=launch.shown,
        itself=launch.itself,
        good=launch.good,
    )


def wrapper(workload: WorkloadPlan, launch: Launch) -> tuple[str, ...]:
    """Return the words that go before a program: they set its level, window and preloaded library.

    ``qjau`` (native/app-util) sets level and window.
    """
    preload = ("env", f"LD_PRELOAD={LIBRARIES}/{launch.preload}") if launch.preload else ()
    window = ("-w", str(workload.window_bytes)) if workload.window_bytes is not None else ()
    # qjau's library marks all packets of the programs that we know, at less cost than a cgroup.
    method = "--cgroup" if launch.unknown else "--library"
    return (*preload, "qjau", "-p", str(workload.level), *window, method, "--")


def _ready(launch: Launch) -> Wait | None:
    """Return the wait for a program to be ready; None if it is ready when it has ended."""
    # A program's sockets are in its host's namespace, but its output is a file of the machine.
    node = MACHINE
    output = (launch.output, f"{launch.output}.stderr")
    argv: tuple[str, ...] = ("grep", "-qsF", "-e", str(launch.says), *output)
    if launch.listens:
        protocol, port = launch.listens
        socket = f"^ *[0-9]+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 {SOCKET_STATES[protocol]} "
        tables = (f"/proc/net/{protocol}", f"/proc/net/{protocol}6")
        node, argv = launch.host, ("grep", "-qsE", socket, *tables)
        lacks = f"does not listen on {protocol} port {port}"
    elif launch.says:
        lacks = f"has not printed {launch.says!r}"
    elif launch.exists:
        argv, lacks = ("test", "-e", launch.exists), f"has not created the file {launch.exists}"
    else:
        return None
    shown = f"{launch.shown} {lacks}"
    return Wait(argv=argv, node=node, program=launch.output, lacks=shown, deadline_s=launch.ready_s)


def _measure(trial: Trial, pairs: Pairs) -> Iterator[AnyStep]:
    """Run the probes to their end; without probes, wait for the trial's duration."""
    probes = [(workload, launch) for workload, launch in pairs if launch.phase == "probe"]
    yield from (_start(workload, launch) for workload, launch in probes)
    yield from (
        Finish(program=launch.output, deadline_s=launch.longest_s + MARGIN_S)
        for _, launch in probes
    )
    if not probes:
        yield Sleep(mark=MEASUREMENT, after_s=trial.duration_ns / 1e9)


def _end(background: Sequence[Launch]) -> Iterator[AnyStep]:
    """Stop the endless load, wait for programs that end by themselves, then stop the servers.

    Servers stop last, after packets in flight have arrived.
    """
    endless = [launch for launch in background if not launch.itself]
    yield from (_stop(launch) for launch in endless if launch.phase == "load")
    for launch in background:
        # A server without a condition ended before anything else was started.
        if launch.itself and (launch.phase == "load" or _ready(launch)):
            yield Finish(program=launch.output, deadline_s=launch.longest_s + MARGIN_S)
    if linger_s := max((launch.linger_s for launch in background), default=0.0):
        yield Sleep(after_s=linger_s)
    yield from (_stop(launch) for launch in endless if launch.phase == "serve")


def _stop(launch: Launch) -> Stop:
    return Stop(program=launch.output, deadline_s=MARGIN_S)
