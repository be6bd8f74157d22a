"""Run the cases of kmod-patches/tdc by tdc, the kernel's own runner.

Its files are beside this one, named tdc:<directory>:<name>. Without pyroute2, which is not in the
guest, tdc creates a namespace and its devices by a batch of `ip`, and continues as soon as the
namespace exists; with one processor, the devices do not exist yet then. So tdc gets an `ip` that
waits for the dummy device before it runs a command of a case.

Arguments: the files of cases. Reported: tdc's exit code, its result in TAP and the end of its
output.
"""
import subprocess
import sys
from pathlib import Path

import rig

PATIENT_IP = """#!/bin/sh
if [ "$1 $2" = "netns exec" ]; then
	until /sbin/ip -n "$3" -o link show up type dummy 2>/dev/null | grep -q dummy; do sleep 0.01; done
fi
exec /sbin/ip "$@"
"""

home, work = Path(sys.argv[0]).parent, Path("/tmp/tdc")
for source in home.glob("tdc:*"):
    target = work.joinpath(*source.name.split(":")[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
(work / "plugins").mkdir()
(work / "plugins/__init__.py").touch()
(work / "ip").write_text(PATIENT_IP)
(work / "ip").chmod(0o755)
(work / "tdc_config_local.py").write_text(f"EXTRA_NAMES = {{'IP': '{work}/ip'}}\n")
argv = [sys.executable, "tdc.py", "--format", "tap", "--outfile", "result", "--file", *(str(home / name) for name in sys.argv[1:])]
done = subprocess.run(argv, cwd=work, capture_output=True, text=True)
result = work / "result"
rig.report(code=done.returncode, tap=result.read_text() if result.exists() else "", words=(done.stdout + done.stderr)[-5000:])
