"""Check the latency bound on 10^8 urgent frames in the simulator, at four rates and with mixed
sizes. Write the table in docs/emulation.md.

    python3 bench/theorem.py [--write]

n hosts send to one host, and may send a full-size frame, or as many bytes in smaller ones, in each
epoch of n·P/R. They offer 5 % less than that, in sizes that differ, all at once or at random. Three
of them also fill the receiver's link with bulk. An urgent frame's time counts from when its
limiter lets it go. Takes some minutes of a core.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from qjump_mn import theory
from qjump_mn.toolbox import simulator

if TYPE_CHECKING:
    from qjump_sim import Scenario, Source

PAGE = Path(__file__).parent.parent / "docs/emulation.md"
RATES_GBPS = (1, 10, 100, 400)
HOSTS = (3, 12, 60)
FRAMES = 10**8
FULL = theory.wire_bytes(1500)
"""Bytes on the wire of a full-size frame: the budget P."""
SIZES = (FULL, FULL // 2, FULL // 3, FULL // 6)
"""Bytes on the wire of urgent frames; those of a host are alike, and fill its budget."""
BULK_HOSTS = 3
URGENT, BULK = 0, 7
"""Levels of the simulator, whose most urgent is 0."""


class Checked(NamedTuple):
    """Frames that arrived, and the slowest one's share of its bound."""

    frames: int
    of_bound: float


def main() -> None:
    """Check, print and, if asked, write."""
    text = "\n".join(table(FRAMES))
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(PAGE, "theorem", text)


def table(frames: int) -> Iterator[str]:
    """Yield the lines of the table of ``frames`` frames in all."""
    yield "| rate | urgent frames | slowest, of the bound: all at once | at random | above it |"
    yield "|---|---|---|---|---|"
    for rate in RATES_GBPS:
        each = -(-frames // (len(RATES_GBPS) * len(HOSTS) * 2))
        together, random = (
            [checked(rate, hosts, each, random=random) for hosts in HOSTS]
            for random in (False, True)
        )
        count = sum(one.frames for one in together + random)
        above = sum(one.of_bound > 1 for one in together + random)
        shares = (max(one.of_bound for one in of) for of in (together, random))
        yield (
            f"| {rate} Gb/s | {count:,} | {' | '.join(f'{share:.3f}' for share in shares)} | "
            f"{f'in {above} runs' if above else 'none'} |"
        )


def bound_ps(rate_gbps: int, hosts: int) -> int:
    """Return the longest time from a limiter's release to arrival, in ps.

    At its own host a frame may wait for a bulk frame, and leaves within a budget. That jitter lets
    as much more arrive at the receiver's port, where n budgets meet behind one bulk frame.
    """
    jitter = FULL + FULL
    return (jitter + hosts * FULL + jitter + FULL) * _byte_ps(rate_gbps)


def _byte_ps(rate_gbps: int) -> int:
    return 8000 // rate_gbps


def checked(rate_gbps: int, hosts: int, frames: int, *, random: bool) -> Checked:
    """Run at least ``frames`` urgent frames of ``hosts`` senders."""
    sys.path.insert(0, str(simulator.package()))
    from qjump_sim import run

    sources = sorted(traffic(rate_gbps, hosts, frames, random=random), key=_order)
    found = run(scenario(rate_gbps, hosts, sources)).sources
    urgent = [source.level == URGENT for source in sources]
    sent = sum(source.count for source in itertools.compress(sources, urgent))
    results = list(itertools.compress(found, urgent))
    arrived = sum(result.delivered for result in results)
    if arrived != sent:
        raise SystemExit(f"{rate_gbps} Gb/s, {hosts} hosts: {sent - arrived} of {sent} were lost")
    slowest = max(result.delay_max for result in results)
    return Checked(arrived, slowest / bound_ps(rate_gbps, hosts))


def _order(source: Source) -> tuple[int, int]:
    """Key of the order in which the simulator tells of sources."""
    return source.src, source.level


def scenario(rate_gbps: int, hosts: int, sources: Sequence[Source]) -> Scenario:
    """Return a star whose hosts limit the urgent level to P in any n·P/R."""
    from qjump_sim import Cable, PerHost, Priority, Scenario, Scheme, Tree

    names = [f"h{number:02}" for number in range(hosts + 1)]
    cable = Cable(rate_gbps * 10**9, 0)
    tree = Tree(["s"], names, [("s", name, cable) for name in names])
    scheme = dataclasses.replace(
        Scheme.named("tcp", tree),
        queue=Priority(8 * hosts * FULL),
        limiter=PerHost(epoch_ps(rate_gbps, hosts), [FULL, *[None] * 7], epochs="rolling"),
    )
    return Scenario(tree, scheme, sources=sources, seed=rate_gbps)


def traffic(rate_gbps: int, hosts: int, frames: int, *, random: bool) -> Iterator[Source]:
    """Yield what hosts send: frames of their own size, a budget in 21/20 of an epoch, so that bulk
    gets between; and as much bulk as the receiver's link carries."""
    from qjump_sim import Source

    senders = [(host, SIZES[host % len(SIZES)]) for host in range(hosts)]
    epochs = -(-frames // sum(FULL // size for _, size in senders))
    gap = epoch_ps(rate_gbps, hosts) * 21 // 20
    for host, size in senders:
        fits = FULL // size
        if random:
            yield Source(host, hosts, gap // fits, size, epochs * fits, level=URGENT, poisson=True)
        else:
            for _ in range(fits):
                yield Source(host, hosts, gap, size, epochs, level=URGENT)
    for host in range(BULK_HOSTS):
        gap, count = BULK_HOSTS * FULL * _byte_ps(rate_gbps), epochs * hosts // BULK_HOSTS
        yield Source(host, hosts, gap, FULL, count, level=BULK, poisson=True)


def epoch_ps(rate_gbps: int, hosts: int) -> int:
    """Return n·P/R in ps."""
    return hosts * FULL * _byte_ps(rate_gbps)


if __name__ == "__main__":
    main()
