"""Use what kmod-patches/series adds to the kernel and iproute2: selftest, ynl and tdc cases.

ynl runs with the netlink specification that includes qjump, tdc's cases with a tc that has qjump
built in. /opt/series.tar contains the files of those trees. PyYAML is not in the guest; a
replacement `yaml` reads the same specification as JSON. Reported: the selftest's result in TAP;
what ynl read of a qdisc that it created, and of its statistics; the faults of each case.
"""
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import rig

HOME = Path("/tmp/series")
SPEC = HOME / "Documentation/netlink/specs/tc.yaml"
OPTIONS = {"epoch": 1_000_000, "slack": 5_000_000_000, "level": [{"index": 7, "budget": 1550}, {"index": 3, "budget": 9000, "limit": 10}]}


def ynl(*arguments: str) -> Any:
    argv = [sys.executable, str(HOME / "tools/net/ynl/pyynl/cli.py"), "--spec", str(SPEC), "--no-schema", "--output-json", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout or "null")


def through_ynl() -> dict[str, Any]:
    """Create a qdisc and read it by ynl alone."""
    rig.run("ip link add spec type dummy")
    index = int(Path("/sys/class/net/spec/ifindex").read_text())
    message = {"family": 0, "ifindex": index, "handle": 0x10000, "parent": 0xFFFFFFFF, "info": 0, "kind": "qjump", "options": OPTIONS}
    ynl("--do", "newqdisc", "--create", "--json", json.dumps(message))
    found = ynl("--dump", "getqdisc", "--json", json.dumps({"family": 0, "ifindex": 0, "handle": 0, "parent": 0, "info": 0}))
    (qdisc,) = (one for one in found if one["ifindex"] == index)
    rig.run("ip link del spec")
    return {"options": qdisc["options"], "stats": qdisc["stats2"]["app"]}


with tarfile.open("/opt/series.tar") as archive:
    archive.extractall(HOME, filter="data")
os.environ |= {"PATH": f"{HOME}/bin:{os.environ['PATH']}", "TC_LIB_DIR": "/nowhere", "PYTHONPATH": f"{HOME}/python"}
selftest = subprocess.run([sys.executable, str(HOME / "tools/testing/selftests/net/qjump.py")], capture_output=True, text=True)
cases = subprocess.run([sys.executable, str(Path(sys.argv[0]).with_name("tdc_cases.py")), *sys.argv[1:]], capture_output=True, text=True)
rig.report(selftest=[selftest.returncode, selftest.stdout + selftest.stderr], ynl=through_ynl(), cases=[cases.stdout, cases.stderr])
