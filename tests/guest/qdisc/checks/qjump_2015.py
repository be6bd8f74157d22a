"""The module's parameters, those of 2015: they fill in a mode 2015 without an epoch and nothing else.

With timeq=2000 bytesq=1550 p0rate=1 p1rate=0 p2rate=3 p7rate=10, `bare` is the qdisc of
`tc qdisc add dev a0 root qjump`, `old` that with `mode 2015`, `told` that with `mode 2015 epoch 5ms
level 6 3100`.
Assert: bare: no budgets; old: epoch 2 ms, budgets: level 7 1550, 6 none, 5 4650, 0 15500 (pXrate is
for priority 7 - X); told: epoch 5 ms, only level 6 has a budget.
"""
import rig

rig.build()
rig.run("modprobe -r sch_qjump")
rig.run("modprobe sch_qjump timeq=2000 bytesq=1550 p0rate=1 p1rate=0 p2rate=3 p7rate=10")
rig.tc("qdisc add dev a0 root handle 6: qjump")
bare = rig.qdisc("qjump")
rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 6: qjump mode 2015")
old = rig.qdisc("qjump")
rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 6: qjump mode 2015 epoch 5ms level 6 3100")
told = rig.qdisc("qjump")
rig.tc("qdisc del dev a0 root")
rig.run("modprobe -r sch_qjump")
rig.report(bare=bare["options"], old=old["options"], told=told["options"])
