"""sch_qjump and sch_wire on several processors at once: tests/guest/qdisc/checks/smp_torture.py, on
Debian's kernels and on those that look for errors and races (kmod-patches/debug-kernels.md).

The clock is the host's, so that nothing of it is asserted: only that nothing breaks, hangs, or
stays.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from qjump_mn.toolbox import debug
from tests.guest.checks import EXPECTED_LOG, KERNELS, Guest, debug_module, job_of, kernel_image
from tests.guest.races import Races, races
from tests.guest.test_kernels import HEALTHY
from tests.guest.vm import Image, Job, Result, Setup, machine, prepare

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(10_800)]

PROCESSORS = 4
MODULES = ["sch_qjump", "sch_qjump2015", "sch_wire"]
SIZE = {"packets": 1_000_000, "operations": 10_000, "lines": 60}
DEADLINE_S = 9000.0
KINDS = {"change", "graft", "replace", "delete", "link", "move", "unload"}
SEED = 1

LIMIT = "LIMIT_S = 1200.0"
"""How long a check may take on the virtual clock: on the host's it may take as long as the
guest."""


def on_several(image: Image, job: Job, folder: Path, deadline_s: float) -> Result:
    return machine.run(
        image, Setup(), job, folder,
        memory_mb=debug.MEMORY_MB, wall_deadline_s=deadline_s, processors=PROCESSORS,
    )  # fmt: skip


def tortured(image: Image, kernel: str, folder: Path, *after: list[str]) -> Guest:
    """A guest with several processors in which qjump and wire were tortured."""
    check = ["smp_torture", *map(str, SIZE.values()), str(SEED)]
    job = job_of([check, *after], {}, DEADLINE_S)
    assert job.script and LIMIT in job.script
    job = msgspec.structs.replace(job, script=job.script.replace(LIMIT, f"LIMIT_S = {DEADLINE_S}"))
    result = on_several(image, job, folder, DEADLINE_S)
    assert result.used
    print(f"{result.used.cpu_s:.0f} s of a processor")
    return Guest.read(kernel, folder)


def debug_image(request: pytest.FixtureRequest, kernel: str) -> Image:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("the debug kernels are for `pytest -m slow`")
    return prepare(print, kernel=kernel)


def check_torture(guest: Guest) -> None:
    """All that was asked for was done, every sender sent, and nothing stays."""
    values = guest.values("smp_torture")
    assert values["stuck"] == []
    print(values)
    assert values["passed"] >= SIZE["packets"]
    assert sum(values["operations"].values()) >= SIZE["operations"]
    assert set(values["operations"]) >= KINDS
    assert len(values["sent"]) == 8 and min(values["sent"]) > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_torture_of_debians_kernels(
    request: pytest.FixtureRequest, kernel: str, tmp_path: Path
) -> None:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("ten minutes of two processors are for `pytest -m slow`")
    guest = tortured(kernel_image(kernel), kernel, tmp_path)
    check_torture(guest)
    assert min(guest.values("smp_torture")["pauses"]) > 0
    assert set(guest.results["log"]) <= EXPECTED_LOG


@pytest.fixture(scope="module")
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """Tortured under lockdep, KASAN and the others of the debug kernel."""
    image, folder = debug_image(request, debug.SUITE), tmp_path_factory.mktemp("watched")
    return tortured(image, "6.12", folder, ["kernel_health", *MODULES])


@pytest.fixture(scope="module")
def raced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """Tortured under KCSAN."""
    return tortured(debug_image(request, debug.RACES), "6.12", tmp_path_factory.mktemp("raced"))


def test_torture_under_lockdep_and_kasan(watched: Guest) -> None:
    check_torture(watched)
    assert min(watched.values("smp_torture")["pauses"]) > 0
    assert set(watched.results["log"]) <= EXPECTED_LOG
    assert watched.values("kernel_health") == HEALTHY


def test_torture_under_kcsan(raced: Guest) -> None:
    check_torture(raced)
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
    on_several(image, job, folder, 1800)
    guest = Guest.read("6.12", folder)
    assert guest.values("kcsan")["found"]
    return races(guest.results["log"], {"racing"})


def test_kcsan_reports_a_planted_race(planted: Races) -> None:
    both = ("racing_add [racing]", "racing_add [racing]")
    assert {race.functions for race in planted.ours} == {both}
