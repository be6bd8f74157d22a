"""sch_qjump and sch_wire on the debug kernel (docs/debug-kernel.md): nothing is reported, and what they do is right.

All checks of test_qdisc.py run there in one boot, and all its assertions hold but those of RELAXED. For `pytest -m slow`.
"""

from __future__ import annotations

import base64
import inspect
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.errors import MachineError
from qjump_mn.guest import Image, Setup, debug, prepare, run
from tests.guest import test_qdisc as quick

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(7200)]

OURS = ["sch_qjump", "sch_wire"]

# Assertions of test_qdisc.py that are of a kernel whose instructions are as many as Debian's, and why they fail on this one.
RELAXED: dict[str, str] = {}

for name, check in vars(quick).items():
    if name.startswith("test_") and "guest" in inspect.signature(check).parameters and name not in RELAXED:
        globals()[name] = check  # with this module's fixture `guest`


@pytest.fixture(scope="module")
def image(request: pytest.FixtureRequest) -> Image:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("the debug kernel is for `pytest -m slow`")
    try:
        return prepare(print, kernel_suite=debug.SUITE)
    except MachineError as error:
        pytest.skip(str(error))


def measured(image: Image, checks: list[list[str]], modules: dict[str, str], folder: Path) -> quick.Guest:
    """Boot the debug kernel, load the modules and run the checks."""
    result = run(image, quick.job_of(checks, modules, 3000), folder, setup=Setup(), memory_mb=debug.MEMORY_MB, wall_deadline_s=7000)
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    return quick.Guest("6.12", folder, json.loads((folder / "results.json").read_text()))


@pytest.fixture(scope="module")
def guest(image: Image, tmp_path_factory: pytest.TempPathFactory) -> quick.Guest:
    return measured(image, [*quick.QUICK, ["kernel_health", *OURS]], {}, tmp_path_factory.mktemp("debug"))


@pytest.fixture(scope="module")
def broken(image: Image, tmp_path_factory: pytest.TempPathFactory) -> quick.Guest:
    """The debug kernel with tests/guest/broken.c."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copy(Path(__file__).with_name("broken.c"), folder)
    (folder / "Makefile").write_text("obj-m := broken.o\n")
    kernel = debug.kernel_tree()
    kernel.run(["make", "-C", f"/usr/lib/modules/{kernel.kernel_release}/build", "M=/build", "modules"], folder)
    module = base64.b64encode(zlib.compress((folder / "broken.ko").read_bytes(), 9)).decode()
    return measured(image, [["kernel_health"]], {"broken": module}, folder)


def test_no_memory_is_lost_and_lockdep_watched_to_the_end(guest: quick.Guest) -> None:
    assert guest.values("kernel_health") == {"before": "", "after": "", "removed": True, "lock_checker": 1}


def test_what_is_relaxed_exists() -> None:
    assert set(RELAXED) <= set(vars(quick))


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("BUG: KASAN: slab-use-after-free in", "broken_use"),
        ("WARNING: possible circular locking dependency detected", "broken_order"),
        ("BUG: sleeping function called from invalid context at", "broken.c:"),
        ("UBSAN: shift-out-of-bounds in", "broken.c:"),
        ("ODEBUG: free active (active state 0) object:", "hrtimer"),
    ],
)
def test_the_debug_kernel_reports_a_mistake(broken: quick.Guest, what: str, where: str) -> None:
    log = broken.results["log"]
    assert any(what in line for line in log), log
    assert any(where in line for line in log), log


def test_the_debug_kernel_reports_a_leak(broken: quick.Guest) -> None:
    values: dict[str, Any] = broken.values("kernel_health")
    assert values["before"].count("unreferenced object") == values["before"].count("broken_leak") == 10
    assert values["lock_checker"] == 0
