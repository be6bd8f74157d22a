"""Runs that need more memory than there is: each is refused in a sentence, and none aborts.

The limit is that of the address space, as `ulimit -v` sets it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import qjump_sim

LIMIT = 2_500_000_000
CHILD = """
import resource
from dataclasses import replace
from qjump_sim import *
from qjump_sim.apps import Bulk
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
search = Scenario(FIG9, "dctcp", Poisson("search", 0.6, 1_000))
try:
    {work}
except ValueError as error:
    print(error)
"""


def said(work: str) -> str:
    """The sentence with which a process refuses the work."""
    code = CHILD.format(limit=LIMIT, work=work)
    package = str(Path(qjump_sim.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": package})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_samples_are_counted_beforehand() -> None:
    sentence = said("run(replace(search, stop=ms(10)), watch=Watch(every_ps=1))")
    # 288 ports to and from hosts and 72 between switches, each with a count of bytes; a time and four totals.
    each = 8 * (2 * 144 + 2 * 9 * 4) + 5 * 8
    assert sentence.startswith(f"watch.every_ps: 10000000001 samples until 10 ms would take {each * 10**10 // 10**12} TB, and this ")
    match = re.search(r"has room for (\d+): set every_ps to (\d+) or more, an earlier until, or most to (\d+) or less$", sentence)
    assert match, sentence
    room, step, most = map(int, match.groups())
    assert most == room and 0 < each * room < LIMIT
    # The finest step of two digits that fits.
    assert 10**10 // step + 1 <= room < 10**10 // (step - 10 ** (len(str(step)) - 2)) + 2


@pytest.mark.parametrize("bound", ["every_ps=us(1)", "every_ps=1, most=100", "every_ps=1, until=100"])
def test_samples_that_fit_are_taken(bound: str) -> None:
    work = f"print(len(run(replace(search, stop=ms(10)), watch=Watch({bound})).series.at))"
    assert 50 <= int(said(work)) <= 10_001


@pytest.mark.parametrize(
    ("work", "begin", "end"),
    [
        # Flows of a list and datagrams at constant gaps say how long a run lasts at least.
        ("run(search, watch=Watch(every_ps=1))", r"watch.every_ps: \d+ samples until \d+ ps would take \d+ TB, ", " or less"),
        (
            "run(Scenario(FIG9, 'tcp', sources=[Source(0, 1, gap=us(2), bytes=1500, count=10**9)]), watch=Watch(every_ps=1))",
            r"watch.every_ps: 1999999998000001 samples until ",
            " or less",
        ),
        # Nothing says so here: the run ends when the room is used up.
        (
            "run(Scenario(FIG9, 'tcp', apps=[Bulk(5, 4, until=ms(50), interval=ms(1))]), watch=Watch(every_ps=1))",
            r"watch.every_ps: \d+ samples until \d+ ps take \d+ MB, and this machine has no room for more: set every_ps to more than 1, ",
            " or less",
        ),
        (
            "run(Scenario(FIG9, 'tcp', apps=[Bulk(5, 4, until=ms(50), interval=1)]))",
            r"bulk from 5 to 4: 50000000000 samples need 1.6 TB, and this machine has ",
            "sample at a longer interval",
        ),
        (
            "run(replace(search, flows=Poisson('search', 0.6, 10**9)))",
            r"workload: 1000000000 flows need \d+ GB, and this machine has ",
            "take fewer",
        ),
        (
            "run(replace(search, flows=Poisson('search', 0.6, 10**5)), watch=Watch(trace='all'))",
            r"watch.trace: \d+ packets until \d+ \w+ need \d.\d GB to hand over, and this machine has ",
            "trace fewer hosts, or stop earlier",
        ),
        (
            "run(Scenario(LeafSpine(4096, 4096, 1000, FIG9.edge, FIG9.uplink), 'tcp'))",
            r"topology: 41746432 ports need 2.0 GB, and this machine has ",
            "make the network smaller",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(work: str, begin: str, end: str) -> None:
    sentence = said(work)
    assert re.match(begin, sentence) and sentence.endswith(end), sentence


def test_packets_that_fill_the_memory_end_the_run() -> None:
    # A hundred hosts send to one as fast as they can, and its switch drops nothing.
    crowd = "[Source(host, 143, gap=100_000, bytes=64, count=10**9) for host in range(100)]"
    scheme = "replace(Scheme.named('tcp', FIG9), queue=DropTail(None))"
    sentence = said(f"resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9)); run(Scenario(FIG9, {scheme}, sources={crowd}))")
    assert re.match(r"memory: at \d+ \w+ of the run this machine has none left for it: simulate fewer flows, ", sentence), sentence
