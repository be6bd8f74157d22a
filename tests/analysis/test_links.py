"""The load of the links, from what tc printed in the guest when an arm of Figure 3a was measured
(tests/golden/programs/links), and from damage to it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from qjump_mn import resolve, theory
from qjump_mn.analysis import link_loads, pipeline
from qjump_mn.errors import LostError, UsageError
from qjump_mn.links import registry
from qjump_mn.links.base import EDT, Count
from qjump_mn.programs.facts import TrialFacts, TrialTables
from qjump_mn.report import links as shown
from qjump_mn.results import counter_readings, links, outcome
from qjump_mn.results.outcome import LinkLoad
from tests.support import synthetic
from tests.support.user_files import FIG3A, Write

GOLDEN = Path(__file__).parents[1] / "golden" / "programs" / "links"
PLAN = resolve.plan("fig3a", "smoke", [])
TRIAL = next(trial for trial in PLAN.trials() if trial.arm.name == "qjump_drop")
FACTS = msgspec.json.decode((GOLDEN / "trial.json").read_bytes(), type=TrialFacts)


def table(folder: Path = GOLDEN) -> pa.Table:
    assert FACTS.read_ns is not None
    return links.table(TRIAL.network, folder, FACTS.read_ns)


def link(loads: pa.Table, source: str, destination: str) -> dict[int | None, dict[str, Any]]:
    return {
        row["level"]: row
        for row in loads.to_pylist()
        if (row["source"], row["destination"]) == (source, destination)
    }


def test_a_full_link_is_busy_all_the_time() -> None:
    found = table()
    assert found.schema == links.SCHEMA
    assert found.num_rows == 2 * 15 * 8, "both directions of every link, every level"
    busiest = link(found, "s0", "s3")
    window_s = FACTS.window_s[1] - FACTS.window_s[0]
    frame_s = theory.occupancy_ns(1522, 10**7) / 1e9
    # The counters are read within a frame's time or two of when they are said to be.
    assert sum(row["share"] for row in busiest.values()) == pytest.approx(
        1, abs=2 * frame_s / window_s
    )
    ping = theory.PREAMBLE_BYTES + theory.frame_bytes(84) + theory.INTERFRAME_GAP_BYTES
    assert busiest[6]["bytes"] % ping == 0 and 400 <= busiest[6]["bytes"] // ping <= 402, (
        "400 echo requests, and nothing else of their level"
    )
    assert (busiest[0]["drops"], busiest[0]["most_bytes"]) == (5, 152200)


def test_what_came_in_at_the_switches_went_out_or_was_dropped_or_waits() -> None:
    found = table()
    came = sum(link(found, switch, "s0")[0]["bytes"] for switch in ("s1", "s2"))
    waits = link(found, "s0", "s3")[0]
    full = theory.PREAMBLE_BYTES + 1522 + theory.INTERFRAME_GAP_BYTES
    rest = came - waits["bytes"] - waits["drops"] * full
    assert -100 * full <= rest <= 100 * full, "at most a buffer more or less than before"


def test_how_much_waits_at_a_limiter_is_not_known() -> None:
    found = table().to_pylist()
    assert {row["source"][0] for row in found if row["most_bytes"] is None} == {"h"}
    assert all(row["most_bytes"] is None for row in found if row["source"][0] == "h")


def test_models_that_count_the_packets_alone_get_their_framing() -> None:
    # s0's port towards s3 in the arm tbf of the experiment links, and the time between the readings.
    port = {"kind": "tbf", "dev": "s0-eth3", "root": True}
    began = port | {"bytes": 3655999, "packets": 2444, "drops": 10, "backlog": 131718, "qlen": 87}
    ended = port | {"bytes": 13602815, "packets": 9388, "drops": 27, "backlog": 142316, "qlen": 94}
    model = registry.of("tbf")
    first, last = (
        model.counts([{"kind": "pfifo", "dev": "s0-eth3"}, reading])[None]
        for reading in (began, ended)
    )
    assert (last.bytes - first.bytes) * 8e9 / 10**7 / (27959991340 - 19844989978) == pytest.approx(
        1, abs=5e-4
    ), "the link was full"
    assert (last.drops - first.drops, last.most_bytes) == (17, None)


def change(
    folder: Path, node: str, device: str, kind: str, edit: Callable[[dict[str, Any]], None]
) -> None:
    path = folder / f"tc-{node}.json"
    qdiscs = msgspec.json.decode(path.read_bytes())
    edit(next(qdisc for qdisc in qdiscs if qdisc.get("dev") == device and qdisc["kind"] == kind))
    path.write_bytes(msgspec.json.encode(qdiscs))


def test_what_a_limiter_drops_is_dropped_before_its_link(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(GOLDEN, tmp_path / "copy"))
    change(
        copy / "asbuilt/ended",
        "h8",
        "h8-eth0",
        "qjump",
        lambda qdisc: qdisc["levels"][1].update(drops=7),
    )
    assert link(table(copy), "h8", "s2")[6]["drops"] == 7


def departure_times(trial: Path, when: str, drops: int, below: int) -> None:
    """Put stock qdiscs and qjump-edt in the place of h8's limiter; both drop at level 6."""
    folder = trial / "asbuilt" / when
    qdiscs = msgspec.json.decode((folder / "tc-h8.json").read_bytes())
    kept = [qdisc for qdisc in qdiscs if qdisc["kind"] != "qjump"]
    fq = {"kind": "fq", "dev": "h8-eth0", "parent": "6:2", "drops": below, "backlog": 3044}
    (folder / "tc-h8.json").write_bytes(msgspec.json.encode([*kept, fq]))
    levels = [{"level": level, "drops": drops * (level == 6)} for level in range(8)]
    (folder / "edt-h8.json").write_bytes(msgspec.json.encode({"levels": levels}))


def test_drops_above_and_in_the_qdiscs_of_departure_times_are_counted_by_level(
    tmp_path: Path,
) -> None:
    copy = Path(shutil.copytree(GOLDEN, tmp_path / "copy"))
    departure_times(copy, "began", 2, 1)
    departure_times(copy, "ended", 9, 5)
    found = link(table(copy), "h8", "s2")
    assert {level: row["drops"] for level, row in found.items() if row["drops"]} == {6: 7 + 4}
    assert {row["most_bytes"] for row in found.values()} == {None}
    assert FACTS.read_ns is not None
    (waiting,) = (
        reading.waiting[6]
        for reading in counter_readings.of_trial(TRIAL.network, copy, FACTS.read_ns)
        if (reading.link, reading.when) == (("h8", "s2"), "ended")
    )
    assert waiting == 3044


def test_a_program_drops_also_where_links_count_all_levels_together() -> None:
    root = {"kind": "tbf", "dev": "h1-eth0", "root": True, "bytes": 0, "packets": 0, "drops": 3}
    above = {"kind": EDT, "dev": "h1-eth0", "drops": 4, "levels": []}
    assert registry.of("tbf").counts([root, above])[None].drops == 7


@pytest.mark.parametrize("damage", ["[{", '{"levels": [{"level": "6"}]}', "{}"])
def test_a_reading_of_departure_times_that_is_damaged_is_lost_and_named(
    damage: str, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(GOLDEN, tmp_path / "copy"))
    departure_times(copy, "began", 0, 0)
    departure_times(copy, "ended", 0, 0)
    (copy / "asbuilt/ended/edt-h8.json").write_text(damage)
    with pytest.raises(LostError, match=r"^asbuilt/ended/edt-h8\.json cannot be read: "):
        table(copy)


def test_a_reading_that_is_damaged_is_lost_and_named(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(GOLDEN, tmp_path / "copy"))
    (copy / "asbuilt/began/tc-h3.json").write_text("[{")
    with pytest.raises(LostError, match=r"^asbuilt/began/tc-h3\.json cannot be read: "):
        table(copy)
    (copy / "asbuilt/began/tc-h3.json").unlink()
    with pytest.raises(LostError, match=r"^asbuilt/began/tc-h3\.json cannot be read: "):
        table(copy)
    change(
        copy / "asbuilt/ended",
        "switches",
        "s0-eth3",
        "wire",
        lambda qdisc: qdisc.update(dev="other"),
    )
    with pytest.raises(
        LostError, match=r"^asbuilt/ended/tc-switches\.json does not tell what s0-eth3 has sent$"
    ):
        table(copy)


def test_the_report_has_the_busy_links_of_the_arms_that_tell(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path)
    for name in ("began", "ended"):
        shutil.copytree(
            GOLDEN / "asbuilt" / name, run.asbuilt(TRIAL.name) / name, dirs_exist_ok=True
        )
    facts = run.trial(TRIAL.name) / "trial.json"
    facts.write_bytes(
        msgspec.json.encode({**msgspec.json.decode(facts.read_bytes()), "read_ns": FACTS.read_ns})
    )
    run.finish(TRIAL.name, run.manifest.trials[TRIAL.name])
    analysed = pipeline.analyse(run.path)
    assert set(analysed.outcome.links) == {"qjump_drop"}
    assert outcome.read(run.path) == analysed.outcome
    assert pq.read_table(run.data(TRIAL.name) / "links.parquet").equals(table())
    text = (run.path / "report.md").read_text().replace("\N{NO-BREAK SPACE}", " ")
    page = (run.path / "report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "QJump, drop mode: s0 → s3 was the busiest, 100.0 %; 5 packets dropped on all links</summary>\n"
        in text
    )
    assert "| s0 → s3 | 0.97 % | 99.0 % | 100.0 % | 5 | 100 |\n" in text
    assert "| h1 → s1 | 0 | 30.7 % | 30.7 % | 0 | – |\n" in text
    assert "h2 → s1" not in text, "it carries nothing"
    cells = re.findall(r'<tr>\s*<td data-label="link">(.*?)</td>(.*?)</tr>', page, re.DOTALL)
    shares = [
        re.findall(r'class="n">(.*?)</td>', rest)[:2] for link, rest in cells if link == "s0 → s3"
    ]
    assert ["0.97 %", "99.0 %"] in shares
    for content in (text, page):
        assert (
            "ping alone: not known: the counters were not read when the measurement began and ended"
            in content
        )


def load(source: str, destination: str, level: int | None, share: float, **more: Any) -> LinkLoad:
    return LinkLoad(
        source=source,
        destination=destination,
        level=level,
        share=share,
        **{"drops": 0, "most_bytes": None, **more},
    )


def tables_of(
    arm: str, seed: int, *rows: tuple[str, str, int | None, int, float, int, int, int | None]
) -> TrialTables:
    trial = next(trial for trial in PLAN.trials() if trial.arm.name == arm)
    columns = dict(zip(links.SCHEMA.names, zip(*rows, strict=True), strict=True))
    return TrialTables(replace(trial, seed=seed), FACTS, {}, pa.table(columns, schema=links.SCHEMA))


def test_seeds_have_the_median_share_and_the_greatest_rest() -> None:
    data = [
        tables_of("qjump", seed, ("h1", "s1", 0, 10, share, seed, 7 - seed, 100 * seed))
        for seed, share in ((1, 0.5), (2, 0.7), (3, 0.4))
    ]
    assert link_loads.summarise(data) == {
        "qjump": (load("h1", "s1", 0, 0.5, drops=3, marks=6, most_bytes=300),)
    }


def test_a_link_that_is_busy_in_one_arm_is_shown_in_all_and_one_that_lost_packets_too() -> None:
    idle = tables_of(
        "idle",
        1,
        ("h1", "s1", 0, 10, 0.001, 0, 0, 5),
        ("h2", "s1", 0, 10, 0.001, 0, 0, 5),
        ("h3", "s1", 6, 0, 0.0, 0, 0, 0),
    )
    busy = tables_of(
        "contended",
        1,
        ("h1", "s1", 0, 10, 0.011, 0, 0, 5),
        ("h2", "s1", 0, 10, 0.002, 0, 0, 5),
        ("h3", "s1", 6, 0, 0.0, 9, 0, 0),
    )
    found = link_loads.summarise([idle, busy])
    assert [(one.source, one.level) for one in found["idle"]] == [("h1", 0)]
    assert [(one.source, one.level) for one in found["contended"]] == [("h1", 0), ("h3", 6)]


def test_models_without_levels_show_all_together() -> None:
    made = synthetic_outcome(
        {
            "idle": (load("h1", "s1", None, 0.25),),
            "contended": (load("h1", "s1", 0, 0.75, most_bytes=3044),),
            "qjump": (),
        }
    )
    assert shown.heads(made) == [
        "link",
        "priority 0",
        "all levels",
        "drops",
        "most waiting, full frames",
    ]
    first, second, third = shown.loads(PLAN, made)
    assert first.rows == (("h1\xa0→\xa0s1", "–", "25.0 %", "0", "–"),)
    assert second.rows == (("h1\xa0→\xa0s1", "75.0 %", "75.0 %", "0", "2"),)
    assert (third.told, third.rows) == (
        "no link was busy for 1 % of the time",
        (("h1\xa0→\xa0s1", "0", "0", "0", "0"),),
    )


def test_a_queue_in_the_place_of_the_levels_tells_what_it_dropped_and_marked() -> None:
    """RED below a wire, as tc showed it in a run of fig7."""
    level = {"packets": 3, "bytes": 270, "drops": 0, "qlen": 0, "backlog": 0, "max_backlog": 0}
    levels = [{**level, "level": 7}, {**level, "level": 0, "bytes": 3545000}]
    wire = {"kind": "wire", "dev": "s1-eth1", "root": True, "bytes": 3445254, "packets": 5010}
    wire |= {"drops": 441, "levels": levels}
    red = {"kind": "red", "dev": "s1-eth1", "parent": "5:1", "bytes": 3446768, "packets": 5011}
    red |= {"drops": 441, "marked": 377, "early": 441}
    assert registry.of("wire").counts([wire, red]) == {None: Count(6, 3545270, 441, 377, None)}


def test_marks_have_a_column_where_there_are_any() -> None:
    made = synthetic_outcome({"idle": (load("h1", "s1", None, 0.25, drops=2, marks=3),)})
    assert shown.heads(made) == [
        "link",
        "all levels",
        "drops",
        "ECN marks",
        "most waiting, full frames",
    ]
    assert shown.loads(PLAN, made)[0].rows == (("h1\xa0→\xa0s1", "25.0 %", "2", "3", "–"),)


def synthetic_outcome(found: dict[str, tuple[LinkLoad, ...]]) -> outcome.Outcome:
    return synthetic.outcome([synthetic.summary(name) for name in found], links=found)


def test_workload_cannot_be_named_links(own: Write) -> None:
    workload = 'workloads.links = { program = "ping", flows = ["h1>h2"], interval = "10ms" }\n'
    own("experiments/mine.toml", workload + FIG3A)
    sentence = r"workloads\.links: this name is taken by a trial's table"
    with pytest.raises(UsageError, match=sentence):
        resolve.plan("mine", "smoke", [])
