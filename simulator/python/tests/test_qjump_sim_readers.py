"""Files of other programs and editors, against the formulas with which those programs draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from qjump_sim import FIG9, Flows, Poisson, Scenario, Sizes, run

# As HPCC's traffic_gen writes them: bytes from 0 on, and per cent.
HPCC = "0 0\n10000 15\n20000 20\n50000 40\n200000 60\n1000000 97.5\n3000000 100\n"
# As the files for htsim in opera-sim: bytes and a share, with a comma.
OPERA = "4000,0\n5971,0.07704918\n8722,0.152459016\n18614,0.3\n193593,0.601639344\n1933313,1\n"
PAYLOAD = 1_460


def rows(text: str) -> list[tuple[float, float]]:
    numbers = [[float(word) for word in line.replace(",", " ").split()] for line in text.splitlines()]
    whole = numbers[-1][1]
    return [(size, share / whole) for size, share in numbers]


def share_of(size: float, text: str) -> float:
    """The share of flows that are not larger, as HPCC's custom_rand.py has it: linear in bytes."""
    sizes, shares = zip(*rows(text), strict=True)
    return float(np.interp(size, sizes, shares))


def packets_at(share: float, text: str) -> int:
    """The packets of the flow at this share, as HPCC's custom_rand.py and whole packets give them."""
    sizes, shares = zip(*rows(text), strict=True)
    return max(1, math.ceil(float(np.interp(share, shares, sizes)) / PAYLOAD))


@pytest.fixture(params=[HPCC, OPERA], ids=["HPCC", "opera-sim"])
def distribution(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Sizes]:
    (tmp_path / "sizes").write_text(request.param)
    return request.param, Sizes.read(tmp_path / "sizes", payload=PAYLOAD)


def test_sizes_in_bytes_have_the_shares_of_whole_packets(distribution: tuple[str, Sizes]) -> None:
    text, sizes = distribution
    packets, shares = (np.array(column) for column in zip(*sizes.points, strict=True))
    assert packets[0] == math.ceil(max(1, rows(text)[0][0]) / PAYLOAD) and packets[-1] == math.ceil(rows(text)[-1][0] / PAYLOAD)
    for count in range(int(packets[0]), int(packets[-1])):
        # The simulator's sizes are linear between points and rounded up: the last point at a size counts.
        assert np.interp(count + 1e-9, packets, shares) == pytest.approx(share_of(count * PAYLOAD, text), abs=1e-6), count


def test_sizes_in_bytes_have_their_mean(distribution: tuple[str, Sizes]) -> None:
    text, sizes = distribution
    count = 20_000
    expected = np.array([packets_at((step + 0.5) / count, text) for step in range(count)])
    drawn = run(Scenario(FIG9, "tcp", Poisson(sizes, 0.5, count), stop=0)).packets
    # Five standard errors.
    assert abs(drawn.mean() - expected.mean()) < 5 * expected.std() / math.sqrt(count)


def test_flows_have_seconds_as_python_prints_them(tmp_path: Path) -> None:
    seconds = [0.0, 1e-05, 1.5e-07, 2.5e-12, 0.1, 12.25, 1e-3 + 1e-12]
    (tmp_path / "flows").write_text("".join(f"{start} 0 1 6\n" for start in seconds))
    expected = [0, 10_000_000, 150_000, 2, 100_000_000_000, 12_250_000_000_000, 1_000_000_001]
    assert Flows.read(tmp_path / "flows").start.tolist() == expected


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \t\r\n", "\r\n\r\n"])
def test_files_of_editors_are_read(coding: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "sizes").write_bytes(f"# sizes{end}3 0{end}\t6  0.5{end}9;1{end}".encode(coding))
    (tmp_path / "flows").write_bytes(f"# flows{end}0.5 3 17 6{end}1e-05\t1 2 9".encode(coding))
    assert Sizes.read(tmp_path / "sizes") == Sizes([(3, 0.0), (6, 0.5), (9, 1.0)])
    assert Flows.read(tmp_path / "flows") == Flows([500_000_000_000, 10_000_000], [3, 1], [17, 2], [6, 9])


@pytest.mark.parametrize(
    ("text", "payload", "sentence"),
    [
        ("", None, ": expected a size and a share, with or without a count between in each line (got no line)"),
        ("3 0\n3 x\n", None, ": line 2: expected a size and a share, with or without a count between (got '3 x')"),
        ("3 0\n\n3.5 1\n", None, ": line 3: expected a size and a share, with or without a count between (got '3.5 1')"),
        ("3 0 0 0\n", None, ": line 1: expected a size and a share, with or without a count between (got '3 0 0 0')"),
        ("0 0\n3 1\n", None, ": line 1: expected a packet or more; sizes in bytes need `payload` (got 0)"),
        ("-1 0\n3 1\n", 1460, ": line 1: expected a size of 0 or more (got -1)"),
        ("1 0.1\n3 1\n", None, ": line 1: expected the share 0 of flows that are not larger than the smallest size (got 0.1)"),
        ("3 0\n2 1\n", None, ": line 2: expected a size not below the one before it, 3 (got 2)"),
        ("1 0\n2 60\n3 50\n4 100\n", None, ": line 3: expected a share not below the one before it, 60 (got 50)"),
        ("1 0\n2 nan\n4 100\n", None, ": line 2: expected a share not below the one before it, 0 (got nan)"),
        ("1 0\n# more\n4 97.5\n", None, ": line 3: expected a share of 1, or 100 per cent, at the largest size (got 97.5)"),
        ("1 0\n4 \xff\n", None, ": line 2: expected text in UTF-8"),
    ],
)
def test_a_refused_file_says_line_and_expectation(text: str, payload: int | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError) as error:
        Sizes.read(path, payload)
    assert str(error.value) == f"{path}{sentence}"


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (Flows.read, "0 0 1 6\n0.1 0 1 6.5\n", "line 2: expected seconds, source, destination and packets (got 0.1 0 1 6.5)"),
        (Flows.read, "0 0 1 6\nnan 0 1 6\n", "line 2: expected seconds, source, destination and packets (got nan 0 1 6)"),
        (Flows.read, "0 0 1\n", "line 1: expected seconds, source, destination and packets (got 0 0 1)"),
    ],
)
def test_a_refused_list_says_line_and_expectation(read: Callable[[Path], Flows], text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "flows").write_text(text)
    with pytest.raises(ValueError) as error:
        read(tmp_path / "flows")
    assert str(error.value) == f"{tmp_path / 'flows'}: {sentence}"


def test_a_payload_is_a_number_of_bytes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^payload: 0 is not a number of bytes above 0$"):
        Sizes.read(tmp_path / "sizes", payload=0)
