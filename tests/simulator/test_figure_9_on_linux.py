"""Figure 9's preset of Linux compares with numbers of the simulator: they are those of today."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from qjump_mn.results import directory, outcome
from tests.support.processes import execute

COMPARED = re.compile(r"search_(tcp|short_rto|dctcp|qjump)\.search\.(\w+) / ([\d.]+)")


@pytest.mark.guest
def test_linux_is_compared_with_what_the_simulator_has_on_the_same_flows(
    package: Path, tmp_path: Path
) -> None:
    words = ("run", "fig9", "--preset", "linux", "--backend", "simulator", "--out", str(tmp_path))
    execute([sys.executable, "-m", "qjump_mn.run", *words])
    run = directory.existing(tmp_path / "last")
    arms = {arm.name: arm.measures["search"] for arm in outcome.read(run.path).arms}
    compared = {
        found
        for claim in run.manifest.plan.judged.claims.values()
        for found in COMPARED.findall(str(claim.shows))
    }
    assert len(compared) == 10, "three long means, four short ones and three 99th percentiles"
    for scheme, measure, number in compared:
        arm = "search_tcp" if scheme == "short_rto" else f"search_{scheme}"
        simulated = arms[arm][measure].median
        assert float(f"{simulated:.4g}") == float(number), (scheme, measure)
