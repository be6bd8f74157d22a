"""Run the cases of kmod-patches/tdc without tdc, and check that they leave nothing behind.

Arguments: the files. Reported: per case id what is wrong with it, empty if nothing is.
"""
import json
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import rig

NAMES = {"TC": "tc", "IP": "ip", "DUMMY": "dummy1"}


def run(command: str) -> tuple[int, str]:
    """Return exit code and output; like tdc, the output of a failed command is its errors."""
    done = subprocess.run(string.Template(command).substitute(NAMES).split(), capture_output=True, text=True)
    return done.returncode, done.stderr if done.returncode and done.stderr else done.stdout


def state() -> str:
    return rig.run("tc qdisc show").stdout + rig.run("ip -o link show").stdout


def wrong_with(case: dict[str, Any]) -> str:
    before = state()
    for command in case["setup"]:
        code, words = run(command)
        if code:
            return f"{command}: {words}"
    code, words = run(case["cmdUnderTest"])
    fault = "" if code == int(case["expExitCode"]) else f"exit code {code}: {words}"
    if not fault:
        _, words = run(case["verifyCmd"])
        found = len(re.findall(case["matchPattern"], words, re.DOTALL | re.MULTILINE))
        fault = "" if found == int(case["matchCount"]) else f"{found} matches in: {words}"
    for command in case["teardown"]:
        code, words = run(command)
        if code and not fault:
            fault = f"{command}: {words}"
    return fault or ("" if state() == before else f"left: {state()}")


rig.build()
rig.enter("a")
rig.run("ip link add dummy1 type dummy")
rig.run("ip link set dummy1 addrgenmode none up")
cases = [case for name in sys.argv[1:] for case in json.loads(Path(sys.argv[0]).with_name(name).read_text())]
rig.report(cases={case["id"]: wrong_with(case) for case in cases})
