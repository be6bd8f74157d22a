#!/bin/sh
# The guest's first program: set up what Linux programs expect, then become the agent, process 1.
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb LANG=C.UTF-8 SHELL=/bin/sh
# A fixed hash seed keeps the order of sets the same in every run. The image already holds all bytecode.
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
echo 1 >/proc/sys/vm/panic_on_oom # a run that lost a program to lack of memory must not look valid
ln -sf host-log /dev/console
exec >/dev/host-log 2>&1
cd /root || exit 1
exec python3 -P /opt/qjump-mn/executor/agent.py
