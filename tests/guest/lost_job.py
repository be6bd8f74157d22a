"""Runs in the guest: a trial for each case, with one program hidden or replaced.

test_lost.py judges what they leave."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from executor import steps, trial
from executor.errors import QJumpError

AWAY = Path("/tmp/away")
FAKES = {
    "dies": 'echo "no such luck" >&2; exit 3',
    "half": 'exec timeout -s KILL {seconds} {real} "$@"',
    "silent": 'exec {real} "$@" > /dev/null 2>&1',
    # The program itself gets the signals, and is the one that is waited for.
    "other": "exec {real} \"$@\" > >(sed -u '1s/^# {name} 1/# {name} 2/')",
}


@contextmanager
def treated(name: str, fate: str, seconds: float) -> Iterator[None]:
    """The program is not there, or something else in its place, as FAKES says."""
    place = Path(str(shutil.which(name)))
    real = AWAY / name
    shutil.move(place, real)
    if fate in FAKES:
        line = FAKES[fate].format(name=name, real=real, seconds=seconds)
        place.write_text(f"#!/bin/bash\n{line}\n")
        place.chmod(0o755)
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        shutil.move(real, place)


def code_of(network: trial.Network, todo: object, folder: Path) -> int:
    """The exit code of a trial, after which the network is as before."""
    try:
        network.trial(steps.decode(todo), folder, lambda line: None)
    except QJumpError as error:
        (folder / trial.MESSAGE).write_text(f"{error}\n")
        return int(error.exit_code)
    return 0


plan = json.loads(Path(__file__).with_name("plan.json").read_text())
AWAY.mkdir()
# Where bash looks for what it is to write to; the guest has no udev.
Path("/dev/fd").symlink_to("/proc/self/fd")
trial.bring_up({"steps": plan["openvswitch"]})
out = Path.cwd()
codes: dict[str, int] = {}
with trial.Network() as network:
    network.build(steps.decode(plan["up"]), Path("/tmp"))
    for case, (arm, program, fate, seconds) in plan["cases"].items():
        folder = out / case
        folder.mkdir()
        with treated(program, fate, seconds):
            codes[case] = code_of(network, plan["trials"][arm], folder)
        shutil.rmtree(folder / "asbuilt")
(out / "codes.json").write_text(json.dumps(codes))
