"""Where benchmarks write in the documents."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from bench import (
    anew,
    cores,
    fat_tree,
    figure_data,
    figures,
    first_run,
    manual,
    marks,
    qdisc,
    readme,
    reference,
    schemes,
    simulator,
)
from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.backends import building
from qjump_mn.cli import command_lines
from qjump_mn.model import identity
from qjump_mn.programs import registry
from qjump_mn.results import outcome
from qjump_mn.results.manifest import write
from tests.support import synthetic
from tests.support.processes import execute

DOCUMENT = "# Head\n\n<!-- bench/cost begin -->\nold\n\nlines\n<!-- bench/cost end -->\n\ntail\n"
DOCS = Path(__file__).parents[2] / "docs"


def test_only_what_lies_between_the_marks_changes(tmp_path: Path) -> None:
    path = tmp_path / "document.md"
    path.write_text(DOCUMENT)
    assert marks.read(path, "cost") == "old\n\nlines"
    marks.write(path, "cost", "new")
    assert path.read_text() == DOCUMENT.replace("old\n\nlines", "new")
    marks.write(path, "cost", marks.read(path, "cost"))
    assert path.read_text() == DOCUMENT.replace("old\n\nlines", "new")


def test_what_a_packet_costs_is_what_was_measured() -> None:
    """The tables of docs/qdisc-cost.md, and the sentences below them."""
    document, measured = (DOCS / "qdisc-cost.md").read_text(), json.loads(qdisc.FIGURES.read_text())
    for table in qdisc.tables(measured):
        assert table in document
    costs = measured["6.12"]["qdiscs"]

    def share(level: int) -> str:
        of = [
            cost for name, cost in costs.items() if re.fullmatch(rf"qjump_1\w+_level{level}", name)
        ]
        whole = costs[f"prio8_tbf_level{level}"]
        return spread([cost / whole for cost in of], 2)

    def spread(ratios: list[float], decimals: int) -> str:
        ends = (f"{ratio:.{decimals}f}" for ratio in (min(ratios), max(ratios)))
        return " to ".join(dict.fromkeys(ends))

    dearest = costs["qjump_1us_one_frame"] / costs["pfifo"]
    bpf, bare = measured["7"]["qdiscs"], costs["qjump_priorities"]
    prio, ets, cake = (costs[name] for name in ("prio8_level0", "ets8_level0", "cake"))
    for sentence in (
        f"(the dearest: {dearest:.2f} x pfifo on 6.12)",
        f"{costs['fq']:.0f} are `fq`'s own and {costs['bpf_times_fq_level0'] - costs['fq']:.0f} "
        "the program",
        f"In the BPF qdisc {bpf['bpf_qdisc_unlimited']:.0f} of {bpf['bpf_qdisc_level0']:.0f} are "
        "reached",
        f"At level 0 a limited level costs {share(0)} of what `prio` with `tbf` does",
        f"at level 7 it is {share(7)} (6.12)",
        f"nothing costs {bare / prio:.0%} of `prio` with eight bands, {bare / ets:.0%} of `ets` "
        f"and {bare / cake:.0%} of `cake`",
        f"and {bare / costs['bfifo_queues'] - 1:.0%} more than a FIFO that queues each packet",
        f"of the {costs['wire']:.0f} instructions",
    ):
        assert sentence in " ".join(document.split()), sentence
    times = bpf["bpf_qdisc_level0"] / bpf["qjump_10ms_level0"]
    compared = " ".join((DOCS / "qdisc.md").read_text().split())
    assert f"costs {times:.1f} times as much as qjump (a limited level 0, Linux 7.3)" in compared


def test_web_search_flows_have_the_published_sizes_and_rate() -> None:
    assert [simulator.size(share) for share in (0.0, 0.15, 0.175, 0.2, 0.53, 0.97, 1.0)] == [
        6,
        6,
        10,
        13,
        53,
        6667,
        20000,
    ]
    flows = simulator.trace(20_000, 0.6, 1)
    assert flows == simulator.trace(20_000, 0.6, 1)
    assert {end for _, source, destination, _ in flows for end in (source, destination)} == set(
        range(144)
    )
    assert all(source != destination for _, source, destination, _ in flows)
    # 144 hosts at 10 Gb/s, of whose rate 1,500 of 1,460 bytes carry flows of 1,661,480 bytes:
    # 63,266 flows a second. 3.5 standard deviations.
    assert flows[-1][0] * 63_266 == pytest.approx(20_000, rel=0.025)
    assert sum(packets for *_, packets in flows) / 20_000 == pytest.approx(1138, rel=0.05)


def test_useful_packet_hops_are_those_of_data_and_acks() -> None:
    # 18 M hops in 0.9 s at best, and 20 M in 16 s: 20 M a second, and 1.25 M.
    runs = {simulator.SCHEMES["dctcp"]: [({"hops": "18000000"}, 1.5), ({"hops": "18000000"}, 0.9)]}
    runs[simulator.NS2] = [({}, 16.0), ({}, 17.0)]
    assert simulator.times_ns2(runs, {simulator.NS2: {"hops": "20000000"}}) == 16
    assert simulator.useful([(0.0, 0, 15, 3), (0.0, 15, 16, 5)]) == 2 * 3 * 2 + 2 * 5 * 4


def test_a_large_networks_packet_hop_is_without_what_building_takes() -> None:
    said = {
        "hosts": "101306",
        "flows": "2000",
        "finished": "1500",
        "hops": "20000000",
        "in_flight": "5000",
        "max_rss_MB": "300",
    }
    runs: list[tuple[simulator.Run, simulator.Run]] = [(({}, 6.5), (said, 16.5))]
    row = "| 101,306 | 2,000 | 1,500 | 20.0 M | 5,000 | 6.5 s | 16.5 s | 500 ns | 300 MB |"
    assert fat_tree.table(runs).endswith(row)
    assert fat_tree.most_mb(runs) == 300


def test_a_window_lasts_as_long_as_its_busiest_core() -> None:
    window, node = 100, np.array([0, 0, 1, 2, 2, 2])
    hops = cores.Hops(np.array([1000, 1010, 1099, 1100, 1250, 1299]), node)
    assert cores.busiest(hops, window, np.array([0, 0, 0])) == 6, "one core does all"
    assert cores.busiest(hops, window, np.array([0, 1, 1])) == 2 + 1 + 2
    assert cores.busiest(hops, window, np.array([1, 0, 2])) == 2 + 1 + 2, "whichever core has them"


@pytest.mark.parametrize("path", sorted(figures.PAGES.glob("*.csv")), ids=lambda path: path.stem)
def test_a_page_says_what_its_data_say(path: Path) -> None:
    """Arms, verdicts and values of docs/figures/, told and judged anew from the data there."""
    page = dict(figures.written())[path.stem]
    said = figures.RUN.search(page)
    assert said is not None
    command = shlex.split(f"qjump-mn run {said['name']} --preset {said['preset']}")
    plan = command_lines.plan(said["name"], command[4], command)
    told = [f"| {' | '.join(figures.cells(row))} |" for row in figure_data.judged(path, plan)]
    lines = [line for line in page.splitlines() if line.endswith(" |")]
    assert lines[-len(told) :] == told and lines[-len(told) - 1].startswith("| verdict |")
    tables = figures.arm_tables(plan, figure_data.arms(path, plan))
    assert lines[: -len(told) - 1] == [
        row for table in tables for row in table.splitlines() if row[-2:] == " |"
    ]
    trials = figure_data.read(path)
    arms, seeds = {trial.arm for trial in trials}, {trial.seed for trial in trials}
    assert said["trials"] == f"{len(arms)} x {len(seeds)}"
    assert figures.DATA.format(key=path.stem).strip() in page


def test_data_of_a_run_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path, replicates=2, only=["idle", "contended"]).path
    pipeline.analyse(run)
    path = tmp_path / "data.csv"
    figure_data.write(run, path)
    found = {(trial.arm, trial.seed): trial.values for trial in figure_data.read(path)}
    for arm in outcome.read(run).arms:
        for workload, measures in arm.measures.items():
            for measure, spread in measures.items():
                for seed, value in zip(spread.seeds, spread.values, strict=True):
                    assert found[arm.name, seed][workload][measure] == pytest.approx(
                        value, rel=1e-8
                    )
    assert path.read_text().startswith("arm,workload,measure,1,2\n")


def test_the_schemes_are_those_of_the_reference_run() -> None:
    assert marks.read(schemes.PAGE, "schemes") == schemes.table()


def test_all_schemes_everywhere_are_what_was_kept() -> None:
    found = schemes.kept()
    assert marks.read(schemes.PAGE, "everywhere") == schemes.everywhere(found)
    with Image.open(schemes.FIGURE) as picture:
        assert picture.info["Source"] == schemes.digest(found), "the figure has other numbers"
    slow = {row.scheme for row in schemes.rows(found) if row.scale == "10 Mb/s"}
    compared = {arm.scheme.name for arm in resolve.plan("schemes", "smoke", []).run.arms} - {
        "ideal"
    }
    assert compared <= slow, "a scheme that has no row"


def test_a_scheme_is_told_as_how_many_times_what_each_program_is_alone() -> None:
    def arm(scheme: str, ms: float, commit: str = "c0ffee00") -> schemes.Measured:
        values = {"ping": {"p99_ms": ms}}
        return schemes.Measured(scheme=scheme, seeds=1, linux="6.12", commit=commit, values=values)

    known = {"fig3a/smoke": {"idle": arm("ideal", 2.0), "qjump": arm("qjump", 5.0)}}
    more = {"schemes/smoke": {"cake": arm("cake", 3.0, "decade00")}}
    first, second = schemes.rows(known | more)
    assert (first.scheme, first.cells[0], first.cells[1:]) == ("cake", 1.5, ("not run",) * 5)
    assert (second.scheme, second.cells[0]) == ("qjump", 2.5)
    lines = schemes.everywhere(known | more).splitlines()
    assert lines[0] == "Links of 10 Mb/s:"
    assert lines[4] == "| CAKE (`cake`) | 1.5 | not run | not run | not run | not run | not run |"


def test_a_scheme_whose_job_got_nothing_done_has_no_number() -> None:
    def arm(scheme: str, ms: float, rounds: float | None) -> schemes.Measured:
        job = {} if rounds is None else {"job": {"rounds": rounds}}
        values = {"ptp": {"delay_max_ms": ms}, "memcached": {"p99_ms": ms}, **job}
        return schemes.Measured(
            scheme=scheme, seeds=1, linux="6.12", commit="c0ffee00", values=values
        )

    arms = {
        "idle": arm("ideal", 2.0, None),
        "ecn": arm("ecn", 2.0, 0.0),
        "cake": arm("cake", 3.0, 4.0),
    }
    ecn, cake = sorted(schemes.rows({"fig5/smoke": arms}), key=lambda row: row.scheme, reverse=True)
    assert (ecn.cells[1:3], cake.cells[1:3]) == (("job stalled",) * 2, (1.5, 1.5))


def test_the_readme_shows_the_reference_run() -> None:
    assert marks.read(DOCS.parent / "README.md", "readme") == readme.numbers()
    assert marks.read(DOCS / "cli.md", "readme") == readme.run_table()
    assert readme.PICTURE.read_text() == readme.network()
    first = first_run.read()
    assert marks.read(DOCS.parent / "README.md", "first_run") == first_run.sentences(first)
    assert math.ceil(first.build_s / 60) == building.BUILD_MINUTES
    assert marks.read(DOCS / "emulation.md", "links") == readme.links_table()


def test_pages_of_figures_are_written_from_runs_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the newest complete one; an experiment without one keeps its page."""
    runs, index, pages = tmp_path / "runs", tmp_path / "figures.md", tmp_path / "figures"
    run = synthetic.make(runs, only=["idle", "contended"])
    pipeline.analyse(run.path)
    newer = run.path.with_name(f"{run.path.name}-2")
    shutil.copytree(run.path, newer)
    (newer / "trials/idle/1/DONE").unlink()
    marked = "<!-- bench/figures begin -->\n{}\n<!-- bench/figures end -->\n"
    index.write_text("# Every figure\n\n" + marked.format("old"))
    pages.mkdir()
    (pages / "fig3a.md").write_text("# fig3a: an old title\n")
    kept = (
        "# fig3b: another\n\n`qjump-mn run fig3b --preset p`, exit code 0, 2 x 1 trials, 3 minutes"
    )
    (pages / "fig3b.md").write_text(kept + "\n\n| PARTLY | 1 |\n")
    monkeypatch.setattr(figures, "PAGE", index)
    monkeypatch.setattr(figures, "PAGES", pages)
    monkeypatch.setattr(sys, "argv", ["figures.py", "--write", "--from", str(runs)])
    figures.main()
    rows = marks.read(index, "figures").splitlines()
    assert rows[0] == "| figure | preset | verdicts |"
    assert re.fullmatch(
        r"\| \[fig3a: .*\]\(figures/fig3a\.md\) \| `smoke --arms idle,contended` \| [A-Z0-9, ]+ \|",
        rows[2],
    )
    assert rows[3:] == ["| [fig3b: another](figures/fig3b.md) | `p` | 1 PARTLY |"]
    text = (pages / "fig3a.md").read_text()
    assert "an old title" not in text and "\n| ping alone | " in text
    assert "`qjump-mn run fig3a --preset smoke --arms idle,contended`, exit code " in text
    assert (pages / "fig3b.md").read_text().startswith(kept)
    pictures = sorted(path.name for path in pages.glob("*.png"))
    assert pictures and all(f"]({name})" in text for name in pictures)
    told = capsys.readouterr().err
    assert f"fig3b: no complete run in {runs}, its page stays\n" in told
    assert "fig3a: " not in told
    assert figures.complete(runs, "fig3a") == run.path


def test_a_run_is_judged_by_todays_claims_where_it_runs_the_same(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "runs")
    before = pipeline.analyse(run.path).outcome
    assert anew.judged_today(run.path, tmp_path) == run.path
    manifest = run.manifest
    first, *others = manifest.plan.judged.claims
    judged = replace(manifest.plan.judged, claims={first: manifest.plan.judged.claims[first]})
    older = replace(
        manifest, plan=replace(manifest.plan, judged=judged), judged_sha256=identity.sha256(judged)
    )
    write(run.path, older)
    pipeline.analyse(run.path)
    assert [row.claim for row in outcome.read(run.path).verdicts] == [first]
    copy = anew.judged_today(run.path, tmp_path)
    assert [row.claim for row in outcome.read(copy).verdicts] == [first, *others]
    assert outcome.read(copy).verdicts == before.verdicts
    assert [row.claim for row in outcome.read(run.path).verdicts] == [first]
    write(run.path, replace(older, argv=(*older.argv, "--replicates", "2")))
    assert anew.judged_today(run.path, tmp_path) == run.path, "that would be another run"


def test_every_experiment_has_a_page_of_figures_and_not_of_smoke() -> None:
    told = r"`qjump-mn run (?P<name>\S+) --preset (?P<preset>[\w-]+)[^`]*`, exit code \d, "
    found = {
        key: re.search(told, page) or pytest.fail(f"docs/figures/{key}.md says of no run")
        for key, page in figures.written()
    }
    assert list(found) == [key for key in figures.known() if key != "schemes"], (
        "that has a page of its own, docs/schemes.md"
    )
    assert marks.read(figures.PAGE, "figures") == figures.summary(dict(figures.written()))
    assert {key: run["preset"] for key, run in found.items() if run["preset"] == "smoke"} == {}


def test_the_manual_page_is_the_command_lines() -> None:
    assert manual.PAGE.read_text() == "\n".join(manual.page()) + "\n"
    for name, table in manual.tables().items():
        assert marks.read(manual.COMMANDS, name) == table


def test_the_reference_of_the_files_is_the_types() -> None:
    text = "\n".join(reference.page()).strip("\n")
    assert marks.read(reference.PAGE, "reference") == text
    for name in registry.OURS:
        assert f"### `{name}`\n" in text
    assert "- `numbers`?: {table}\n" in text and "#### `numbers`" in text


def test_every_variable_of_the_documents_is_in_the_manual_page() -> None:
    told = {
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"`\$?(QJUMP_MN_[A-Z]+)\b(?!_)", page.read_text())
    }
    assert told <= set(manual.VARIABLES)


def test_the_manual_page_is_sound() -> None:
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    argv = ["groff", "-mdoc", "-Tutf8", "-ww", "-z", str(manual.PAGE)]
    assert execute(argv, check=True).stderr == ""
