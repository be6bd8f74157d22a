"""Run the checks in plan.json one after another, in the guest, and collect the kernel's messages.

Writes into the current directory the JSON line and the errors of each check, and results.json with
exit codes, durations and modules.
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
LIMIT_S = 1200.0  # of virtual time, in case a check hangs; the sweep of windows takes 500 s


def loaded() -> list[str]:
    return [name for name in OURS if Path("/sys/module", name).exists()]


def words(*argv: str) -> str:
    """Return a program's output, or its exit code if it failed silently."""
    done = subprocess.run(argv, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() or (
        f"exit code {done.returncode}" if done.returncode else ""
    )


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
subprocess.run(["dmesg", "--clear"], check=True)  # drop the messages of the boot
results["load"] = [words("modprobe", "-a", *OURS), loaded()]
results["unload"] = [words("modprobe", "-r", *OURS), loaded()]
for name, text in plan["data"].items():
    import lzma  # only if needed: imports affect timings

    Path("/tmp", name).write_bytes(lzma.decompress(base64.b64decode(text)))
    if name.endswith(".ko"):
        subprocess.run(["insmod", f"/tmp/{name}"], check=True)
results["checks"] = {name: check(name, *arguments) for name, *arguments in plan["checks"]}
results["log"] = words("dmesg", "-t", "--level=emerg,alert,crit,err,warn").splitlines()
results["others"] = words("modprobe", "-a", *plan["others"])
Path("results.json").write_text(json.dumps(results))
