"""A run that would never end: signals end it, and it keeps no other thread waiting."""

from __future__ import annotations

import os
import signal
import threading
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
