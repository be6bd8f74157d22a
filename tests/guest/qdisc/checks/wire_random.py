"""Compare a model with 2000 random frames, more than the wire can take.

Sizes, levels and times are random. The model knows only arrivals. Starts have no timer but are
computed later, which must not show. The event wire:wire_frame reports when each frame arrived,
started and is handed over; sendto() reports drops, each at some time between `before` and the next
frame's. `wrong` are starts and handovers unlike the model's, to the ns; `early` are frames dropped
although there was room, `late` those queued without room.
"""

import random
import time

import rig
import tap

FRAMES, LIMIT = 2000, 8000


class Model:
    """Eight queues and one wire; times are integers in units of 1/rate ns."""

    def __init__(self, rate: int, delay: int) -> None:
        self.rate, self.delay, self.free = rate, delay, 0
        self.queues: list[list[tuple[int, int]]] = [[] for _ in range(8)]
        self.left: list[list[int]] = []

    def ceil(self, time: int) -> int:
        return -(-time // self.rate)

    def advance(self, now: int) -> None:
        """Start all frames that start by then."""
        while self.ceil(self.free) <= now and any(self.queues):
            by = self.ceil(self.free)
            came = {p: queue[0][0] for p, queue in enumerate(self.queues) if queue}
            # The most urgent that has arrived by then, otherwise the first to arrive.
            p = min(came, key=lambda p: (max(came[p], by), -p))
            arrival, length = self.queues[p].pop(0)
            start = self.free if arrival <= by else arrival * self.rate
            end = start + (8 + length) * 8 * 10**9
            self.left.append([p, length, arrival, self.ceil(start), self.ceil(end) + self.delay])
            self.free = end + 12 * 8 * 10**9

    def room(self, now: int, p: int) -> int:
        """Return the bytes that still fit into a level."""
        self.advance(now)
        return LIMIT - sum(length for _, length in self.queues[p])


def case(rate: int, delay: int) -> dict[str, object]:
    rig.tc("qdisc del dev a0 root", check=False)
    rig.tc(f"qdisc add dev a0 root handle 5: wire rate {rate}bit limit {LIMIT} delay {delay}ns")
    tap.begin('dev == "a0"')
    draw, sent = random.Random(rate), []
    for _ in range(FRAMES):
        size, p = draw.randint(60, 1514), draw.randrange(8)
        before = time.monotonic_ns()
        sent.append((before, size, p, sender.send(size, 0, p)))
        time.sleep(draw.expovariate(1 / 0.0004))
    time.sleep(0.2)
    found = tap.end()
    model, came = Model(rate, delay), iter(sorted(event[2] for event in found))
    early = late = 0
    for before, size, p, passed in sent:
        length = size + 4
        if passed:
            arrival = next(came)
            late += model.room(arrival, p) < length
            model.queues[p].append((arrival, length))
        else:
            early += model.room(before, p) >= length
    model.advance(1 << 62)
    levels = rig.qdisc("wire")["levels"]
    return {
        "frames": len(found),
        "dropped": FRAMES - len(found),
        "waited": sum(start > arrival for _, _, arrival, start, _ in found),
        "wrong": sum(ours != theirs for ours, theirs in zip(model.left, found, strict=True)),
        "early": early,
        "late": late,
        "drops": sum(level["drops"] for level in levels),
        "max_wait_ns": [max(level["max_wait_ns"] for level in levels), max(x[3] - x[2] for x in found)],
    }


rig.build()
sender = rig.Sender()
rig.report(cases=[case(10_000_000, 0), case(7_000_000, 2_000_000)])
