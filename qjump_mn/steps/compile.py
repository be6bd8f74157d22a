"""A trial as steps: a pure function of the trial, the same for every backend that has a kernel."""

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
from qjump_mn.model.plan import Trial
from qjump_mn.programs import registry
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.launch import Launch
from qjump_mn.steps import readback
from qjump_mn.steps.treatment import known, treatment

BACKGROUND_OFFSET_S = 0.1
"""What disturbs starts at a random instant of this length at 10 Mb/s: another seed is another phase of TCP's
sawtooth."""

LATENESS_EVERY_S = 0.023
"""Between two wake-ups that watch a processor on which code takes time: often enough to meet any busy while
that lasts as long as a full buffer at 10 Mb/s (122 ms), and no multiple of the programs' own intervals, so
that it meets all their phases."""

MARGIN_S = 60.0
"""How much longer than planned a program may take."""

CLOCK = "/sys/module/time_travel/parameters"
"""Of the guest's kernel."""

LIBRARIES = "/usr/lib/qjump-mn"

SOCKET_STATES = {"tcp": "0A", "udp": "07"}
"""Of a socket that is bound and waits, as /proc/net/{tcp,udp} write them: TCP_LISTEN, and TCP_CLOSE for
UDP."""

Pairs = Sequence[tuple[WorkloadPlan, Launch]]


def trial_steps(trial: Trial) -> Steps:
    """Everything that a trial does on a network that is up: treat it, let its switches know the flows, read
    it back, start what serves, what disturbs and what measures, end all that, read the counters. The seed
    decides the instants at which programs start."""
    chance = random.Random(trial.seed)
    time_scale = trial.arm.time_scale
    offset_s = chance.uniform(0, BACKGROUND_OFFSET_S) / time_scale
    phase_s = chance.uniform(0, _phase_s(trial))
    pairs = [
        (workload, launch)
        for workload in trial.arm.workloads
        for launch in registry.of(workload).launches(workload, trial)
    ]
    return (
        *treatment(trial.arm, trial.seed),
        *known(trial.arm),
        *readback.built(trial.arm),
        *_clock(trial),
        *_serve(pairs),
        Sleep(after_s=round(offset_s, 9)),
        Mark(name=LOAD),
        *(_start(workload, launch) for workload, launch in pairs if launch.phase == "load"),
        # The warm-up is a length of time; a seed moves the start of what is measured, such as a ping's phase.
        Sleep(mark=LOAD, after_s=round(trial.warmup_ns / 1e9 + phase_s, 9)),
        *readback.counters(trial.network, "began"),
        Measure(every_s=LATENESS_EVERY_S if trial.arm.real_time else None),
        *_measure(trial, pairs),
        Measured(),
        *readback.counters(trial.network, "ended"),
        *_end([launch for _, launch in pairs if launch.phase != "probe"]),
        *readback.counters(trial.network, "after"),
    )


def _clock(trial: Trial) -> Iterator[Run]:
    """Let system calls and wake-ups take what is declared (kernel/0008-*.patch), from here on."""
    if clock := trial.arm.clock:
        # The seed is the last: with it the sequence begins.
        values = {"syscall_ns": clock.syscall_ns, "wake_ns": clock.wakeup_ns, "seed": trial.seed}
        lines = (f"echo {value} >{CLOCK}/{name}" for name, value in values.items())
        yield Run(argv=("sh", "-e", "-c", "\n".join(lines)))


def _phase_s(trial: Trial) -> float:
    return min((workload.phase_ns for workload in trial.arm.workloads if workload.phase_ns), default=0) / 1e9


def _serve(pairs: Pairs) -> Iterator[AnyStep]:
    """What serves is ready before anything else starts; one without a condition is ready when it has
    ended."""
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
    """What gives a program its level and, if asked, its window (native/app-util), and another library of
    ours."""
    before = ("env", f"LD_PRELOAD={LIBRARIES}/{launch.preload}") if launch.preload else ()
    window = ("-w", str(workload.window_bytes)) if workload.window_bytes is not None else ()
    # Of programs that are known the library marks all, and costs their hosts less than the kernel's way.
    by = "--cgroup" if launch.unknown else "--library"
    return (*before, "qjau", "-p", str(workload.level), *window, by, "--")


def _ready(launch: Launch) -> Wait | None:
    """The condition that makes a program ready; None for one that is ready when it has ended."""
    # A program's sockets are on its host, its output lies here.
    node = MACHINE
    argv: tuple[str, ...] = ("grep", "-qsF", "-e", str(launch.says), launch.output, f"{launch.output}.stderr")
    if launch.listens:
        protocol, port = launch.listens
        socket = f"^ *[0-9]+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 {SOCKET_STATES[protocol]} "
        node, argv = launch.host, ("grep", "-qsE", socket, f"/proc/net/{protocol}", f"/proc/net/{protocol}6")
        lacks = f"does not listen on {protocol} port {port}"
    elif launch.says:
        lacks = f"has not said {launch.says!r}"
    elif launch.exists:
        argv, lacks = ("test", "-e", launch.exists), f"has not made the file {launch.exists}"
    else:
        return None
    shown = f"{launch.shown} {lacks}"
    return Wait(argv=argv, node=node, program=launch.output, lacks=shown, deadline_s=launch.ready_s)


def _measure(trial: Trial, pairs: Pairs) -> Iterator[AnyStep]:
    """What measures, to its end; where nothing does, the trial's duration."""
    probes = [(workload, launch) for workload, launch in pairs if launch.phase == "probe"]
    yield from (_start(workload, launch) for workload, launch in probes)
    yield from (Finish(program=launch.output, deadline_s=launch.longest_s + MARGIN_S) for _, launch in probes)
    if not probes:
        yield Sleep(mark=MEASUREMENT, after_s=trial.duration_ns / 1e9)


def _end(background: Sequence[Launch]) -> Iterator[AnyStep]:
    """What disturbs until it is ended is ended; what ends by itself does; then what serves is ended, after
    what is under way has arrived."""
    endless = [launch for launch in background if not launch.itself]
    yield from (_stop(launch) for launch in endless if launch.phase == "load")
    for launch in background:
        # What serves and has no condition has ended before anything else was started.
        if launch.itself and (launch.phase == "load" or _ready(launch)):
            yield Finish(program=launch.output, deadline_s=launch.longest_s + MARGIN_S)
    if linger_s := max((launch.linger_s for launch in background), default=0.0):
        yield Sleep(after_s=linger_s)
    yield from (_stop(launch) for launch in endless if launch.phase == "serve")


def _stop(launch: Launch) -> Stop:
    return Stop(program=launch.output, deadline_s=MARGIN_S)
