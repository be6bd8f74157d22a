"""Run Mininet's own tests in the machine, and write their results into docs/mininet.md, between the
marks of this benchmark.

    python bench/mininet_suite.py CHECKOUT [--only TEXT] [--write]

CHECKOUT is a checkout of Mininet 2.3.1b4, which is not a part of this project. Each test runs in a
machine of its own by `qjump-mn mn`. `--only` takes the tests with the text in their names.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks

PAGE = Path(__file__).parent.parent / "docs/mininet.md"
MARKS = "mininet_suite"
FOLDERS = ("mininet/test", "examples/test")
DEADLINE = "300s"

_OFDATAPATH = "Debian has no ofdatapath"
_CONTROLLER = "the controller of today's Open vSwitch does not forget where a host was"
_SSHD = "sshd's configuration is written when its package is installed; here it is unpacked"
_SHARE = "code takes no time in the machine, so there is no share of a processor"
WHY = {
    "test_hifi.testOptionsTopoOVSKernel.testCPULimits": _SHARE,
    "test_cpu.testCPU.testCPU": _SHARE,
    "test_limit.testLimit.testLimit": _SHARE,
    "test_controlnet.testControlNet.testFailover": _OFDATAPATH,
    "test_controlnet.testControlNet.testPingall": _OFDATAPATH,
    "test_scratchnet.testScratchNet.testPingUser": _OFDATAPATH,
    "test_treeping64.testTreePing64.testTreePing64": _OFDATAPATH,
    "test_walkthrough.testWalkthrough.testOwnNamespace": _OFDATAPATH,
    "test_walkthrough.testWalkthrough.testSwitches": _OFDATAPATH,
    "test_walkthrough.testWalkthrough.testHostCommands": "the machine has no network card",
    "test_mobility.testMobility.testMobility": _CONTROLLER,
    "test_nat.testNAT.testNAT": "there is no internet",
    "test_baresshd.testBareSSHD.testSSH": _SSHD,
    "test_sshd.testSSHD.testSSH": _SSHD,
    "test_clusterSanity.clusterSanityCheck.testClusterPingAll": "there is one machine",
}
"""Why a test fails here, by its name; one that fails without a reason fails the benchmark."""

PACKAGES = {"test_walkthrough.testWalkthrough.testWireshark": "tshark"}
"""The Debian package that a test needs."""

NOT_RUN = {
    "test_tree1024.testTree1024.testTree1024": "a million pings, which take days of a processor",
}
"""Why a test is not run at all."""

LIST = """
import unittest, sys
def each(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from each(one)
        else:
            print("test:", one.id())
sys.path.insert(0, sys.argv[1])
list(each(unittest.defaultTestLoader.discover(sys.argv[1])))
"""


class Ended(NamedTuple):
    """How a test ended: ok, skipped, failed or not run, with the last line that says why, and after
    how many seconds on the machine's clock."""

    name: str
    result: str
    why: str
    seconds: float


def main() -> None:
    """Run, print and, if asked, write."""
    words = argparse.ArgumentParser()
    words.add_argument("checkout", type=Path)
    words.add_argument("--only", default="")
    words.add_argument("--write", action="store_true")
    asked = words.parse_args()
    tests = [
        (folder, name)
        for folder in FOLDERS
        for name in listed(asked.checkout, folder)
        if asked.only in name
    ]
    ended = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for one in pool.map(lambda test: tried(asked.checkout, *test), tests):
            ended.append(one)
            print(*one, flush=True)
    unknown = [one.name for one in ended if one.result == "failed" and one.name not in WHY]
    print(table(ended))
    if asked.write:
        marks.write(PAGE, MARKS, table(ended))
    if unknown:
        sys.exit(f"failed without a reason: {', '.join(unknown)}")


def listed(checkout: Path, folder: str) -> list[str]:
    """Return the names of the tests in a folder of the checkout."""
    _, printed, _ = in_machine(checkout, "python3", "-c", LIST, folder)
    return re.findall(r"^test: (\S+)$", printed, re.MULTILINE)


def tried(checkout: Path, folder: str, name: str) -> Ended:
    """Run one test."""
    if name in NOT_RUN:
        return Ended(name, "not run", NOT_RUN[name], 0.0)
    # A name alone does not find a test that is a static method.
    script = f"cd {folder} && exec python3 -m unittest -v -k {name} {name.partition('.')[0]}"
    packages = [PACKAGES[name]] if name in PACKAGES else []
    code, printed, said = in_machine(checkout, "sh", "-c", script, packages=packages)
    lines = [line for line in printed.splitlines() if line.strip()]
    skipped = re.search(r"skipped ['\"](.*)['\"]", printed)
    result = "skipped" if skipped else "ok" if code == 0 else "failed"
    after = re.search(r"after ([\d.]+) s on the machine's clock", said)
    errors = [line for line in lines if re.match(r"\w*(Error|Exception|TIMEOUT)\b", line)]
    why = skipped[1] if skipped else "" if code == 0 else (errors or lines or [said])[-1]
    return Ended(name, result, why[:200], float(after[1]) if after else 0.0)


def in_machine(checkout: Path, *command: str, packages: Sequence[str] = ()) -> tuple[int, str, str]:
    """Run a command in a machine that has the checkout; return its exit code, what it printed and
    what was said about it."""
    options = ["--mininet", str(checkout), "--in", str(checkout), "--deadline", DEADLINE]
    options += ["--packages", *packages] if packages else []
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "mn", *options, "--", *command]
    environment = {**os.environ, "PYTHONPATH": str(PAGE.parent.parent)}
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
    )
    return done.returncode, done.stdout, done.stderr


def table(ended: Sequence[Ended]) -> str:
    """Return the results as Markdown: how many passed, each one that did not, and why others skip
    themselves."""
    count = Counter(one.result for one in ended)
    return "\n".join(
        [
            f"{count['ok']} of {len(ended)} tests pass, {count['skipped']} skip themselves, "
            f"{count['failed']} fail and {count['not run']} was not run:",
            "",
            "| test | result | why |",
            "|---|---|---|",
            *_rows(ended),
        ]
    )


def _rows(ended: Sequence[Ended]) -> Iterator[str]:
    for one in ended:
        if one.result in ("failed", "not run"):
            yield f"| `{one.name}` | {one.result} | {_cell(WHY.get(one.name, one.why))} |"
    for why, count in Counter(one.why for one in ended if one.result == "skipped").items():
        yield f"| {count} test{'s' * (count > 1)} | skipped | {_cell(why)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
