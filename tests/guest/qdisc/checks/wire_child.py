"""A wire of 1 Gb/s whose child chooses the next frame.

The child is sch_qjump with level 5 limited to one frame in T = 100 us.

The child is asked by a timer, which is late (here by 1 to 2 us). The frame starts when the wire
became free; if it started when the child was asked, a saturated link would lose that time with each
frame (7.7 %). So a frame may start earlier than it was charged, by as much. Frames are queued while
the wire is slow; then it becomes fast and drains them without a break.

- `windows`: 500 frames of level 5, `alone` and among 8000 of random sizes that saturate the wire,
  without slack and with a slack of 10 us in qjump. By the tap, which reports starts: `most` frames
  that start in any window of exactly T; `closest_ns`, the shortest time between two; `overlap_ns`:
  by how much a frame starts before the one ahead of it, and the gap, have left.
- `rate`: by how many ppm the rate of 4000 frames of 1514 B of an unlimited level exceeds the
  wire's, for each child.
"""

import itertools
import random

import rig
import tap

EPOCH_NS, SIZE, RATE = 100_000, 1042, 1_000_000_000


def slow(child: str) -> None:
    rig.tc("qdisc del dev a0 root", check=False)
    rig.tc("qdisc add dev a0 root handle 5: wire rate 1kbit classify priority")
    rig.tc(f"qdisc add dev a0 parent 5:1 handle 6: {child}")


def drain(levels: str) -> list[list[int]]:
    """Make the wire fast; return what the tap reports of the waiting frames."""
    tap.begin(levels)
    rig.tc(f"qdisc change dev a0 root handle 5: wire rate {RATE}")
    receiver.take_all(quiet=1)
    return tap.end()


def windows(others: int, slack: str) -> dict[str, float]:
    slow(f"qjump epoch {EPOCH_NS}ns level 5 {SIZE} limit 20000 slack {slack}")
    first.send(60)
    for number in range(500):
        limited.send(SIZE, number)
        for _ in range(others):
            bulk.send(draw.randrange(60, 1515))
    told = drain("level != 6")
    stamps = [start for level, _, _, start, _ in told if level == 5]
    gaps = [later[3] - one[3] - (one[1] + 20) * 8e9 / RATE for one, later in itertools.pairwise(told)]
    return {
        "frames": len(stamps),
        "most": rig.most_in_window([(stamp, 1) for stamp in stamps], EPOCH_NS),
        "closest_ns": min(later - one for one, later in itertools.pairwise(stamps)),
        "overlap_ns": -min(gaps),
    }


def rate(child: str) -> float:
    slow(child)
    first.send(60)
    for _ in range(4000):
        bulk.send(1514)
    starts = [start for _, _, _, start, _ in drain("level == 0")]
    expected = (len(starts) - 1) * (1514 + 24) * 8e9 / RATE
    return round((expected / (starts[-1] - starts[0]) - 1) * 1e6, 1)


draw = random.Random(1)
rig.build()
receiver, first, limited, bulk = rig.Receiver(), rig.Sender(6), rig.Sender(5), rig.Sender(0)
rig.report(
    windows={
        slack: {name: windows(others, slack) for name, others in (("alone", 0), ("saturated", 16))}
        for slack in ("0us", "10us")
    },
    rate={child: rate(child) for child in ("qjump limit 20000", "pfifo limit 20000")},
)
