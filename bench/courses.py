"""Prepare the QJump code of a Stanford course for `qjump-mn mn`, in a copy of its repository.

    python3 bench/courses.py 2015|2016 COPY

2015 is anakli/cs244-qjump, 2016 ejdb00/qjmp with qjau.py of camsas/qjump-app-util beside its
scripts. Their code is not a part of this project. It is converted from Python 2 by lib2to3, which
Python has up to 3.12, and edited as :data:`EDITS` says. A folder shim/ stands for what their
machines had. Then, in the copy, 2015 runs by

    qjump-mn mn --deadline 900s --packages python3-matplotlib -- bash run.sh --time 10

and 2016 by

    qjump-mn mn --mininet MININET --deadline 240s -- bash run.sh --which 3

where MININET is a checkout of Mininet, for mininet.examples. docs/similarity.md has the results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

EDITS = {
    "2015": {
        "plotter.py": {
            # Of matplotlib and numpy, since 2018.
            "normed=True": "density=True",
            "num_bins = min(2500, bin_range / bin_width)": (
                "num_bins = max(1, int(min(2500, bin_range / bin_width)))"
            ),
        },
    },
    "2016": {
        "hadoop_sim.py": {"sz/16": "sz//16", "open(full_path, 'w')": "open(full_path, 'wb')"},
        "run_experiment.py": {"pidstr != ''": "pidstr != b''"},
    },
}
"""What 2to3 does not convert, by year and file."""

# Mininet's switch of 2015 put the eight queues of a port below its shaper.
_SITE = """\
import sys, types
import mininet.node, mininet_qos
mininet.node.OVSHtbQosSwitch = mininet_qos.PrioritySwitch
sys.modules["sets"] = types.SimpleNamespace(Set=set)
"""

_TEXT = """\
import subprocess
_output = subprocess.check_output
subprocess.check_output = lambda *words, **named: _output(*words, **{"text": True, **named})
"""

# The published rules without parameters of their own are those of the module.
_TC = """\
#!/bin/bash
[ "${!#}" = qjump ] && set -- "${@:1:$#-1}" qjump2015
exec /usr/sbin/tc "$@"
"""

# The module is a part of the kernel. It had no parameters p5rate and p6rate.
_INSMOD = """\
#!/bin/sh
cd /sys/module/sch_qjump2015/parameters || exit
shift
for word; do
    name=${word%%=*}
    case $name in p5rate | p6rate) continue ;; esac
    [ ! -e "$name" ] || echo "${word#*=}" > "$name"
done
"""

_DOES_NOTHING = "#!/bin/sh\n"

SHIM = {
    "2015": {
        "sitecustomize.py": _SITE + _TEXT,
        "tc": _TC,
        "insmod": _INSMOD,
        "rmmod": _DOES_NOTHING,
        "lsmod": _DOES_NOTHING,
        "git": _DOES_NOTHING,
    },
    "2016": {"sitecustomize.py": _SITE, "tc": _TC, "insmod": _INSMOD},
}
"""Files of shim/, by year and name."""

_BEGINS = """\
export PATH=$PWD/shim:$PATH PYTHONPATH=$PWD/shim:$PYTHONPATH
ln -sf /usr/lib/qjump-mn/libqjau.so qjump-app-util.so
"""

RUN = {
    "2015": _BEGINS + 'python3 qjump.py --all --dir results/all "$@"\n',
    "2016": _BEGINS
    + """\
mkdir -p clients
ln -sf /usr/bin/memcaslap clients/memaslap
echo memcache:x:99:99::/:/bin/sh >> /etc/passwd
insmod sch_qjump.ko bytesq=256 timeq=192000 p1rate=1 p5rate=100 p7rate=9999999
python3 run_experiment.py "$@"
""",
}
"""run.sh of each year."""


def main() -> None:
    """Prepare the copy."""
    words = argparse.ArgumentParser()
    words.add_argument("year", choices=EDITS)
    words.add_argument("copy", type=Path)
    chosen = words.parse_args()
    convert = [sys.executable, "-W", "ignore", "-m", "lib2to3", "--write", "--nobackups"]
    subprocess.run([*convert, chosen.copy], check=True, stdout=subprocess.DEVNULL)
    prepare(chosen.year, chosen.copy)


def prepare(year: str, copy: Path) -> None:
    """Edit a copy that is in Python 3, and add shim/ and run.sh; raise ValueError if the text that
    an edit replaces is not there."""
    for name, edits in EDITS[year].items():
        text = (copy / name).read_text()
        for old, new in edits.items():
            if old not in text:
                raise ValueError(f"{copy / name} has no {old!r}: take a fresh copy")
            text = text.replace(old, new)
        (copy / name).write_text(text)
    write_shim(year, copy)
    (copy / "run.sh").write_text(RUN[year])


def write_shim(year: str, copy: Path) -> None:
    """Write the folder shim/."""
    (copy / "shim").mkdir()
    for name, text in SHIM[year].items():
        path = copy / "shim" / name
        path.write_text(text)
        path.chmod(0o755)


if __name__ == "__main__":
    main()
