"""Runs in the guest: the checks named in plan.json, one after another, and what the kernel says of its modules.

Leaves, in the current folder, for each check its line of JSON and its errors, and results.json: exit codes, durations and modules.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(sys.argv[0]).parent
OURS = ["sch_qjump", "sch_qjump2015", "sch_wire"]
LIMIT_S = 1200.0  # of virtual time, for a check that hangs; the sweep of windows takes 500


def loaded() -> list[str]:
    return [name for name in OURS if Path("/sys/module", name).exists()]


def words(*argv: str) -> str:
    """What a program says, empty when it ended well and in silence."""
    done = subprocess.run(argv, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() or (f"exit code {done.returncode}" if done.returncode else "")


def check(name: str, *arguments: str) -> dict[str, object]:
    started = time.monotonic()
    with open(f"{name}.json", "w") as output, open(f"{name}.stderr", "w") as errors:
        argv = [sys.executable, str(HOME / f"{name}.py"), *arguments]
        try:
            code = subprocess.run(argv, stdout=output, stderr=errors, timeout=LIMIT_S).returncode
        except subprocess.TimeoutExpired:
            code = None
    return {"code": code, "virtual_s": time.monotonic() - started}


plan = json.loads((HOME / "plan.json").read_text())
results: dict[str, object] = {"release": Path("/proc/sys/kernel/osrelease").read_text().strip()}
subprocess.run(["dmesg", "--clear"], check=True)  # what the kernel said of the machine
results["load"] = [words("modprobe", "-a", *OURS), loaded()]
results["unload"] = [words("modprobe", "-r", *OURS), loaded()]
for name, text in plan["data"].items():
    import lzma  # most jobs have no data; what a run loads moves its timings

    Path("/tmp", name).write_bytes(lzma.decompress(base64.b64decode(text)))
    if name.endswith(".ko"):
        subprocess.run(["insmod", f"/tmp/{name}"], check=True)
results["checks"] = {name: check(name, *arguments) for name, *arguments in plan["checks"]}
results["log"] = words("dmesg", "-t", "--level=emerg,alert,crit,err,warn").splitlines()
results["others"] = words("modprobe", "-a", *plan["others"])
Path("results.json").write_text(json.dumps(results))
