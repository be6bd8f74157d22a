"""ptpd in the guest measures the time on the wire, and on a virtual machine costs next to nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from qjump_mn.guest import Image, Job, Setup
from qjump_mn.toolbox import build
from tests.guest import trees, vm
from tests.guest.laboratory import run_well
from tests.guest.programs_job import LOAD_FROM_S, LOAD_S

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def out(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What programs_job.py leaves, from one guest for all tests here."""
    folder = tmp_path_factory.mktemp("programs")
    job = Job(script=Path(__file__).with_name("programs_job.py").read_text())
    run_well(image, Setup(), job, folder)
    return folder


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What it leaves of ptpd on a virtual machine, on whose clock programs take time."""
    folder = tmp_path_factory.mktemp("timed")
    image = vm.prepare(print, extra=build.native_programs(trees.toolbox(), print))
    script = Path(__file__).with_name("programs_job.py").read_text()
    result = vm.run(image, Setup(), Job(script=script), folder)
    assert result.exit_code == 0, (folder / "stderr").read_text()
    return folder


@pytest.mark.nightly
def test_ptpd_spins_when_its_send_times_come_late(timed: Path) -> None:
    """Why there is native/ptp-stamps: when this fails, ptpd or the kernel has changed, and it may
    go.

    The wire stamps a message when it starts; behind the flood that is 120 ms after ptpd sent it,
    which waits for 10 ms.
    """
    used = json.loads((timed / "ptp.json").read_text())["late.master"]
    assert max(used[1:LOAD_FROM_S]) < 1, "before its link is full it idles"
    assert min(used[LOAD_FROM_S + LOAD_S + 1 :]) > 900, "and then never again"


@pytest.mark.nightly
@pytest.mark.parametrize("case", ["urgent", "stamps", "plain"])
def test_ptpd_idles_otherwise(timed: Path, case: str) -> None:
    """At a level above the load (urgent) its messages wait for one frame of 1.2 ms at most, so their
    send times come in time; or without send times of the device, with the library."""
    used = json.loads((timed / "ptp.json").read_text())
    assert max(used[f"{case}.master"][1:] + used[f"{case}.slave"][1:]) < 1


@pytest.mark.parametrize("name", ["stamps", "plain"])
def test_ptpd_measures_the_time_on_the_wire(out: Path, name: str) -> None:
    assert "Now in state: PTP_SLAVE" in (out / f"{name}.slave.txt").read_text()
    table = csv.reader((out / f"{name}.slave.csv").open())
    rows = [row for row in table if len(row) == 17 and not row[0].startswith("#")]
    # In s: the last column when a delay request has been answered (D), the one before for each
    # message of the master (S).
    up_us = [float(row[16]) * 1e6 for row in rows if row[8].strip() == "D"]
    down_us = [float(row[15]) * 1e6 for row in rows if row[8].strip() == "S"]
    assert len(up_us) >= 5 and len(down_us) >= 5
    wire_us = (8 + 14 + 4 + 20 + 8 + 44 + 4) * 8 / 10
    # Without stamps of the device a message's time of sending is that of a copy which ptpd
    # receives: a thread of the kernel may delay it by 20 us.
    tolerance_us = 10 if name == "stamps" else 30
    assert min(up_us) == pytest.approx(wire_us, abs=tolerance_us)
    assert min(down_us) == pytest.approx(wire_us, abs=tolerance_us)
    # Messages waited behind the flood, and their send times are from before that.
    assert name == "plain" or max(down_us) > 50_000
