"""The cases of kmod-patches/tdc in tdc, the kernel's own runner, whose files lie beside this one as tdc:<folder>:<name>.

Arguments: the files of cases. Reported: tdc's exit code, its result in TAP and the end of what it printed.
"""
import subprocess
import sys
from pathlib import Path

import rig

home, work = Path(sys.argv[0]).parent, Path("/tmp/tdc")
for source in home.glob("tdc:*"):
    target = work.joinpath(*source.name.split(":")[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
(work / "plugins").mkdir()
(work / "plugins/__init__.py").touch()
argv = [sys.executable, "tdc.py", "--format", "tap", "--outfile", "result", "--file", *(str(home / name) for name in sys.argv[1:])]
done = subprocess.run(argv, cwd=work, capture_output=True, text=True)
result = work / "result"
rig.report(code=done.returncode, tap=result.read_text() if result.exists() else "", words=(done.stdout + done.stderr)[-5000:])
