"""Schemes with a congestion law in WebAssembly, by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qjump_mn.results import directory
from tests.simulator.short import command, figure_9
from tests.support.processes import CHECKOUT, execute
from tests.support.user_files import Write

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("package")]

FEW = figure_9(mining=20)[:5]
RENO = (CHECKOUT / "simulator/python/examples/reno.wat").read_text()


def scheme(law: str) -> str:
    return (
        'label = "mine"\nabout = "mine"\nlook = { colour = "#123456", marker = "o" }\n'
        f'only_simulated = true\n[simulator]\nlike = "tcp"\ntransport = {{ {law} }}\n'
    )


def test_reno_from_a_file_is_the_simulators_own(tmp_path: Path, own: Write) -> None:
    own("schemes/mine.toml", scheme('congestion = "custom", law = "reno.wat"'))
    own("schemes/reno.wat", RENO)
    own("schemes/other.toml", scheme('congestion = "reno"'))
    arms = "search_mine,search_other"
    argv = [*FEW, "-s", "sweeps.load.values=[0.6]", "--scheme", "mine", "--scheme", "other"]
    execute(command(tmp_path / "out", *argv, "--arms", arms))
    done = directory.existing(tmp_path / "out" / "last")
    rows = [
        (done.path / "trials" / f"{arm}_0_6/1/raw/search.csv").read_bytes()
        for arm in arms.split(",")
    ]
    assert rows[0] == rows[1] and rows[0].count(b"\n") > 50
    told = json.loads((done.asbuilt("search_mine_0_6/1") / "scenario.json").read_text())
    kept = told["scheme"]["congestion"]
    assert (kept["kind"], kept["ecn"], len(kept["law"]["sha256"])) == ("Custom", False, 64)


@pytest.mark.parametrize(
    ("law", "sentence"),
    [
        ('congestion = "custom"', "simulator.transport.law: a law in WebAssembly needs"),
        ('congestion = "reno", law = "mine.wat"',
         "simulator.transport.law: a law in WebAssembly needs congestion = 'custom' and its file"),
        ('congestion = "custom", law = "mine.wat"',
         "simulator.transport.law: mine.wat: a law must export its memory"),
        ('congestion = "custom", law = "bad.wat"',
         "simulator.transport.law: bad.wat: this is not WebAssembly: "),
        ('congestion = "custom", law = "none.wat"', "there is no file none.wat: put it into "),
    ],
)  # fmt: skip
def test_a_bad_law_is_refused_with_its_place(
    law: str, sentence: str, tmp_path: Path, own: Write
) -> None:
    own("schemes/mine.toml", scheme(law))
    own("schemes/mine.wat", "(module)")
    own("schemes/bad.wat", "(modul")
    done = execute(command(tmp_path / "out", *FEW[:3], "--scheme", "mine"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists()
