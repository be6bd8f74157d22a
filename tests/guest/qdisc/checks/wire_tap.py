"""The tap: the events of the wire a0, at 10 Mb/s.

Ten times, a frame of 1514 B in level 0 is sent, followed by an urgent one of 100 B. `frames`: what
the event reported of each urgent one (arrival, start, handover; ns since the first), and the
kernel's stamp of its receipt; `level7`: the statistics.

Then five bursts of ten frames, 12 ms apart, meet a queue of four: `told` has all events, `level0` the
statistics.
"""

import time

import rig
import tap

rig.build()
receiver, sender = rig.Receiver(), rig.Sender()
rig.tc("qdisc add dev a0 root handle 5: wire rate 10mbit")
tap.begin('level == 7 && dev == "a0"')
offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
for number in range(10):
    sender.send(1514, 2 * number)
    sender.send(100, 2 * number + 1, pcp=7)
    time.sleep(0.01)
told = tap.end()
events = [frame for level, *frame in told if level == 7]
urgent = [stamp - offset for stamp, number in receiver.take_all() if number % 2]
first = events[0][1]
level7 = rig.level("wire", 7)
rig.tc("qdisc replace dev a0 root handle 6: wire rate 10mbit limit 6072")
tap.begin('dev == "a0"')
for number in range(50):
    sender.send(1514, number)
    if number % 10 == 9:
        time.sleep(0.012)
rig.report(
    lines=len(told),
    lengths=[event[0] for event in events],
    frames=[
        [*(t - first for t in event[1:]), stamp - first] for event, stamp in zip(events, urgent, strict=True)
    ],
    level7=level7,
    told=tap.end_with_heads(),
    level0=rig.level("wire", 0),
)
