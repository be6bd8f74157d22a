"""The real `doctor`: it runs a job in a guest, ends within 20 s whatever else runs, and builds
nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from qjump_mn import cache, toolbox
from qjump_mn.cli import doctor
from qjump_mn.guest import Image
from qjump_mn.install import environment
from qjump_mn.toolbox import machines
from tests.guest.test_cores import HOLD
from tests.support.result_store import VARIABLE

pytestmark = [pytest.mark.guest, pytest.mark.slow]

LIMIT_S = 20.0
BUILT = {"machine", "build", "image", "image-base", "um-kernel"}
"""The kinds of artefacts that a guest is made of, but for the toolbox."""

LOOP = "while True: pass"


class Said(NamedTuple):
    """What the command printed, how it ended, and how long it took."""

    text: str
    code: int
    seconds: float

    @property
    def code_without_guest(self) -> int:
        """The exit code that its other findings ask for."""
        others = (line for line in self.text.splitlines() if not line.startswith("missing  guest"))
        return 3 if any(line.startswith("missing") for line in others) else 0


def run_doctor(
    slots: Path, *words: str, cores: Iterable[int] = (), variables: Mapping[str, str] | None = None
) -> Said:
    """Run it with a queue of its own for cores, in the folder ``slots``, on some of the cores or on
    all."""
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    on = cores or os.sched_getaffinity(0)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "qjump_mn.run", "doctor", *words],
        env={**kept, "TMPDIR": str(slots), **(variables or {})},
        cwd=environment.CHECKOUT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, on),
    )
    assert not done.stderr
    return Said(done.stdout, done.returncode, time.monotonic() - began)


@contextmanager
def running(code: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    argv, env, pipe = [sys.executable, "-c", code], {**os.environ, **variables}, subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, text=True, env=env, cwd=environment.CHECKOUT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def cache_without(folder: Path, kinds: set[str]) -> dict[str, str]:
    """The variable that names a cache with all of this machine's but these kinds."""
    for root in reversed(cache.roots()):
        for path in root.iterdir() if root.is_dir() else ():
            if path.is_dir() and path.name not in kinds:
                (folder / path.name).unlink(missing_ok=True)
                (folder / path.name).symlink_to(path)
    return {"QJUMP_MN_CACHE": str(folder)}


def test_it_boots_and_runs_a_job(image: Image, tmp_path: Path) -> None:
    said = run_doctor(tmp_path)
    assert "\nok       guest: boots and runs a job\n" in said.text
    assert (said.code, said.seconds < LIMIT_S) == (said.code_without_guest, True)


def test_it_does_not_wait_for_those_who_have_the_cores(image: Image, tmp_path: Path) -> None:
    with ExitStack() as stack:
        pids = []
        for _ in os.sched_getaffinity(0):
            holder = stack.enter_context(running(HOLD, TMPDIR=str(tmp_path)))
            assert holder.stdout is not None and holder.stdout.readline()
            pids.append(str(holder.pid))
            stack.enter_context(running(LOOP))
        said, as_json = run_doctor(tmp_path), run_doctor(tmp_path, "--json")
    which = f"pids {', '.join(pids)}" if len(pids) > 1 else f"pid {pids[0]}"
    sentence = f"not tried, all cores are taken ({which}); try again later"
    assert f"\nunknown  guest: {sentence}\n" in said.text
    assert "experiments do not run here" not in said.text or said.code_without_guest
    for one in (said, as_json):
        assert (one.code, one.seconds < LIMIT_S) == (said.code_without_guest, True)
    findings = msgspec.json.decode(as_json.text)["findings"]
    (found,) = (one for one in findings if one["what"] == "guest")
    assert (found["state"], found["says"], found["remedy"]) == ("unknown", sentence, "")


def test_a_guest_that_is_late_is_ended(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(doctor, "START_S", 0.0)
    found = doctor._boot(print, time.monotonic() + 0.5)
    assert found[0] is doctor.State.UNKNOWN
    busy = r"not done within \d s, this machine is busy or slow; try again later"
    assert re.fullmatch(busy, found[1])
    assert not list(tmp_path.glob("qjump-mn-[0-9]*")), "nothing of it is left"


def test_it_builds_nothing(image: Image, tmp_path: Path) -> None:
    if toolbox.found() is None:
        pytest.skip("the toolbox is not built")
    folder, slots = tmp_path / "cache", tmp_path / "slots"
    folder.mkdir()
    slots.mkdir()
    variables = {**cache_without(folder, BUILT), machines.VARIABLE: ""}
    before = sorted(folder.iterdir())
    said = run_doctor(slots, variables=variables)
    assert "\nmissing  guest: the guest is not built yet: the um-kernel is missing\n" in said.text
    assert said.code == 3 and said.seconds < LIMIT_S
    assert sorted(folder.iterdir()) == before
