"""sch_qjump and sch_wire on several processors at once: tests/guest/qdisc/checks/smp_torture.py,
for a moment on the kernels of the guest, and long on those that look for errors and races
(kmod-patches/debug-kernels.md).

The clock is the host's, so that nothing of it is asserted: only that nothing breaks, hangs, or
stays.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from qjump_mn.toolbox import debug
from tests.guest.checks import EXPECTED_LOG, Guest, debug_module, job_of, kernel_image, of_note
from tests.guest.races import Races, races
from tests.guest.vm import Image, Job, Result, Setup, machine, prepare

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(10_800)]

PROCESSORS = 4
MODULES = ["sch_qjump", "sch_qjump2015", "sch_wire"]
SHORT = {"packets": 20_000, "operations": 300, "lines": 16}
LONG = {"packets": 1_000_000, "operations": 10_000, "lines": 60}
KINDS = {"change", "graft", "replace", "delete", "link", "move", "unload"}
SEED = 1

LIMIT = "LIMIT_S = 1200.0"
"""How long a check may take on the virtual clock: on the host's it may take as long as the
guest."""


def on_several(image: Image, job: Job, folder: Path, deadline_s: float) -> Result:
    memory_mb = debug.MEMORY_MB
    return machine.run(
        image,
        Setup(),
        job,
        folder,
        memory_mb=memory_mb,
        wall_deadline_s=deadline_s,
        processors=PROCESSORS,
    )


def tortured(
    image: Image,
    kernel: str,
    size: dict[str, int],
    folder: Path,
    *after: list[str],
    deadline_s: float,
) -> Guest:
    """A guest with several processors in which qjump and wire were tortured."""
    check = ["smp_torture", *map(str, size.values()), str(SEED)]
    job = job_of([check, *after], {}, deadline_s)
    assert job.script and LIMIT in job.script
    job = msgspec.structs.replace(job, script=job.script.replace(LIMIT, f"LIMIT_S = {deadline_s}"))
    result = on_several(image, job, folder, deadline_s)
    assert result.used
    print(f"{result.used.cpu_s:.0f} s of a processor")
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    results = json.loads((folder / "results.json").read_text())
    results["log"] = of_note(results["log"])
    return Guest(kernel, folder, results)


def debug_image(request: pytest.FixtureRequest, kernel: str) -> Image:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("the debug kernels are for `pytest -m slow`")
    return prepare(print, kernel=kernel)


def check_torture(guest: Guest, size: dict[str, int]) -> None:
    """All that was asked for was done, every sender sent, and nothing stays."""
    values = guest.values("smp_torture")
    assert values["stuck"] == []
    assert values["passed"] >= size["packets"]
    assert sum(values["operations"].values()) >= size["operations"]
    assert set(values["operations"]) >= KINDS
    assert len(values["sent"]) == 8 and min(values["sent"]) > 0


@pytest.mark.parametrize("kernel", ["6.12", "6.1", "7"])
def test_a_moment_of_torture(request: pytest.FixtureRequest, kernel: str, tmp_path: Path) -> None:
    if kernel != "6.12" and "slow" not in request.config.option.markexpr:
        pytest.skip("other kernels are for `pytest -m slow`")
    guest = tortured(kernel_image(kernel), kernel, SHORT, tmp_path, deadline_s=1800)
    check_torture(guest, SHORT)
    assert set(guest.results["log"]) <= EXPECTED_LOG


@pytest.mark.parametrize("kernel", ["6.12", "6.1", "7"])
def test_torture_at_length(request: pytest.FixtureRequest, kernel: str, tmp_path: Path) -> None:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("ten minutes of two processors are for `pytest -m slow`")
    guest = tortured(kernel_image(kernel), kernel, LONG, tmp_path, deadline_s=9000)
    print(guest.values("smp_torture"))
    check_torture(guest, LONG)
    assert min(guest.values("smp_torture")["pauses"]) > 0
    assert set(guest.results["log"]) <= EXPECTED_LOG


@pytest.fixture(scope="module")
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """Tortured under lockdep, KASAN and the others of the debug kernel."""
    image = debug_image(request, debug.SUITE)
    folder = tmp_path_factory.mktemp("watched")
    return tortured(image, "6.12", LONG, folder, ["kernel_health", *MODULES], deadline_s=9000)


@pytest.fixture(scope="module")
def raced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """Tortured under KCSAN."""
    image = debug_image(request, debug.RACES)
    return tortured(image, "6.12", LONG, tmp_path_factory.mktemp("raced"), deadline_s=9000)


def test_torture_under_lockdep_and_kasan(watched: Guest) -> None:
    check_torture(watched, LONG)
    assert min(watched.values("smp_torture")["pauses"]) > 0
    assert set(watched.results["log"]) <= EXPECTED_LOG
    assert watched.values("kernel_health") == {
        "before": "",
        "after": "",
        "removed": True,
        "lock_checker": 1,
    }


def test_torture_under_kcsan(raced: Guest) -> None:
    check_torture(raced, LONG)
    found = races(raced.results["log"])
    assert [race.text for race in found.ours] == []
    assert set(found.rest) <= EXPECTED_LOG
    assert raced.values("smp_torture")["kcsan"]["setup_watchpoints"] > 10_000


@pytest.fixture(scope="module")
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Races:
    """What KCSAN says of tests/guest/racing.c."""
    image = debug_image(request, debug.RACES)
    folder = tmp_path_factory.mktemp("planted")
    files = {"racing.ko": debug_module("racing", debug.RACES, folder)}
    job = job_of([["kcsan", "racing_add"]], files, 1800)
    assert on_several(image, job, folder, 1800).exit_code == 0
    guest = Guest("6.12", folder, json.loads((folder / "results.json").read_text()))
    assert guest.values("kcsan")["found"]
    return races(guest.results["log"], {"racing"})


def test_kcsan_reports_a_planted_race(planted: Races) -> None:
    assert {race.functions for race in planted.ours} == {
        ("racing_add [racing]", "racing_add [racing]")
    }
