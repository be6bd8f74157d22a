"""The cases of kmod-patches/tdc and contrib/tdc, in the format of the kernel's tc-testing: by tdc
itself on Linux 6.12, those of our qdiscs also by a reader of ours on 6.12 and 6.1.

tdc comes out of Debian's package of the kernel's source, and only into the cache.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from tests.guest.checks import EXPECTED_LOG, KERNELS, QDISC, Guest, kernel_image
from tests.guest.vm import Job, Setup, run
from tests.support.nights import nightly

CASES = Path(__file__).parents[2] / "kmod-patches/tdc"
FILES = ["qjump.json", "qjump2015.json", "wire.json"]
MAINLINE = Path(__file__).parents[2] / "contrib/tdc/mainline.json"
"""Cases with traffic for qdiscs of the kernel; tdc alone runs them, as its shell is in them."""

OF_TDC = [*FILES, MAINLINE.name]
PLACE = "tools/testing/selftests/tc-testing/"
PARTS = (
    "tdc.py tdc_config.py tdc_helper.py TdcPlugin.py TdcResults.py plugin-lib/nsPlugin.py".split()
)
# Words of the tc plugins that a case must have used.
OPTIONS = {
    "qjump.json": "epoch bytes level factor unlimited limit priomap overhead mpu slack",
    "qjump2015.json": "epoch level unlimited",
    "wire.json": "rate limit classify pcp priority fifo overhead delay noorphan pause",
}


def cases(name: str) -> list[dict[str, Any]]:
    folder = MAINLINE.parent if name == MAINLINE.name else CASES
    found: list[dict[str, Any]] = json.loads((folder / name).read_text())
    return found


def runner() -> dict[str, str]:
    """tdc's files by their names in the job."""
    folder = toolbox.kernel_source([f"{PLACE}{name}" for name in PARTS], print) / PLACE
    return {f"tdc:{name.replace('/', ':')}": (folder / name).read_text() for name in PARTS}


@pytest.fixture(scope="module", params=nightly(KERNELS, but=[]))
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """What both runners left; tdc runs on its own kernel only, and not where its files cannot be
    had: `tdc` of the results says why."""
    checks, absent = [["tdc_cases", *FILES]], "tdc is Linux 6.12's"
    folder, sources = tmp_path_factory.mktemp("tdc"), QDISC / "checks"
    cases_of_ours = [CASES / name for name in FILES]
    mine = [sources / "rig.py", *sources.glob("tdc_*.py"), *cases_of_ours, MAINLINE]
    files = {path.name: path.read_text() for path in mine}
    if request.param == "6.12":
        try:
            files |= runner()
            checks.append(["tdc_kernel", *OF_TDC])
            absent = ""
        except MachineError as error:
            absent = str(error)
    files["plan.json"] = json.dumps({"checks": checks, "data": {}, "others": ["dummy"]})
    job = Job(script=(QDISC / "runner.py").read_text(), files=files, virtual_deadline_s=600)
    run(kernel_image(request.param), Setup(), job, folder)
    found = Guest.read(request.param, folder)
    found.results["tdc"] = absent
    return found


@pytest.mark.parametrize(
    ("name", "least"), [("qjump.json", 40), ("qjump2015.json", 10), ("wire.json", 15)]
)
def test_there_are_cases_for_every_option(name: str, least: int) -> None:
    words = {word for case in cases(name) for word in case["cmdUnderTest"].split()}
    assert len(cases(name)) >= least
    assert set(OPTIONS[name].split()) - {"pcp"} <= words


def test_ids_are_unique() -> None:
    ids = Counter(case["id"] for name in OF_TDC for case in cases(name))
    assert set(ids.values()) == {1}
    assert all(re.fullmatch("[0-9a-f]{4}", one) for one in ids)


@pytest.mark.guest
def test_tdc_passes_every_case(guest: Guest) -> None:
    if guest.results["tdc"]:
        pytest.skip(guest.results["tdc"])
    values = guest.values("tdc_kernel")
    failed = re.findall(r"^not ok.*?(?=^(?:not )?ok|\Z)", values["tap"], re.M | re.S)
    assert failed == [], values["words"]
    passed = re.findall(r"^ok \d+ ([0-9a-f]{4}) - (?!.*# skipped)", values["tap"], re.M)
    assert passed == [case["id"] for name in OF_TDC for case in cases(name)]
    assert values["code"] == 0


@pytest.mark.guest
def test_our_reader_passes_every_case_and_finds_nothing_left(guest: Guest) -> None:
    outcome = guest.values("tdc_cases")["cases"]
    assert {one: words for one, words in outcome.items() if words} == {}
    assert list(outcome) == [case["id"] for name in FILES for case in cases(name)]


@pytest.mark.guest
def test_the_kernel_log_stays_clean(guest: Guest) -> None:
    assert set(guest.results["log"]) <= EXPECTED_LOG
