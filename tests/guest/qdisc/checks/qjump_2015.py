"""The module parameters of 2015: they apply to a qjump2015 without an epoch, and to nothing else.

With timeq=2000 bytesq=1550 p0rate=1 p1rate=0 p2rate=3 p7rate=10, `bare` is the result of `tc qdisc
add dev a0 root qjump2015`, `told` that with `epoch 5ms level 6 3100`, and `changed` what `epoch
20ms` and then `level 2 unlimited` make of it.
"""
import rig

rig.build()
rig.run("modprobe -r sch_qjump2015")
rig.run("modprobe sch_qjump2015 timeq=2000 bytesq=1550 p0rate=1 p1rate=0 p2rate=3 p7rate=10")
rig.tc("qdisc add dev a0 root handle 6: qjump2015")
bare = rig.qdisc("qjump2015")
rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 6: qjump2015 epoch 5ms level 6 3100")
told, changed = rig.qdisc("qjump2015"), []
for change in ("epoch 20ms", "level 2 unlimited"):
    rig.tc(f"qdisc change dev a0 root handle 6: qjump2015 {change}")
    changed.append(rig.qdisc("qjump2015")["options"])
rig.tc("qdisc del dev a0 root")
rig.run("modprobe -r sch_qjump2015")
rig.report(bare=bare["options"], told=told["options"], changed=changed)
