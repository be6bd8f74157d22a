"""The package in examples/extension: built, installed beside ours, and used from the command
line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.install import environment

EXTENSION = environment.CHECKOUT / "examples" / "extension"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")


def install(source: Path, site: Path) -> Path:
    """Build the package and install it into the folder ``site``, both without a network."""
    wheels = site / "built"
    built = (
        *PIP,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(wheels),
        str(source),
    )
    subprocess.run(built, check=True, capture_output=True, text=True)
    (wheel,) = wheels.glob("*.whl")
    placed = (*PIP, "install", "--no-deps", "--target", str(site), str(wheel))
    subprocess.run(placed, check=True, capture_output=True, text=True)
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(EXTENSION, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with a program that cannot be imported."""
    folder = tmp_path_factory.mktemp("broken")
    source = Path(shutil.copytree(EXTENSION, folder / "source"))
    (source / "src/qjump_mn_lossy/echo.py").write_text("raise ImportError('no libecho')\n")
    return install(source, folder / "site")


def python(site: Path, *argv: str, text: str = "") -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{environment.CHECKOUT}"}
    variables.pop("QJUMP_MN_PATH", None)
    whole = (sys.executable, "-P", *argv)
    return subprocess.run(
        whole, cwd=site, env=variables, input=text, capture_output=True, text=True, check=False
    )


def qjump_mn(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(site, "-m", "qjump_mn.run", *arguments)


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_list_has_its_experiment_and_its_scheme(site: Path) -> None:
    words = [line.split()[:1] for line in good(qjump_mn(site, "list")).splitlines()]
    assert ["lossy"] in words and ["gentle"] in words
    assert ["fig3a"] in words, "ours are there too"


def test_explain_says_what_its_experiment_does(site: Path) -> None:
    text = good(qjump_mn(site, "explain", "lossy", "--all"))
    assert "network: dumbbell, 4 hosts, 10 Mb/s links (model wire)" in text
    assert "copy.ping.jitter_ms > 10 * idle.ping.jitter_ms" in text
    assert "scheme gentle" in text


def test_dry_run_prints_the_commands_of_its_program_and_of_its_links(site: Path) -> None:
    text = good(qjump_mn(site, "run", "lossy", "--dry-run"))
    assert "qdisc add dev s1-eth3 root handle 5: netem limit 100 delay 0ns loss 1% seed " in text
    assert "def serve(port: int)" in text


def test_its_parts_serve_our_experiments(site: Path) -> None:
    settings = (
        "-s",
        "link.model=lossy",
        "-s",
        "figure.plot=strips",
        "-s",
        "figure.table=['ping.jitter_ms']",
    )
    arms = ("--arms", "idle,gentle", "--scheme", "gentle")
    text = good(qjump_mn(site, "run", "fig3a", "--dry-run", *arms, *settings))
    assert "netem limit 100" in text and " wire " not in text
    assert "qjau -p 0 -w 30000 --library -- iperf3" in text, "the scheme's window"


def test_users_files_come_before_its_own_and_those_before_ours(site: Path) -> None:
    script = "from qjump_mn.resolve import loading; print(*loading.folders('schemes'), sep='\\n')"
    ours = environment.CHECKOUT / "schemes"
    folders = good(python(site, "-c", script)).splitlines()
    assert folders == [str(site / "schemes"), str(site / "qjump_mn_lossy/schemes"), str(ours)]


PARSE = """
from qjump_mn.errors import LostError
from qjump_mn_lossy.echo import parse
print(parse("1 842.125\\n2 lost\\n", 2))
for text, count in (("1 842.125\\n", 2), ("1 nan\\n", 1)):
    try:
        parse(text, count)
    except LostError as error:
        print(error)
"""


def test_its_program_reads_what_it_prints_and_nothing_else(site: Path) -> None:
    assert good(python(site, "-c", PARSE)).splitlines() == [
        "[842.125, None]",
        "it has 1 lines, which are not those of 2 datagrams",
        "it has round trips that are no numbers",
    ]


# What tc printed in the guest, without the counters; by the guest's Linux 6.12.
NETEM: dict[str, Any] = {
    "kind": "netem",
    "dev": "s1-eth1",
    "root": True,
    "options": {
        "limit": 100,
        "loss-random": {"loss": 0.01, "correlation": 0},
        "rate": {"rate": 1250000, "packetoverhead": 28, "cellsize": 0, "celloverhead": 0},
        "seed": 358681693,
        "ecn": False,
        "gap": 0,
    },
}

READ_BACK = """
import json, sys
from qjump_mn.links import registry
from qjump_mn import resolve
arms = {arm.name: arm for arm in resolve.plan("lossy", "smoke", []).arms}
link = arms["lossy"].network.link
print(*registry.of("lossy").differences(json.load(sys.stdin), link, on_switch=True), sep="\\n")
"""


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        ({}, []),
        ({"loss-random": {"loss": 0.02}}, ["its netem's loss is 0.02, not 0.01"]),
        (
            {"rate": {}, "limit": 9},
            ["its netem's limit is 9, not 100", "its netem's rate is None, not 1250000"],
        ),
    ],
    ids=["as planned", "loss", "rate and limit"],
)
def test_its_links_are_compared_with_what_was_read_back(
    change: dict[str, Any], sentences: list[str], site: Path
) -> None:
    qdisc = {**NETEM, "options": {**NETEM["options"], **change}}
    printed = good(python(site, "-c", READ_BACK, text=json.dumps([qdisc])))
    assert printed.splitlines() == (sentences or [""])


def test_a_module_that_cannot_be_imported_is_one_sentence_and_ends_what_uses_it_only(
    broken: Path,
) -> None:
    done = qjump_mn(broken, "run", "lossy", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "qjump-mn: qjump-mn-lossy adds 'echo' to qjump_mn.programs, but "
        "qjump_mn_lossy.echo:PROGRAM cannot be imported (ImportError: no libecho): repair or "
        "uninstall qjump-mn-lossy\n"
    )
    assert "qdisc add" in good(qjump_mn(broken, "run", "fig3a", "--dry-run"))
    assert "gentle" in good(qjump_mn(broken, "list"))


@pytest.mark.guest
def test_its_experiment_runs_to_its_verdicts(site: Path, tmp_path: Path) -> None:
    done = qjump_mn(site, "run", "lossy", "--preset", "smoke", "--out", str(tmp_path))
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    run = tmp_path / "last"
    assert (run / "fig/strips.png").stat().st_size > 30_000
    verdicts = json.loads((run / "verdicts.json").read_text())
    jitter = {
        arm["name"]: arm["measures"]["ping"]["jitter_ms"]["median"] for arm in verdicts["arms"]
    }
    assert (
        set(jitter) == {"idle", "lossy", "copy", "gentle"} and 0 < jitter["idle"] < jitter["copy"]
    )
    assert {row["claim"]: row["verdict"] for row in verdicts["verdicts"]}[
        "lossy_loses"
    ] == "REPRODUCED"
    assert {check["name"]: check["status"] for check in verdicts["checks"]}["as built"] == "pass"
    read_back = json.loads((run / "trials/lossy/1/asbuilt/before/tc-switches.json").read_text())
    assert {qdisc["kind"] for qdisc in read_back if "-eth" in qdisc.get("dev", "")} == {"netem"}
