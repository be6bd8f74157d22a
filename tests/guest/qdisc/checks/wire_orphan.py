"""skb_orphan: a socket of 60 kB sends through a fast wire into a slow one behind it.

a0 (100 Mb/s) -> b0, redirected to b1 (10 Mb/s, limit 152200) -> c1. With orphan, the sender is
paced by its own wire and the slow one drops. Without, packets queued at the slow wire stay charged
to the socket and hold the sender back.

`long`: what the socket may send in 0.3 s through a wire of 10 Mb/s that takes 100 ms.
"""
import json
import time

import rig

rig.build()
rig.run("ip link add b1 netns b type veth peer name c1 netns b")
for link in ("b1", "c1"):
    rig.run(f"ip -n b link set {link} up")
rig.tc("qdisc add dev b0 ingress", "b")
rig.tc("filter add dev b0 ingress matchall action mirred egress redirect dev b1", "b")
results = {}
for mode in ("orphan", "noorphan"):
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate 100mbit limit 1mb {mode}")
    rig.tc("qdisc del dev b1 root", "b", check=False)
    rig.tc(f"qdisc add dev b1 root handle 5: wire rate 10mbit limit 152200 {mode}", "b")
    sender = rig.Sender(sndbuf=60_000)
    end, accepted = time.monotonic() + 0.3, 0
    while time.monotonic() < end:
        accepted += sender.send(1514)
    slow = next(q for q in json.loads(rig.tc("-j -s qdisc show dev b1", "b").stdout)
                if q["kind"] == "wire")
    results[mode] = {"accepted": accepted, "slow_drops": slow["drops"],
                     "slow_max_backlog": slow["levels"][7]["max_backlog"]}
rig.tc("qdisc replace dev a0 root handle 5: wire rate 10mbit limit 1mb delay 100ms orphan")
sender = rig.Sender(sndbuf=60_000)
end, accepted = time.monotonic() + 0.3, 0
while time.monotonic() < end:
    accepted += sender.send(1514)
rig.report(**results, long=accepted)
