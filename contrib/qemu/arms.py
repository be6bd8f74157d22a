"""Whether a loaded arm of ours comes out the same without rr=record: Figure 3a's `contended`, forked from
snapshots beside busy loops, by several QEMUs with and without rr=record.

    python contrib/qemu/arms.py [--runs 5] [--write contrib/qemu/README.md] NAME=PROGRAM...

It runs in the project's environment. There are two snapshots, for the state of a recording loads in a
recording only: the usual one, and one that is made now, by the first PROGRAM without rr=record. Prints of
each way how many runs came out otherwise than most from the same snapshot, in what they measured and on the
console, and what a run cost; `--write` replaces the table between the two marks in that file.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench import marks
from qjump_mn import guest
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.cache import hash_of
from qjump_mn.guest import snapshots
from qjump_mn.guest.cores import core
from qjump_mn.guest.job import Image, Setup, Snapshot
from qjump_mn.guest.machine import Stop, machine, qemu_argv
from qjump_mn.model.plan import Trial
from qjump_mn.model.resolve import plan
from qjump_mn.results.manifest import sha256_of
from tests.load import busy_host

RECORD = ",rr=record,rrfile=/dev/null"
MEMORY_MB = 1024


@dataclass
class Way:
    """One way to run it, and what came of it."""

    name: str
    program: str
    record: bool
    results: list[str] = field(default_factory=list)
    consoles: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def use(self) -> None:
        """Let guests be started this way from now on."""
        guest.qemu_argv = snapshots.qemu_argv = self.argv  # type: ignore[assignment, attr-defined]

    def argv(self, *arguments: object, **words: bool) -> list[str]:
        """Our command line, with this program."""
        argv = qemu_argv(*arguments, **words)  # type: ignore[arg-type]
        argv[: argv.index("-L")] = [self.program]
        return argv if self.record else [word.replace(RECORD, "") for word in argv]


def main() -> None:
    """Run all ways in turn, and print."""
    parser = argparse.ArgumentParser(description="whether a loaded arm needs rr=record")
    parser.add_argument("qemus", nargs="+", metavar="NAME=PROGRAM", help="a qemu-system-x86_64")
    parser.add_argument("--runs", type=int, default=5, help="of each QEMU, with and without rr=record")
    parser.add_argument("--write", type=Path, help="a file with the marks of bench/arms")
    options = parser.parse_args()
    pairs = [one.partition("=") for one in options.qemus]
    for name, _, program in pairs:
        if not os.access(program, os.X_OK):
            parser.error(f"{name}: a QEMU is given as NAME=PROGRAM, the path of a program")
    ways = [Way(name, program, record) for name, _, program in pairs for record in (False, True)]
    resolved = plan("fig3a", "smoke", ["duration=1s", "warmup=1s"])
    trial = next(trial for trial in resolved.trials() if trial.arm.name == "contended")
    with tempfile.TemporaryDirectory() as scratch:
        recorded, free = GuestBackend(), GuestBackend()
        recorded.prepare(resolved, print)
        ways[0].use()
        guest.snapshot = partial(bring_up, Path(scratch, "snapshot"))
        free.prepare(resolved, print)
        with busy_host():
            for number in range(options.runs):
                for way in ways:
                    way.use()
                    out = Path(scratch, f"{way.name}-{way.record}-{number}")
                    once(way, recorded if way.record else free, trial, out)
    text = table(ways)
    print(text)
    if options.write:
        marks.write(options.write, "arms", text)


def bring_up(folder: Path, image: Image, setup: Setup, *_: object, **__: object) -> Snapshot:
    """A snapshot that is made now, in `folder`."""
    folder.mkdir()
    with core() as number:
        start = partial(machine, core=number, stop=Stop())
        snapshots._bring_up(image, setup, folder, print, MEMORY_MB, 600, start)
    return Snapshot(folder, image, setup, MEMORY_MB, sha256_of(folder / "state"), True, 0.0)


def once(way: Way, backend: GuestBackend, trial: Trial, out: Path) -> None:
    """One run, and what it left and cost."""
    before = busy_s()
    ended = backend.run(trial, out, print)
    if ended.exit_code:
        sys.exit(f"{way.name}: a run was lost: {ended.message}")
    way.seconds.append(busy_s() - before)
    sums = {str(path.relative_to(out)): sha256_of(path) for path in sorted(out.rglob("*")) if path.is_file()}
    way.consoles.append(sums.pop("console.log"))
    way.results.append(hash_of(*(f"{name} {value}" for name, value in sums.items())))
    record = ", rr=record" if way.record else ""
    print(f"{way.name}{record}: {way.results[-1]}, {way.seconds[-1]:.1f} s", flush=True)


def table(ways: list[Way]) -> str:
    """The Markdown table."""
    lines = [
        "| QEMU | rr=record | runs | results differ | consoles differ | processor s, median |",
        "|---|---|---|---|---|---|",
    ]
    for way in ways:
        group = [other for other in ways if other.record == way.record]
        results = odd(way.results, [one for other in group for one in other.results])
        consoles = odd(way.consoles, [one for other in group for one in other.consoles])
        record = "yes" if way.record else "no"
        cost_s = statistics.median(way.seconds)
        lines.append(
            f"| {way.name} | {record} | {len(way.results)} | {results} | {consoles} | {cost_s:.1f} |"
        )
    return "\n".join([f"{time.strftime('%Y-%m-%d', time.gmtime())}:", "", *lines])


def odd(own: list[str], all_of_them: list[str]) -> int:
    """How many of a way's own are not what most are."""
    usual = Counter(all_of_them).most_common(1)[0][0]
    return sum(one != usual for one in own)


def busy_s() -> float:
    """How long this process's children kept a processor busy, of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
