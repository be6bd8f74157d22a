"""Steps that let the rates of links follow traces: a program opens their gates."""

from __future__ import annotations

import json
from collections.abc import Iterator

from qjump_mn.executor.steps import MACHINE, AnyStep, Run, Start, Stop
from qjump_mn.links import commands
from qjump_mn.links.base import PARENT
from qjump_mn.model.link import Link
from qjump_mn.model.topology import Network

FILE = "/tmp/qjump-mn-traces"
OUTPUT = "traces"

OPENS = """
import json, os, subprocess, sys, time
with open(sys.argv[1]) as file:
    ports = json.load(file)
tc = subprocess.Popen(["tc", "-batch", "-"], stdin=subprocess.PIPE, text=True)
# A timer of this kind is exact: a sleep may be late by its slack.
timer, start_ns, ms = os.timerfd_create(time.CLOCK_MONOTONIC), time.monotonic_ns(), 0
while True:
    ms += 1
    lines = [lines[str(count)] for trace, lines in ports if (count := trace[ms % len(trace)])]
    if lines:
        at_ns = start_ns + ms * 1_000_000
        os.timerfd_settime_ns(timer, flags=os.TFD_TIMER_ABSTIME, initial=at_ns)
        os.read(timer, 8)
        tc.stdin.writelines(lines)
        tc.stdin.flush()
"""
"""Needs Python 3.13. tc carries lines out as they come."""


def of(link: Link) -> tuple[int, ...]:
    """Return the trace that a link end follows; empty if none."""
    return link.impairment.trace if link.impairment else ()


def follow(network: Network) -> Iterator[AnyStep]:
    """Yield steps that start the traces of all switch ports."""
    links = network.by_device()
    ports = [
        (of(links[device]), _lines(device, links[device]))
        for device in network.switch_ports()
        if of(links[device])
    ]
    if not ports:
        return
    undo = Run(argv=("rm", FILE))
    yield Run(argv=("sh", "-c", f"cat >{FILE}"), stdin=json.dumps(ports), undo=undo)
    yield Start(
        argv=("python3", "-c", OPENS, FILE),
        node=MACHINE,
        output=OUTPUT,
        shown="the program that follows traces",
        itself=False,
    )


def stop(network: Network) -> Iterator[AnyStep]:
    """Yield the step that ends what :func:`follow` started."""
    if any(impairment.trace for _, impairment in network.impaired):
        yield Stop(program=OUTPUT, deadline_s=5.0)


def _lines(device: str, link: Link) -> dict[str, str]:
    """Return the input for tc for each number of frames that a port may send at once."""
    return {
        str(count): "".join(
            f"{line}\n"
            for line in commands.opportunity(
                device, PARENT, count, link.buffer_bytes, link.mtu_bytes
            )
        )
        for count in sorted({*of(link)} - {0})
    }
