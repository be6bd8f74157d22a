"""The scripts of examples/mininet, run in the machine as docs/mininet.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

pytestmark = pytest.mark.guest


def printed(tmp_path: Path, name: str, *options: str) -> str:
    """What the script prints."""
    script = CHECKOUT / "examples/mininet" / name
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "mn", *options, str(script)]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_ways_give_twice_as_much(tmp_path: Path) -> None:
    text = printed(tmp_path, "multipath.py")
    flows = [float(rate) for rate in re.findall(r"16 flows over \d ways?: ([\d.]+)", text)]
    one, two = (float(rate) for rate in re.findall(r"subflows?: ([\d.]+) Mb/s", text))
    assert 7 < flows[0] < 9.7 and 14 < flows[1] < 19.4, text
    assert "1 way: " in text and "100 %, 0 %" in text
    assert 9 < one < 9.7 and 18 < two < 19.4, text


def test_hosts_have_ipv6_addresses_of_their_routers_prefix(tmp_path: Path) -> None:
    text = printed(tmp_path, "ipv6.py", "--packages", "radvd")
    assert re.search(r"'h1': '2001:db8::\w+:\w+:\w+:\w+', 'h2': '2001:db8:1:", text), text
    (rate,) = re.findall(r"TCP: ([\d.]+) Mb/s", text)
    assert 9 < float(rate) < 9.6
    assert " 1  2001:db8::1 " in text


def test_routers_find_the_way_around_within_their_dead_interval(tmp_path: Path) -> None:
    text = printed(tmp_path, "ospf.py", "--packages", "frr")
    before, after = text.split("the link of r1 and r2 fails")
    assert " 2  10.0.12.2 " in before and " 2  10.0.13.2 " in after, text
    (lost,) = re.findall(r"of 100 pings (\d+) are lost", text)
    assert 20 <= int(lost) <= 32, "3 s, less up to one hello interval"
