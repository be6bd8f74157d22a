"""The rate of a wire that is busy for 10 s.

The rates include some at which a byte does not take a whole number of ns.

The sender's own socket keeps the queue full (noorphan makes it block). Arguments: rate:size, ....
"""
import sys
import time

import rig

rig.build()
receiver, sender = rig.Receiver(), rig.Sender(sndbuf=200_000)
rates = {}
for case in sys.argv[1:] or ("10000000:1514", "7777777:577", "33333333:1514"):
    rate, size = map(int, case.split(":"))
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate {rate} limit 1mb noorphan")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        sender.send(size)
    stamps = [t for t, _ in receiver.take_all()]
    seconds = (stamps[-1] - stamps[0]) / 1e9
    measured = (len(stamps) - 1) * (size + 24) * 8 / seconds
    rates[rate] = {"frames": len(stamps), "size": size, "seconds": seconds, "measured_bps": measured,
                   "ppm": (measured / rate - 1) * 1e6, "drops": rig.qdisc("wire")["drops"]}
rig.report(rates=rates)
