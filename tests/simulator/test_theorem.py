"""The latency bound on urgent frames of mixed sizes (bench/theorem.py): a hundredth of a per cent of
them here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import marks, theorem


@pytest.mark.parametrize("rate_gbps", theorem.RATES_GBPS)
def test_no_urgent_frame_of_mixed_sizes_exceeds_the_bound(package: Path, rate_gbps: int) -> None:
    for hosts in theorem.HOSTS:
        together, random = (
            theorem.checked(rate_gbps, hosts, 2000, random=random) for random in (False, True)
        )
        assert max(together.of_bound, random.of_bound) <= 1
    assert together.of_bound > 0.9, "60 hosts that send at once come near it"


def test_epochs_a_quarter_shorter_break_the_bound(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        theorem, "epoch_ps", lambda rate_gbps, hosts: hosts * theorem.FULL * 6000 // rate_gbps
    )
    assert theorem.checked(10, 60, 2000, random=False).of_bound > 1


def test_page_tells_of_a_hundred_million_frames() -> None:
    rows = marks.read(theorem.PAGE, "theorem").splitlines()[2:]
    frames = [int(re.sub(r"\D", "", row.split("|")[2])) for row in rows]
    assert len(rows) == len(theorem.RATES_GBPS) and sum(frames) >= theorem.FRAMES
    assert all(row.endswith("| none |") for row in rows)
