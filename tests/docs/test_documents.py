"""The documents: every link in them leads somewhere, and what they say of the project is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import qjump_mn
from bench import readme
from qjump_mn import theory
from tests.cli.test_help import names_what_exists, parsed

PINGS = ("idle", "p50_ms"), ("qjump", "max_ms"), ("contended", "p50_ms")
ROOT = Path(qjump_mn.__file__).parents[1]
DOCUMENTS = sorted(
    path
    for folder in ("", *"docs contrib examples kmod-patches mininet-qos native simulator".split())
    for path in (ROOT / folder).glob("*.md" if folder in ("", "docs") else "**/*.md")
    if "target" not in path.parts
)


def anchors(path: Path) -> set[str]:
    """What a document's headings are called in links."""
    found = set()
    for line in re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL).splitlines():
        if heading := re.match(r"#+ (.*)", line):
            words = re.sub(r"[^\w\- ]", "", heading[1].replace("`", "").lower())
            found.add(words.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{link}: there is no {target}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: {sorted(anchors(target))}"


def commands(path: Path) -> list[str]:
    """Return the command lines in a document's boxes, without their comments."""
    boxes = re.findall(r"```\w*\n(.*?)```", path.read_text(), flags=re.DOTALL)
    lines = [line.partition("  #")[0] for box in boxes for line in box.splitlines()]
    return [line for line in lines if re.match("(sudo )?qjump-mn ", line)]


@pytest.mark.parametrize(
    "path", [*filter(commands, DOCUMENTS)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_parser_takes_every_command_of_a_document(path: Path) -> None:
    for line in commands(path):
        parsed(line)


def test_the_readme_names_experiments_arms_and_settings_that_exist() -> None:
    lines = commands(ROOT / "README.md")
    assert {line.split()[1] for line in lines} >= {"run", "mn", "new", "compare"}
    for line in lines:
        names_what_exists(line)


def test_who_cites_names_this_version() -> None:
    assert f"version: {qjump_mn.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_note_for_mininet_has_the_figures_of_mininet_qos() -> None:
    note = (ROOT / "contrib/mininet/README.md").read_text()
    rows = re.findall(r"^\| (?:links|`).*\|$", note, re.M)
    assert len(rows) == 4
    assert set(rows) <= set((ROOT / "mininet-qos/README.md").read_text().splitlines())


def test_what_is_emulated_beside_what_is_simulated_is_of_the_reference_runs() -> None:
    def frames(experiment: str, preset: str, arm: str, workload: str, measure: str) -> float:
        rate_bps = 10e9 if preset == "10g" else 10e6
        frame_ms = 8e3 * theory.wire_bytes(1500) / rate_bps
        return readme.reference_values(experiment, preset)[arm][workload][measure] / frame_ms

    ping = [frames("fig3a", "10g", arm, "ping", measure) for arm, measure in PINGS]
    alone, job = (
        [frames("fig7", preset, arm, "memcached", "mean_ms") for preset in ("smoke", "10g")]
        for arm in ("memcached_alone", "qjump")
    )
    text = " ".join((ROOT / "docs/similarity.md").read_text().split())
    assert f"an idle ping takes {ping[0]:.2f} frames at both rates" in text
    assert f"by theory at both, and {ping[1]:.2f} as simulated" in text
    assert f"The contended median is {ping[2]:.0f} frames there" in text
    asked = f"takes {alone[0]:.2f} frames in the mean as emulated at 10 Mb/s and {alone[1]:.2f} as simulated"
    assert asked in text and f"beside the job with QJump {job[0]:.2f} and {job[1]:.2f}." in text
