"""What stands for the machines of the courses' code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import courses

SCRIPT = """\
export PATH=$PWD/shim:$PATH PYTHONPATH=$PWD/shim:$PYTHONPATH
insmod sch_qjump.ko verbose=4 bytesq=256 timeq=192000 p1rate=1 p5rate=100 p7rate=9999999
ip link add d0 type dummy
tc qdisc add dev d0 root handle 6: qjump && tc qdisc show dev d0
python3 -c 'from mininet.node import OVSHtbQosSwitch as switch; print(switch.__name__)'
"""


@pytest.mark.parametrize("year", courses.EDITS)
def test_edits_that_find_nothing_are_refused(year: str, tmp_path: Path) -> None:
    for name, edits in courses.EDITS[year].items():
        (tmp_path / name).write_text("\n".join(edits))
    courses.prepare(year, tmp_path)
    for name, edits in courses.EDITS[year].items():
        assert (tmp_path / name).read_text() == "\n".join(edits.values())
    assert (tmp_path / "shim/tc").stat().st_mode & 0o111
    with pytest.raises(ValueError, match="take a fresh copy"):
        courses.prepare(year, tmp_path)


@pytest.mark.guest
def test_shim_gives_the_published_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    courses.write_shim("2016", tmp_path)
    (tmp_path / "run.sh").write_text(SCRIPT)
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "mn", "--", "bash", "run.sh"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout.splitlines()
    assert shown[0].startswith("qdisc qjump2015 6: root") and "192ms" in shown[0]
    assert shown[-1] == "PrioritySwitch"
