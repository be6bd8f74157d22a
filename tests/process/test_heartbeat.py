"""A long step says now and then that it still goes on."""

from __future__ import annotations

import threading
import time

from qjump_mn.process.heartbeat import heartbeat


def test_silence_is_broken_by_the_last_line_and_its_time() -> None:
    lines: list[str] = []
    with heartbeat(lines.append, interval_s=0.1) as say:
        say("compiling the simulator")
        _until(lambda: len(lines) >= 3)
    count = len(lines)
    assert lines[0] == "compiling the simulator"
    assert all(
        line.startswith("compiling the simulator: ") and line.endswith(" s so far")
        for line in lines[1:]
    )
    time.sleep(0.25)
    assert len(lines) == count, "it goes on after the block"


def test_each_thread_that_goes_on_is_told_of_and_one_that_ended_is_not() -> None:
    lines: list[str] = []
    go_on = threading.Event()
    with heartbeat(lines.append, interval_s=0.1) as say:
        ended = threading.Thread(target=lambda: say("the image"))
        ended.start()
        ended.join()

        def long() -> None:
            say("the simulator")
            go_on.wait(20)

        other = threading.Thread(target=long)
        other.start()
        say("the snapshot")
        _until(lambda: any("; " in line for line in lines))
        go_on.set()
        other.join()
    repeated = next(line for line in lines if "; " in line)
    assert sorted(part.partition(":")[0] for part in repeated.split("; ")) == [
        "the simulator",
        "the snapshot",
    ]


def _until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
