"""A run that would never end: signals end it, and it keeps no other thread waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from qjump_sim import FIG9, US, Flows, Scenario, Source, run

# 2 * 10^12 datagrams: a day and more.
ENDLESS = Scenario(FIG9, "tcp", Flows([], [], [], []), sources=[Source(0, 1, gap=2 * US, bytes=1500, count=2 * 10**12)])


class Interrupted(Exception):
    pass


@contextmanager
def handled(number: signal.Signals, handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_ctrl_c_ends_a_run() -> None:
    def send() -> None:  # if the run kept the interpreter to itself, this would wait for ever
        os.kill(os.getpid(), signal.SIGINT)

    with handled(signal.SIGINT, signal.default_int_handler):
        timer = threading.Timer(0.3, send)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run(ENDLESS)
        timer.join()


def test_a_handler_that_returns_lets_the_run_go_on() -> None:
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) == 3:
            raise Interrupted

    with handled(signal.SIGALRM, handle):
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        try:
            with pytest.raises(Interrupted):
                run(ENDLESS)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen == [signal.SIGALRM] * 3


def test_looks_for_signals_do_not_touch_the_outcome() -> None:
    # A stop after several looks: the same counts as the closed form of a periodic source.
    stop = 10**6 * 2 * US
    outcome = run(Scenario(FIG9, "tcp", ENDLESS.flows, ENDLESS.sources, stop=stop))
    assert outcome.counters["events"] > 2**20
    assert outcome.counters["sent"].datagrams == 10**6 + 1
    assert outcome.counters["in_flight"] == 10**6 + 1 - outcome.sources[0].delivered
    assert (outcome.sources[0].delay_max, outcome.end) == (7_800_000, stop)


LAW = """
class Own(Law):
    def on_ack(self, ack):
        {body}"""
RUN = """run(Scenario(FIG9, replace(Scheme.named("tcp", FIG9), transport=Transport.linux(Custom(Own))), Flows([0], [0], [1], [9])))"""

# What a process does when the signal comes: its preparation, and the work that takes seconds.
STATES = {
    "flows are drawn": ("", 'run(Scenario(FIG9, "dctcp", Poisson("search", 0.6, 20_000_000)))'),
    "published flows are drawn": ("", 'run(Scenario(FIG9, "dctcp", Published("search", 0.6, 5_000_000)))'),
    "a network is made": ("", "[Graph.fat_tree(128, CABLE, CABLE) for _ in range(20)]"),
    "a network is read": ("graph = Graph.fat_tree(64, CABLE, CABLE)", "[graph.numbers() for _ in range(50)]"),
    "routes are computed": ("graph = Graph.fat_tree(96, CABLE, CABLE)", 'run(Scenario(graph, "dctcp", Flows([0], [0], [1], [1])))'),
    "events happen": ("", 'run(Scenario(FIG9, "dctcp", Poisson("search", 0.6, 200_000)))'),
    "parts run": ("", 'run(Scenario(FIG9, "dctcp", Poisson("search", 0.6, 200_000), parts=3))'),
    "samples are taken": ("", 'run(Scenario(FIG9, "dctcp", Poisson("search", 0.6, 50_000)), watch=Watch(every_ps=1, most=300_000))'),
    "a trace is kept": ("", 'run(Scenario(FIG9, "dctcp", Poisson("search", 0.6, 200_000)), watch=Watch(flows=True, trace=[1]))'),
    "ports become objects": (
        "fabric = LeafSpine(512, 1024, 2, FIG9.edge, FIG9.uplink)",
        '[run(Scenario(fabric, "dctcp", Flows([0], [0], [1], [1])), ports=True) for _ in range(50)]',
    ),
    "flows become columns": (
        "ones = np.ones(2_000_000, np.int64); flows = Flows(ones, 0 * ones, ones, ones)",
        '[run(Scenario(FIG9, "dctcp", flows, stop=0)) for _ in range(100)]',
    ),
    "a law never returns": (LAW.format(body="while True: pass"), RUN),
    "a law catches exceptions": (
        LAW.format(body="""while True:
            try: time.sleep(0.001)
            except Exception: pass"""),
        RUN,
    ),
    "a law is never made": ("def make():\n    while True: pass", RUN.replace("Own", "make")),
    "JSON is written": (
        "ones = np.ones(500_000, np.int64); outcome = run(Scenario(FIG9, 'dctcp', Flows(ones, 0 * ones, ones, ones), stop=0))",
        "[outcome.to_json() for _ in range(100)]",
    ),
}
CHILD = """
import signal
import time
from dataclasses import replace
import numpy as np
from qjump_sim import *
CABLE = Cable(10**10, 2 * US)
# Whoever starts this in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
{preparation}
print("ready", flush=True)
try:
    {work}
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("state", STATES)
def test_a_signal_ends_a_process_within_a_second(state: str) -> None:
    preparation, work = STATES[state]
    code = CHILD.format(preparation=preparation, work=work)
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        time.sleep(0.8)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        raised = child.stdout.read()
    assert child.returncode == 0, raised
    assert raised and float(raised) - sent < 1
