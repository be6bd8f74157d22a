"""Serialisation of the wire, for several frame sizes and rates.

Reported for each case: `expected_ns` = (L + 20) * 8 / R between the starts of frames sent back to
back; the median gap at the peer; the mean gap (a tenth of ten gaps, the median of all such); how
far each frame is off the grid of `expected_ns` (smallest first); and the latency of a lone frame
(median of five) minus its (8 + L) * 8 / R.

The wire is exact; what remains is the instruction path from timer to stamp. It is 0.7 us longer if
the kernel's tick falls into it, once or twice per run, up to 20 us if a kernel thread does, and on
7.3 2.1 us longer for twenty frames in a row. It does not add up.
"""
import itertools

import rig

rig.build()
receiver, cases = rig.Receiver(), []
sender = rig.Sender()
for rate in (7_000_000, 10_000_000, 33_333_333, 100_000_000):
    for size in (42, 60, 64, 300, 1000, 1514):
        # Queue all frames behind a slow one before the first of them leaves: the sender's calls
        # disable softirqs for 8 us, which would delay the wire's timer.
        rig.tc("qdisc replace dev a0 root handle 5: wire rate 100kbit limit 1mb")
        sender.send(1514)
        for number in range(101):
            sender.send(size, number)
        rig.tc(f"qdisc change dev a0 root handle 5: wire rate {rate}")
        stamps = [t for t, _ in receiver.take_all()[1:]]
        gaps = sorted(b - a for a, b in itertools.pairwise(stamps))
        frame = max(64, size + 4)
        expected = (frame + 20) * 8e9 / rate
        phases = [stamp - stamps[0] - number * expected for number, stamp in enumerate(stamps)]
        tens = sorted(b - a for a, b in zip(stamps, stamps[10:], strict=False))
        phases.sort()
        alone = []
        for _ in range(5):
            before = rig.now()
            sender.send(size)
            alone.append(receiver.take_all(quiet=0.02)[0][0] - before)
        cases.append({
            "rate_bps": rate, "size": size, "expected_ns": expected,
            "gaps": len(gaps), "median_ns": gaps[len(gaps) // 2],
            "off_ns": sorted(abs(phase - phases[len(phases) // 2]) for phase in phases),
            "mean_ns": tens[len(tens) // 2] / 10,
            "lone_rest_ns": sorted(alone)[2] - (frame + 8) * 8e9 / rate,
        })
rig.report(cases=cases)
