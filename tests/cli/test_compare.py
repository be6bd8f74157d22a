"""``compare``: which plans, which measures, how many times, and the picture."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from qjump_mn.analysis import pipeline
from qjump_mn.cli import compare, compare_figure
from qjump_mn.errors import UsageError
from qjump_mn.results import directory, manifest
from qjump_mn.session import Request
from tests.support import synthetic
from tests.support.screen import Screen


def made(folder: Path, settings: tuple[str, ...] = (), replicates: int = 1) -> Path:
    run = synthetic.make(
        folder, replicates=replicates, settings=[*settings], only=["idle", "contended"]
    )
    request = Request(
        "fig3a", "smoke", settings, replicates=replicates, arms=("idle", "contended"), out=folder
    )
    typed(run.path, *request.argv())
    pipeline.analyse(run.path)
    return run.path


def typed(path: Path, *argv: str) -> None:
    """Enter a command line into the manifest of a run."""
    manifest.write(path, replace(manifest.read(path), argv=argv))


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("usual"), replicates=3)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with half of the buffer: the contended arm's latency is half."""
    return made(tmp_path_factory.mktemp("small"), ("link.buffer=76100B",), replicates=3)


def shown(*paths: Path) -> str:
    out = Screen(120)
    compare.show(compare.read(paths), out)
    return out.text


def row(text: str, arm: str, measure: str) -> str:
    after = text[text.index(f"\n{arm} ") :]
    return next(line for line in after.splitlines() if measure in line)


def test_runs_lie_side_by_side(usual: Path, small: Path) -> None:
    text = shown(usual, small)
    assert text.startswith(f"A  {usual}: fig3a, preset smoke, 3 seeds from 1, ")
    assert "\nB has link.buffer=76100B, A link.buffer=152.2kB\n\narm " in text
    assert re.search(r"\(1, 1 to 1\)$", row(text, "ping alone", "median"))
    found = re.search(r"\(([\d.]+), ([\d.]+) to ([\d.]+)\)$", row(text, "ping + iperf3", "median"))
    assert found and 0.7 < float(found[2]) <= float(found[1]) <= float(found[3]) < 1.0
    assert text.endswith("with its 95 % interval\n")


def test_options_are_compared_as_typed(usual: Path, tmp_path: Path) -> None:
    """Also those that no plan has."""
    other = shutil.copytree(usual, tmp_path / "other")
    words = tuple("qjump-mn run fig3a --preset smoke --replicates 3 --arms idle,contended".split())
    typed(other, *words, "--backend", "guest", "-s", "link.rate=10Mbit", "--out", "elsewhere")
    assert "\nB has --backend guest, A no --backend\nB has the plan of A\n\narm" in shown(
        usual, other
    )
    typed(other, *words, "--seed", "2")
    assert "\nB has --seed 2, A --seed 1\nB has the plan of A\n\narm" in shown(usual, other)


def test_untyped_plan_is_compared_by_its_names(usual: Path, small: Path, tmp_path: Path) -> None:
    """As where the experiment's file has changed since."""
    other = shutil.copytree(small, tmp_path / "other")
    typed(other, *manifest.read(usual).argv)
    assert "\nB has arms.*.network.link.buffer_bytes 76100, A 152200\n" in shown(usual, other)
    typed(other, "qjump-mn", "run", "fig3a", "--preset", "smoke", "-s", "link.gone=1")
    text = shown(usual, other)
    assert "\nB has link.gone=1, A no link.gone\n" in text
    assert "\nB has arms.*.network.link.buffer_bytes 76100, A 152200\n" in text


def test_another_kernel_is_said(usual: Path, tmp_path: Path) -> None:
    paths = [shutil.copytree(usual, tmp_path / name) for name in ("a", "b", "c")]
    for path, machine in zip(
        paths, ({"kernel": "6.12.1"}, {"kernel": "7.3.4"}, {"kernel": ""}), strict=True
    ):
        directory.existing(path).enter_machine(machine)
    text = shown(*paths)
    assert "\nB ran on Linux 7.3.4, A on 6.12.1\nB has the plan of A\nC has the plan of A\n" in text


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    path = made(tmp_path)
    text = shown(path, path)
    assert " (1)" in text
    assert " to " not in text.split("\n\n")[1]
    assert "with three seeds or more" in text


def test_what_cannot_be_compared_is_refused(usual: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^compare needs two runs or more: name their run directories$"
    ):
        compare.read([usual])
    with pytest.raises(UsageError, match=r"^compare takes 26 runs at most \(got 27\): name fewer$"):
        compare.read([usual] * 27)
    with pytest.raises(UsageError, match="there is no run directory"):
        compare.read([usual, tmp_path / "none"])
    copy = shutil.copytree(usual, tmp_path / "copy")
    (copy / "verdicts.json").unlink()
    with pytest.raises(UsageError, match=r"has no verdicts\.json: run  qjump-mn report"):
        compare.read([usual, copy])


def test_runs_without_a_common_arm_are_refused(usual: Path, tmp_path: Path) -> None:
    other = made(tmp_path)
    verdicts = (other / "verdicts.json").read_text()
    (other / "verdicts.json").write_text(
        verdicts.replace('"name": "idle"', '"name": "x"').replace(
            '"name": "contended"', '"name": "y"'
        )
    )
    with pytest.raises(
        UsageError, match=r"^the runs \(of fig3a\) cannot be compared: no arm was measured in all"
    ):
        shown(usual, other)


@pytest.mark.parametrize("ending", compare_figure.ENDINGS)
def test_latencies_are_drawn_together(
    ending: str, usual: Path, small: Path, tmp_path: Path
) -> None:
    compare_figure.write(compare.read([usual, small]), tmp_path / f"both{ending}")
    content = (tmp_path / f"both{ending}").read_bytes()
    assert content.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending])


def test_a_picture_that_cannot_be_is_refused(usual: Path, tmp_path: Path) -> None:
    runs = compare.read([usual, usual])
    with pytest.raises(
        UsageError, match=r"both\.gif does not end in \.png, \.svg or \.pdf: name a picture"
    ):
        compare_figure.write(runs, tmp_path / "both.gif")
    with pytest.raises(UsageError, match="cannot be written: no such file or directory"):
        compare_figure.write(runs, tmp_path / "none/both.png")
    copy = shutil.copytree(usual, tmp_path / "copy")
    for data in copy.glob("trials/*/*/data/ping.parquet"):
        data.unlink()
    with pytest.raises(UsageError, match="no latencies of the same arm: there is nothing to draw"):
        compare_figure.write(compare.read([usual, copy]), tmp_path / "both.png")
