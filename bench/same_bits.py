"""Check that a loaded arm gives the same bits in any surroundings: run it in several ways and hash
the results.

    python3 bench/same_bits.py [--kernel NAME=PATH]... [--qemu] [--write]

The arm is Figure 3a's contended one at 10 Gb/s, of 10 ms. A PATH is another build of the guest's
kernel, such as by another compiler. `--qemu` also runs it in a machine that QEMU translates
(qjump_mn/guest/outer_machine.py), which takes some minutes. `--write` replaces the table in
docs/emulation.md; without it, print the table. Needs root, to run as other users.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import machine, marks
from qjump_mn import guest
from qjump_mn.backends.guest import RUN_TRIAL, setup
from qjump_mn.resolve import plan
from qjump_mn.steps.compile import trial_steps
from qjump_mn.toolbox import outer_machine
from tests.guest import trees
from tests.support.load import busy_host

PAGE = ROOT / "docs/emulation.md"
LOADED = ["warmup=5ms", "duration=10ms"]
NOBODY = 65534

RUN = """
import pickle, sys
from pathlib import Path
{first}
from qjump_mn.guest import run
image, setup, job, out = pickle.load(sys.stdin.buffer)
print(run(image, setup, job, Path(out)).sha256["result"])
"""
RANDOM_ADDRESSES = """
from qjump_mn.guest import fence
text = Path(fence.__file__).read_text()
kept = [line for line in text.splitlines() if "personality(" not in line]
assert len(kept) == len(text.splitlines()) - 1
Path(sys.argv[1], "fence.py").write_text("\\n".join(kept))
fence.__file__ = sys.argv[1] + "/fence.py"
"""


class Way(NamedTuple):
    """A way to run the arm: other code before, another environment, another user."""

    first: str = ""
    environment: Mapping[str, str] = MappingProxyType({})
    user: int | None = None
    loops: int = 0
    qemu: str | None = None
    """Its options, where QEMU runs a machine around it."""


WAYS = {
    "unchanged": Way(),
    "again": Way(),
    "beside two busy loops per core": Way(loops=2 * len(os.sched_getaffinity(0))),
    "with random host addresses (ASLR)": Way(first=RANDOM_ADDRESSES),
    "another user, locale, time zone, folder and environment": Way(
        user=NOBODY,
        environment={"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "MALLOC_PERTURB_": "85"},
    ),
}


PROCESSORS = {
    "inside QEMU's translator, under another kernel": "",
    "the same, on a processor without AVX, AVX2, PKU and LA57": "-cpu max,-avx,-avx2,-pku,-la57",
}


def main() -> None:
    """Run, and print or write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--kernel", action="append", default=[], metavar="NAME=PATH")
    arguments.add_argument("--qemu", action="store_true")
    arguments.add_argument("--write", action="store_true")
    args = arguments.parse_args()
    image = guest.prepare(lambda line: print(line, file=sys.stderr))
    ran = {name: one(image, way) for name, way in WAYS.items()}
    for name, _, path in (text.partition("=") for text in args.kernel):
        ran[f"kernel: {name}"] = one(msgspec.structs.replace(image, kernel=Path(path)), Way())
    if args.qemu:
        around = msgspec.structs.replace(
            image, outer=outer_machine.machine(lambda line: print(line, file=sys.stderr))
        )
        for name, options in PROCESSORS.items():
            ran[name] = one(around, Way(qemu=options))
    text = table(ran)
    if args.write:
        marks.write(PAGE, "same-bits", text)
    else:
        print(text)


def table(ran: dict[str, str]) -> str:
    """Return the table, with a row for each way."""
    first = next(iter(ran.values()))
    rows = [f"{machine.description()}:\n", "| run | SHA-256 of its result | |", "|---|---|---|"]
    for name, digest in ran.items():
        rows.append(
            f"| {name} | `{digest[:16]}` | {'the same' if digest == first else '**differs**'} |"
        )
    return "\n".join(rows)


def one(image: guest.Image, way: Way) -> str:
    """Return the hash of the arm's output."""
    (trial,) = plan("fig3a", "paper", LOADED, only=["contended"], replicates=1).trials()
    job = guest.Job(
        entry=RUN_TRIAL, args={"steps": msgspec.to_builtins(trial_steps(trial))}, seed=trial.seed
    )
    with tempfile.TemporaryDirectory() as folder, busy_host(way.loops):
        if way.user is not None:
            os.chown(folder, way.user, way.user)
        environment = {
            **os.environ,
            "HOME": folder,
            "TMPDIR": folder,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        if way.qemu is not None:
            program = trees.qemu_program(Path(folder, "bin"), way.qemu)
            environment["PATH"] = f"{program.parent}:{environment['PATH']}"
        done = subprocess.run(
            [sys.executable, "-c", RUN.format(first=way.first), folder],
            input=pickle.dumps((image, setup(trial.network.skeleton()), job, f"{folder}/out")),
            env={**environment, **way.environment},
            stdout=subprocess.PIPE,
            user=way.user,
            cwd=folder,
            extra_groups=None if way.user is None else [],
            check=True,
        )
    return done.stdout.decode().strip()


if __name__ == "__main__":
    main()
