"""A run whose numbers were changed afterwards, with its hashes and summaries mended to fit, is
INVALID: on three trials of a real run (fig3a, preset smoke; tests/golden/forged), forged in several
ways."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import resolve
from qjump_mn.analysis import fidelity, pipeline
from qjump_mn.analysis.bookkeeping import STRAY_FRAMES, Account
from qjump_mn.backends import registry
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.cli import repeated, verification
from qjump_mn.links.base import Count
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import Check
from qjump_mn.programs.measures_api import Moved
from qjump_mn.results import contents
from qjump_mn.results.directory import RunDirectory
from tests.cli.test_verification import Repeating
from tests.support import synthetic
from tests.support.screen import Screen

REAL = Path(__file__).parents[1] / "golden/forged/fig3a-smoke.tar.xz"
ARMS = ["idle", "contended", "qjump"]
PING = "ping-h8-h10.ping.txt"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = synthetic.create(tmp_path, resolve.plan("fig3a", "smoke", [], only=ARMS))
    with tarfile.open(REAL) as archive:
        archive.extractall(made.path)
    for trial in made.manifest.plan.trials():
        # What others than tc printed was not kept; here it is as planned.
        synthetic.write_rest(made.asbuilt(trial.name) / "before", trial)
    mend(made)
    return made


def mend(run: RunDirectory) -> None:
    """Enter what is on disk, as somebody would who hides what they did: hashes, manifest, DONE."""
    for trial in run.manifest.plan.trials():
        run.finish(trial.name, synthetic.DONE)


def failed(run: RunDirectory) -> dict[str, str]:
    """The checks that fail, with their texts."""
    manifest = run.manifest
    data, missing = pipeline.read_trials(run, manifest)
    checks: tuple[Check, ...] = fidelity.checks(run, manifest, data, missing)
    assert {check.status for check in checks if check.name in ("carried", "waits", "switches")} <= {
        "pass",
        "fail",
    }
    return {check.name: check.text for check in checks if check.status == "fail"}


def edit(run: RunDirectory, name: str, change: Callable[[str], str]) -> None:
    path = run.path / "trials" / name
    path.write_text(change(path.read_text()))
    mend(run)


def scaled_pings(factor: float, *, stamps: bool) -> Callable[[str], str]:
    """Round trips times ``factor``, the summary too; with ``stamps`` replies come so much sooner or
    later."""

    def reply(match: re.Match[str]) -> str:
        at_s, rtt_ms = float(match[1]), float(match[3])
        if stamps:
            at_s += rtt_ms * (factor - 1) / 1e3
        return f"[{at_s:.6f}]{match[2]}time={synthetic.rtt_text(rtt_ms * factor)} ms"

    def summary(match: re.Match[str]) -> str:
        return "mdev = " + "/".join(
            f"{float(number) * factor:.3f}" for number in match[1].split("/")
        )

    def change(text: str) -> str:
        text = re.sub(r"\[([\d.]+)\](.*)time=([\d.]+) ms", reply, text)
        return re.sub(r"mdev = ([\d./]+)", summary, text)

    return change


def scaled_bytes(factor: float) -> Callable[[str], str]:
    """Everything that iperf3 counted, times ``factor``, in intervals and totals."""

    def walk(part: Any) -> Any:
        if isinstance(part, list):
            return [walk(one) for one in part]
        if not isinstance(part, dict):
            return part
        scaled = {name: part[name] * factor for name in part.keys() & {"bytes", "bits_per_second"}}
        whole = {name: int(value) if name == "bytes" else value for name, value in scaled.items()}
        return {name: whole[name] if name in whole else walk(value) for name, value in part.items()}

    return lambda text: json.dumps(walk(json.loads(text)))


def swap(run: RunDirectory, first: str, second: str, pattern: str) -> None:
    for path in sorted(run.raw(first).glob(pattern)):
        other = run.raw(second) / path.name
        mine, theirs = path.read_bytes(), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(mine)
    mend(run)


def halved_intervals(text: str) -> str:
    """iperf3's intervals halved, and its totals as they were."""
    report = json.loads(text)
    report["intervals"] = json.loads(scaled_bytes(0.5)(json.dumps(report["intervals"])))
    return json.dumps(report)


class Honest(Repeating):
    """A backend whose trials leave what they left in the run ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        shutil.copytree(self.path / "trials" / trial.name, out, dirs_exist_ok=True)
        (out / contents.MARK).unlink()
        return Ended(0, "", 1.0, 0.1)


def verified(run: RunDirectory) -> tuple[int, str]:
    out = Screen(400)
    return verification.verify(run.path, out), out.text


def test_what_really_ran_passes(run: RunDirectory) -> None:
    assert failed(run) == {}


@pytest.mark.parametrize("stamps", [False, True])
@pytest.mark.parametrize(("arm", "count"), [("idle", "400"), ("qjump", r"\d+")])
def test_wire_check_finds_halved_rtts(
    arm: str, count: str, stamps: bool, run: RunDirectory
) -> None:
    edit(run, f"{arm}/1/raw/{PING}", scaled_pings(0.5, stamps=stamps))
    problems = failed(run)
    assert "files" not in problems, "the hashes were mended"
    sentence = rf"{arm}/1: {count} of 400 latencies of ping are shorter than the wire allows"
    assert re.search(sentence, problems["wire"]), problems


@pytest.mark.parametrize(
    ("forge", "trials"),
    [
        (lambda run: edit(run, f"contended/1/raw/{PING}", scaled_pings(0.5, stamps=False)), 1),
        (lambda run: edit(run, f"contended/1/raw/{PING}", scaled_pings(0.5, stamps=True)), 1),
        (lambda run: edit(run, f"qjump/1/raw/{PING}", scaled_pings(2.0, stamps=False)), 1),
        (lambda run: edit(run, "contended/1/raw/bulk-h7-h10.server.json", halved_intervals), 1),
        (lambda run: swap(run, "contended/1", "qjump/1", "ping-*"), 2),
    ],
)
def test_only_a_rerun_shows_what_fits_wire_and_counters(
    forge: Callable[[RunDirectory], None],
    trials: int,
    run: RunDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If one of these is found some day, docs/checking.md says too little."""
    monkeypatch.setattr(registry, "make", lambda name: Honest(run.path.parent / "honest"))
    shutil.copytree(run.path, run.path.parent / "honest")
    assert verified(run)[0] == 0
    forge(run)
    assert failed(run) == {}
    code, text = verified(run)
    assert code == repeated.DIFFERS and f"not the same: {trials} of 3 trials differ\n" in text
    assert len(re.findall(r"/1 differs in 1 of \d+ files, first in trials/", text)) == trials


@pytest.mark.parametrize("stamps", [False, True])
def test_a_round_trip_is_no_longer_than_its_frames_waited(stamps: bool, run: RunDirectory) -> None:
    edit(run, f"contended/1/raw/{PING}", scaled_pings(2.0, stamps=stamps))
    assert re.search(
        r"contended/1: ping: h8>h10 took 2\d+ us, where the wire takes \S+ us and ports counted waits of \d+",
        failed(run)["waits"],
    )


def test_round_trip_is_as_long_as_one_of_its_frames_waited(run: RunDirectory) -> None:
    """Ping has level 6 for itself: who waited there was one of its frames."""

    def wait_20_ms(text: str) -> str:
        qdiscs = json.loads(text)
        for level in (level for qdisc in qdiscs for level in qdisc.get("levels", [])):
            if level["level"] == 6 and level["packets"]:
                level["max_wait_ns"] = 20_000_000
        return json.dumps(qdiscs)

    edit(run, "qjump/1/asbuilt/ended/tc-switches.json", wait_20_ms)
    assert re.search(
        r"qjump/1: ping: h8>h10 took \S+ us at most, and one of its frames waited 20000 us at s\d>\S+:",
        failed(run)["waits"],
    )


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("arm", ["contended", "qjump"])
def test_bytes_that_no_link_carried_are_found(factor: float, arm: str, run: RunDirectory) -> None:
    for path in sorted(run.raw(f"{arm}/1").glob("bulk-*.json")):
        path.write_text(scaled_bytes(factor)(path.read_text()))
    mend(run)
    sentence = {
        0.5: rf"{arm}/1: bulk moved \d+ B at most, .*, and s\d>s\d at level 0 carried \d+ B",
        2.0: rf"{arm}/1: bulk received \d+ frames, and s\d>s\d at level 0 carried \d+;",
    }[factor]
    problems = failed(run)
    assert list(problems) == ["carried"] and re.search(sentence, problems["carried"]), problems


def test_another_arms_bulk_traffic_is_found(run: RunDirectory) -> None:
    swap(run, "contended/1", "qjump/1", "bulk-*")
    assert re.search(r"(contended|qjump)/1: bulk ", failed(run)["carried"])


def test_fewer_requests_than_frames_are_found(run: RunDirectory) -> None:
    """Half of the replies left out, as if they were lost: no port has dropped them."""

    def change(text: str) -> str:
        lines = [
            line
            for line in text.splitlines(keepends=True)
            if (match := re.search(r"icmp_seq=(\d+)", line)) is None or int(match[1]) % 2
        ]
        return "".join(lines).replace("400 received, 0%", "200 received, 50%")

    edit(run, f"qjump/1/raw/{PING}", change)
    sentence = "qjump/1: s2>h8 at level 6 carried 400 frames, and 200 are of ping"
    assert sentence in failed(run)["carried"]


@pytest.mark.parametrize(("more", "found"), [(STRAY_FRAMES, 0), (STRAY_FRAMES + 1, 1)])
def test_two_frames_more_than_programs_sent_are_strays(more: int, found: int) -> None:
    assert STRAY_FRAMES == 2, "none in 150 trials: two hide nothing"
    moved = Moved(("h8", "h10"), 6, arrived_frames=100, sent_frames=100)
    carried = Count(100 + more, 10_000, 0, 0, None)
    account = Account(("s2", "h8"), 6, carried, (("ping", 0, moved),), complete=True)
    assert len(list(account.problems())) == found


def test_a_forged_run_ends_as_invalid(run: RunDirectory) -> None:
    edit(run, f"idle/1/raw/{PING}", scaled_pings(0.5, stamps=False))
    analysed = pipeline.analyse(run.path)
    assert analysed.outcome.exit_code == 4
    # Claims about arms that are not here were not run.
    assert {row.verdict for row in analysed.outcome.verdicts} == {"INVALID", "NOT RUN"}


def test_counters_that_are_gone_are_named(run: RunDirectory) -> None:
    (run.asbuilt("qjump/1") / "after/tc-h8.json").unlink()
    mend(run)
    assert "qjump/1: asbuilt/after/tc-h8.json cannot be read" in failed(run)["carried"]


def test_a_switch_that_lost_frames_is_found(run: RunDirectory) -> None:
    def change(text: str) -> str:
        qdiscs = json.loads(text)
        for qdisc in qdiscs:
            if qdisc["dev"].startswith("s0-"):
                qdisc["packets"] -= 100
        return json.dumps(qdiscs)

    edit(run, "qjump/1/asbuilt/after/tc-switches.json", change)
    assert re.search(
        r"qjump/1: \d+ to \d+ frames came into s0, and \d+ were sent on", failed(run)["switches"]
    )
