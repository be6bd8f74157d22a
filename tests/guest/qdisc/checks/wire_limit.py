"""Tail drop at the limit: a burst of 300 frames of 1000 B (L = 1004) into a limit of 50000 B."""
import rig

rig.build()
receiver = rig.Receiver()
sender, other = rig.Sender(), rig.Sender(priority=5)
rig.tc("qdisc replace dev a0 root handle 5: wire rate 1mbit limit 50000 classify priority")
for number in range(300):
    sender.send(1000, number)
for number in range(49):
    other.send(1000, 1000 + number)
numbers = [n for _, n in receiver.take_all()]
shown = rig.qdisc("wire")
rig.report(delivered=sum(n < 1000 for n in numbers), other=sum(n >= 1000 for n in numbers),
           drops=shown["drops"], level0=rig.level("wire", 0), level5=rig.level("wire", 5),
           backlog=shown["backlog"], qlen=shown["qlen"], options=shown["options"])
