"""Change, replace, delete and module removal with a backlog, as root and below HTB, prio and wire.

- `shrunk`: the budget becomes smaller than the queued frames. `raised`: the limit is removed.
- `parents`: per parent [before, after] of qlen and backlog for: qjump deleted, qjump replaced by
  another qjump, qjump replaced by pfifo.
- `removed`: whether the modules unload at the end.
"""
import time

import rig

rig.build()
receiver, sender = rig.Receiver(), rig.Sender(3)
results: dict[str, object] = {}
QJUMP = "qjump epoch 1s level 3 2084"


def fill() -> None:
    for number in range(60):
        sender.send(1042, number)


rig.tc(f"qdisc add dev a0 root handle 6: {QJUMP}")
fill()
before = rig.level("qjump", 3)
rig.tc("qdisc change dev a0 root handle 6: qjump level 3 1000")
results["shrunk"] = {"before": before, "after": rig.level("qjump", 3)}
rig.tc("qdisc change dev a0 root handle 6: qjump level 3 2084")
fill()
held = rig.level("qjump", 3)["qlen"]
receiver.take()
rig.tc("qdisc change dev a0 root handle 6: qjump level 3 unlimited")
results["raised"] = {"held": held, "left": len(receiver.take_all())}
rig.tc("qdisc del dev a0 root")

parents = {}
for name, options in (("htb", "default 1"),
                      ("prio", "bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
                      ("wire", "rate 10mbit")):
    rig.tc(f"qdisc add dev a0 root handle 5: {name} {options}")
    if name == "htb":
        rig.tc("class add dev a0 parent 5: classid 5:1 htb rate 100mbit quantum 1514")
    states = []
    for change in ("del dev a0 parent 5:1", f"replace dev a0 parent 5:1 handle 7: {QJUMP}",
                   "replace dev a0 parent 5:1 handle 8: pfifo"):
        rig.tc(f"qdisc replace dev a0 parent 5:1 handle 6: {QJUMP}")
        fill()
        time.sleep(0.01)
        full = rig.qdisc(name)
        rig.tc(f"qdisc {change}")
        time.sleep(0.01)
        after = rig.qdisc(name)
        states.append({k: (full[k], after[k]) for k in ("qlen", "backlog")})
    rig.tc(f"qdisc replace dev a0 parent 5:1 handle 6: {QJUMP}")
    fill()
    rig.tc("qdisc del dev a0 root")
    parents[name] = states
results["parents"] = parents
receiver.take_all()
deadline = time.monotonic() + 10
while rig.run("rmmod sch_qjump sch_qjump2015 sch_wire", check=False).returncode:
    if time.monotonic() > deadline:
        break
    time.sleep(0.05)
with open("/proc/modules") as f:
    names = {line.split()[0] for line in f}
results["removed"] = not names & {"sch_qjump", "sch_wire"}
rig.report(**results)
