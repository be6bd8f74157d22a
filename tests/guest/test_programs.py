"""The workloads' programs in the guest: they run, and leave what a parser needs; and that ptpd
costs next to nothing, on a virtual machine."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from qjump_mn.guest import Image, Job, Setup, run
from qjump_mn.programs.memcaslap import parse as memcaslap
from qjump_mn.toolbox import build
from tests.guest import trees, vm
from tests.guest.programs_job import LOAD_FROM_S, LOAD_S, PTP_S
from tests.native.barrier.barrier import read

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def out(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What programs_job.py leaves, from one guest for all tests here."""
    folder = tmp_path_factory.mktemp("programs")
    job = Job(script=Path(__file__).with_name("programs_job.py").read_text())
    assert run(image, Setup(), job, folder, progress=print).exit_code == 0, (
        folder / "stderr"
    ).read_text()
    return folder


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What it leaves of ptpd on a virtual machine, on whose clock programs take time."""
    folder = tmp_path_factory.mktemp("timed")
    image = vm.prepare(print, extra=build.native_programs(trees.toolbox(), print))
    script = Path(__file__).with_name("programs_job.py").read_text()
    result = vm.run(image, Setup(), Job(script=script, files={"ptp alone": ""}), folder)
    assert result.exit_code == 0, (folder / "stderr").read_text()
    return folder


def test_every_program_is_there(out: Path) -> None:
    said = json.loads((out / "versions.json").read_text())
    assert said["memcached"].startswith("memcached 1.6.")
    memcaslap.check_version(said["memcaslap"])
    assert said["ptpd"] == "ptpd2 version 2.3.1\n"
    assert said["ptp4l"].startswith("4.")
    assert said["barrier"].startswith("usage: barrier")


def test_memaslap_is_served(out: Path) -> None:
    rows = memcaslap.parse((out / "memcached.txt").read_text(), 0)
    gets, sets = (next(row[3] for row in rows if row[:2] == ("run", op)) for op in ("GET", "SET"))
    assert gets + sets == 10_000 and abs(gets - 9 * sets) < 20, (
        "nine of ten are GETs, connection by connection"
    )


def test_a_barrier_of_four_is_done_with_before_the_next_begins(out: Path) -> None:
    assert json.loads((out / "barrier.json").read_text()) == 0
    logs = [read(out / f"barrier.{process}") for process in range(4)]
    assert {log.last["rows"] for log in logs} == {300} and {log.last["late"] for log in logs} == {0}
    assert max(end - start for log in logs for start, end in log.rows) < 2_000_000


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
def test_ptpd_idles_at_a_level_above_the_load(timed: Path) -> None:
    """Its messages wait for one frame of 1.2 ms at most, so their send times come in time; what the
    library is not needed for."""
    used = json.loads((timed / "ptp.json").read_text())
    assert max(used["urgent.master"][1:] + used["urgent.slave"][1:]) < 1


@pytest.mark.nightly
def test_ptpd_without_send_times_from_the_device_idles(timed: Path) -> None:
    used = json.loads((timed / "ptp.json").read_text())
    for name in ("stamps.master", "stamps.slave", "plain.master", "plain.slave"):
        print(
            name,
            f"{sum(used[name][1:]) / (PTP_S - 1):.3f} ms of processor time a second, at most "
            f"{max(used[name][1:]):.3f}",
        )
        assert max(used[name][1:]) < 1


@pytest.mark.parametrize("name", ["stamps", "plain"])
def test_ptpd_measures_the_time_on_the_wire(out: Path, name: str) -> None:
    assert "Now in state: PTP_SLAVE" in (out / f"{name}.slave.txt").read_text()
    rows = [
        row
        for row in csv.reader((out / f"{name}.slave.csv").open())
        if len(row) == 17 and not row[0].startswith("#")
    ]
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
    if name == "stamps":
        assert max(down_us) > 50_000, (
            "its messages waited behind the flood, and their send times are from before that"
        )
