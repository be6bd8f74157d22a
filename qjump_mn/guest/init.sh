#!/bin/sh
# The guest's first program: the least that Linux programs expect, then the agent, which stays process 1 and reaps.
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb LANG=C.UTF-8 SHELL=/bin/sh
# Fixed, because sets would else be in another order in every run; no bytecode is written, for the image holds it all.
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/qjump-mn
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /run/lock /run/netns
hostname guest
ip link set lo up
echo 1 >/proc/sys/vm/panic_on_oom # a run that lost a program to the lack of memory must not look like a result
ln -sf host-log /dev/console
exec >/dev/host-log 2>&1
cd /root || exit 1
exec python3 -P /opt/qjump-mn/executor/agent.py
