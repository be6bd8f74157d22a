"""Experiments in the simulator, by the command line: the same bytes however they are run, and what
was interrupted goes on."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from qjump_mn import cache, resolve
from qjump_mn.analysis import fidelity, pipeline
from qjump_mn.programs import counters
from qjump_mn.results import directory, outcome
from qjump_mn.results.directory import RunDirectory
from tests.simulator.short import ARMS, TRIALS, command, figure_9
from tests.support import facts, result_store
from tests.support.processes import cli, execute
from tests.support.user_files import Write

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("package")]

FEW = figure_9(mining=20)
MINE = 'label = "mine"\nabout = "mine"\nlook = { colour = "#123456", marker = "o" }\n'
ONE_CPU = {min(os.sched_getaffinity(0))}


def run(out: Path, *arguments: str, cpus: set[int] | None = None) -> RunDirectory:
    """A run whose trials are all done."""
    confine = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    done = execute(command(out, *arguments), preexec_fn=confine)
    found = directory.existing(out / "last")
    assert all(record.status == "done" for record in found.manifest.trials.values()), (
        done.stdout + done.stderr
    )
    return found


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run(tmp_path_factory.mktemp("few"), *FEW)


def test_workers_do_not_change_bytes(few: RunDirectory, package: Path, tmp_path: Path) -> None:
    def run_alone() -> None:
        alone = run(tmp_path, *FEW, cpus=ONE_CPU)
        assert alone.manifest.files == few.manifest.files

    assert len(few.manifest.trials) == TRIALS
    source = inspect.getsource(test_workers_do_not_change_bytes)
    key = cache.hash_of(package.parent.name, *result_store.simulator_code(), source, *FEW)
    facts.established("trials by one worker or two", key, run_alone)


@pytest.mark.fresh
def test_killed_run_resumes_without_repeating(few: RunDirectory, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, *FEW), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "[3/" in line:
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    killed = directory.existing(tmp_path / "last")
    before = {
        name: (killed.trial(name) / "trial.json").stat().st_mtime_ns
        for name in killed.manifest.trials
        if killed.is_done(name)
    }
    assert 3 <= len(before) < TRIALS
    resumed = cli("resume", killed.path)
    assert f"{TRIALS - len(before)} of {TRIALS} trials are left" in resumed.stdout, (
        resumed.stdout + resumed.stderr
    )
    assert killed.manifest.files == few.manifest.files
    assert {
        name: (killed.trial(name) / "trial.json").stat().st_mtime_ns for name in before
    } == before
    again = cli("resume", killed.path)
    assert f"0 of {TRIALS} trials are left" in again.stdout


def test_a_run_that_goes_on_elsewhere_is_not_resumed(few: RunDirectory) -> None:
    with few.held():
        done = cli("resume", few.path)
    assert done.returncode == 2
    assert "is being run by another process" in done.stderr


@pytest.mark.fresh
def test_an_interrupt_ends_every_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, "fig9", "--preset", "paper", "--arms", "mining_dctcp"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (trials := _trials(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert trials
        time.sleep(2)
        children = _children(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130
    finally:
        process.terminate()
    while _alive(children) and time.monotonic() < deadline + 60:
        time.sleep(0.02)
    assert not _alive(children)


def _alive(pids: list[int]) -> list[int]:
    alive = []
    for pid in pids:
        with suppress(OSError):
            alive += [pid] if "(python" in Path(f"/proc/{pid}/stat").read_text() else []
    return alive


def _trials(pid: int) -> list[int]:
    """The children that run a trial: they are told where to. One that checks the plan comes
    before."""
    trials = []
    for child in _children(pid):
        with suppress(OSError):
            # One that has just begun, or ended, has no words.
            words = Path(f"/proc/{child}/cmdline").read_text().split("\0")[:-1]
            trials += [child] if words and words[-1] != "qjump_mn.simulation" else []
    return trials


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]


def test_measures_are_those_of_the_simulator_itself(few: RunDirectory, package: Path) -> None:
    script = """
import json
from qjump_sim import FIG9, Poisson, Scenario, run
regions = run(Scenario(FIG9, "dctcp", Poisson("search", load=0.5, count=60), seed=1)).regions(FIG9)
print(json.dumps({f"{name}_{kind}": getattr(getattr(regions, name), kind) for name in ("short", "medium", "long", "all") for kind in ("mean", "p99")}))
"""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = execute([sys.executable, "-c", script], env=environment, check=True)
    own = json.loads(done.stdout)
    arm = outcome.read(few.path).arm("search_dctcp_0_5")
    assert arm is not None
    ours = {name: spread.median for name, spread in arm.measures["search"].items()}
    assert {name: ours[name] for name in own} == pytest.approx(own, rel=1e-12)


def test_packets_that_are_missing_are_noticed(few: RunDirectory) -> None:
    data, _ = pipeline.read_trials(few, few.manifest)
    path = few.raw(data[0].trial.name) / counters.NAME
    good = path.read_bytes()
    counted = json.loads(good)
    counted["delivered"]["data"] -= 1
    try:
        path.write_text(json.dumps(counted))
        found = {check.name: check.status for check in fidelity.checks(few, few.manifest, data, {})}
        assert (found["packets"], found["files"]) == ("fail", "fail")
        path.write_text("{}")
        assert {check.name: check.status for check in fidelity.checks(few, few.manifest, data, {})}[
            "packets"
        ] == "fail"
    finally:
        path.write_bytes(good)
    assert {check.status for check in fidelity.checks(few, few.manifest, data, {})} == {"pass"}


def test_declared_times_of_programs_are_refused(tmp_path: Path) -> None:
    done = execute(command(tmp_path / "out", *FEW[:3], "-s", "clock.wakeup=2us"))
    assert done.returncode == 2 and "clock: the simulator runs no programs" in done.stderr


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ('like = "tahoe"', "simulator.like: there is no scheme tahoe"),
        ('like = "dctcp"\nqueue = { kind = "cake" }',
         "simulator.queue.kind: there is no queue 'cake'"),
        ('like = "dctcp"\nqueue = { treshold = 3 }',
         "simulator.queue.treshold: there is no such setting"),
        ('like = "dctcp"\nqueue = { kind = "marking", limit = 225000 }',
         "simulator.queue: it needs threshold"),
        ('like = "dctcp"\ntransport = { initial_window = 0 }', "the initial window of 0 packets"),
        ('like = "dctcp"\ntransport = { congestion = "bic" }',
         "simulator.transport.congestion: there is no law 'bic'"),
        ('like = "tcp"\ntransport = { g_shift = 4 }',
         "simulator.transport.g_shift: needs congestion 'dctcp' and a whole number"),
        ('like = "dctcp"\ntransport = { initial_window = true }',
         "simulator.transport.initial_window: True is not a whole number"),
        ('like = "dctcp"\ntransport = { sack = "no" }',
         "simulator.transport.sack: 'no' is not true or false"),
        ('like = "dctcp"\ntransport = { min_rto = 200 }',
         "simulator.transport.min_rto: 200 is not a duration: write a number and one of the "
         "units"),
        ('like = "dctcp"\nqueue = { kind = "marking", limit = "1.2.3% of buffer", threshold = 3 }',
         "simulator.queue.limit: '1.2.3% of buffer' is not a size"),
        ('like = "linux"\nqueue = { kind = "drop-tail", bytes = 9000 }\n[parameters]\na = 1',
         "only_simulated: the simulator does not use parameters: leave it out"),
        ('like = "dctcp"\ntransport = { kind = "mac" }',
         "simulator.transport.kind: there is no transport 'mac'"),
        ('like = "dctcp"\npause = { xoff = 9, xon = 9, buffer = 9 }',
         "pause: xoff 9, xon 9 and buffer 9 bytes: xoff must be above xon"),
        ('like = "dctcp"\nshared_buffer = { alpha = 500 }',
         "simulator.shared_buffer: it needs bytes"),
        ('like = "dctcp"\nflowlet_gap = "25"', "simulator.flowlet_gap: '25' is not a duration"),
        ('like = "dctcp"\nrouting = "spray"\nflowlet_gap = "25us"',
         "simulator.flowlet_gap: routing has another rule: leave one of them out"),
        ('like = "linux"\n[link]\nxoff = "15220B"\nxon = "7610B"\npfc = true',
         "the simulator pauses whole links, not levels"),
    ],
)  # fmt: skip
def test_a_scheme_that_the_simulator_has_not_is_refused_with_its_place(
    settings: str, sentence: str, tmp_path: Path, own: Write
) -> None:
    own("schemes/mine.toml", f"{MINE}only_simulated = true\n[simulator]\n{settings}\n")
    done = execute(command(tmp_path / "out", *FEW[:3], "--scheme", "mine"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_scheme_of_ones_own_meets_the_others(tmp_path: Path, own: Write) -> None:
    settings = (
        'like = "dctcp"\nqueue = { threshold = 97500 }\ntransport = { min_rto = "1ms" }\n'
        'flowlet_gap = "25us"\nshared_buffer = { bytes = 900000, alpha = 500 }'
    )
    own("schemes/mine.toml", f"{MINE}only_simulated = true\n[simulator]\n{settings}\n")
    argv = command(
        tmp_path / "out", *FEW[:7], "--scheme", "mine", "--arms", "search_mine,mining_mine"
    )
    execute(argv)
    done = directory.existing(tmp_path / "out" / "last")
    assert len(done.manifest.trials) == 6
    told = json.loads((done.asbuilt("search_mine_0_5/1") / "scenario.json").read_text())["scheme"]
    assert (
        told["queue"]["threshold"],
        told["transport"]["min_rto"],
        told["congestion"]["kind"],
    ) == (97500, 10**9, "Dctcp")
    assert told["routing"] == {"gap": 25 * 10**6}
    buffer = {"kind": "SharedBuffer", "bytes": 900_000, "alpha": 500, "per_level": False}
    assert told["shared_buffer"] == buffer


def test_variants_of_a_scheme_have_their_settings(tmp_path: Path) -> None:
    variant = "schemes.dctcp_ack.simulator.queue.mean_packet=1500"
    arms = "droptail,dctcp_ack,ecn_ece_deep"
    found = run(
        tmp_path,
        *"hadoop --preset smoke -s workloads.job.map_size=159kB -s".split(),
        variant,
        "--arms",
        arms,
    )
    names = ("droptail", "dctcp_ack_100us", "ecn_ece_deep_500us")
    told = {
        name: json.loads((found.asbuilt(f"{name}/1") / "scenario.json").read_text())["scheme"]
        for name in names
    }
    queue = told["droptail"]["queue"]
    assert (queue["kind"], queue["bytes"]) == ("DropTail", 300_000)
    red, deep = told["dctcp_ack_100us"]["queue"], told["ecn_ece_deep_500us"]["queue"]
    # ns-2's thresholds: half of the target and three halves, in packets of 500 bytes, or here as
    # many of 1500.
    for queue, expected in (
        (red, (300_000, 150_000_000, 450_000_000, "ack+syn")),
        (deep, (3_000_000, 250_000_000, 750_000_000, "ece-bit")),
    ):
        least, most = queue["min"]["ps"], queue["max"]["ps"]
        assert (queue["limit"], least, most, queue["protection"]) == expected
    assert [told[name]["congestion"]["kind"] for name in told] == ["Reno", "Dctcp", "Ecn"]
    ect_again = told["dctcp_ack_100us"]["transport"]["ect_again"]
    assert (red["gentle"], red["mark_p"], ect_again) == (False, None, True)
    for name in ("droptail", "dctcp_ack_100us"):
        arm = outcome.read(found.path).arm(name)
        assert arm is not None
        job = {key: spread.median for key, spread in arm.measures["job"].items()}
        # 100 of the 15,900 shares, of 1000 bytes each, are on their reducer's node already.
        assert job["shuffled_s"] <= job["runtime_s"] and 0 < job["throughput_mbps"] < 1000
        assert 0.01 < job["latency_ms"] < 10


@pytest.mark.parametrize(
    ("mode", "limit", "told"),
    [
        # A frame may be late by the slack, 25 ns; 2015's rule counts what the kernel does, 28 B
        # less a packet.
        ("delay", 9, {"epoch": 2_073_625_000, "epochs": "rolling", "uncounted": 0}),
        ("drop", 1000, {"epoch": 2_073_600_000, "epochs": "first-packet", "uncounted": 28}),
        ("tbf", 1000, {}),
        ("edt", 1000, {}),
    ],
)
def test_limiter_is_the_emulations(
    mode: str, limit: int, told: dict[str, object], tmp_path: Path, own: Write
) -> None:
    simulated = '[simulator]\nlike = "qjump-paper"\n'
    own("schemes/mine.toml", f'{MINE}levels = true\nlimiter = "{mode}"\n{simulated}')
    epochs = ("-s", "qjump.paper.epochs=rolling") if mode in ("delay", "edt") else ()
    asked = (*epochs, "-s", f"qjump.paper.limit_packets={limit}")
    argv = command(tmp_path / "out", *FEW[:7], *asked, "--scheme", "mine", "--arms", "search_mine")
    done = execute(argv)
    if mode in ("tbf", "edt"):
        assert (
            done.returncode,
            f"its limiter has the modes 'delay' and 'drop', not {mode!r}" in done.stderr,
        ) == (2, True), done.stderr
        return
    found = directory.existing(tmp_path / "out" / "last")
    scenario = json.loads((found.asbuilt("search_mine_0_5/1") / "scenario.json").read_text())
    budgets = [9_000, 12_960, 64_800, 129_600, 259_200, 432_000, 648_000, None]
    common = {"kind": "PerHost", "budgets": budgets, "mode": mode, "limit": limit}
    assert scenario["scheme"]["limiter"] == {**common, **told}
    limited = json.loads((found.raw("search_mine_0_5/1") / counters.NAME).read_text())["limited"]
    assert limited["data"] > 0


def test_what_is_otherwise_is_so_in_every_scheme_that_has_it(tmp_path: Path) -> None:
    points = [
        "as chosen",
        "links of 20 us",
        "no delayed ACKs",
        "g of 1/4",
        "buffers in packets",
        "hosts' queues drop tail",
        "computing 1 s each",
    ]
    values = f"sweeps.other.values={json.dumps(points)}"
    found = run(
        tmp_path,
        "hadoop-sensitivity",
        "-s",
        values,
        *"-s workloads.job.map_size=159kB --arms droptail,dctcp_ack".split(),
    )

    def told(arm: str, point: str) -> dict[str, Any]:
        name = f"{arm}_{''.join(letter if letter.isalnum() else '_' for letter in point)}/1"
        scheme, trial = (
            json.loads(path.read_text())
            for path in (found.asbuilt(name) / "scenario.json", found.trial(name) / "trial.json")
        )
        return {**scheme["scheme"], **trial["trial"]["arm"]}

    for arm in ("droptail", "dctcp_ack"):
        chosen = told(arm, points[0])
        delays = [told(arm, point)["network"]["link"]["delay_ns"] for point in points[:2]]
        assert delays == [5_000, 20_000]
        delayed = [told(arm, points[n])["transport"]["delayed_ack"] for n in (0, 2)]
        assert delayed == [40 * 10**9, None]
        assert "host_queue" not in chosen and told(arm, points[5])["host_queue"]["packets"] == 2000
        computing = [told(arm, points[n])["workloads"][0]["map_mean_ns"] for n in (0, 6)]
        assert computing == [0, 10**9]
    assert [
        told("dctcp_ack", point)["congestion"].get("shift") for point in (points[0], points[3])
    ] == [4, 2]
    assert told("droptail", points[3])["congestion"] == told("droptail", points[0])["congestion"]
    assert (
        told("droptail", points[4])["queue"]["packets"],
        told("dctcp_ack", points[4])["queue"]["limit"]["count"],
    ) == (200, 200)
    report = (found.path / "report.md").read_text()
    assert "### Runtime, relative to drop tail" in report and "| links of 20 us |" in report


def test_published_arrivals_are_those_of_the_scripts(tmp_path: Path) -> None:
    arms = "search_pfabric_0_8,search_published_pfabric_0_8"
    found = run(tmp_path, "fig9", "--preset", "smoke", "--arms", arms)

    def ends(arm: str, workload: str) -> list[tuple[int, int]]:
        rows = pq.read_table(found.data(f"{arm}/1") / f"{workload}.parquet").slice(0, 4).to_pylist()
        return [(int(row["source"][1:]), int(row["destination"][1:])) for row in rows]

    # By the published recurrence the seeds of these four pairs give the greatest first draws.
    first = [(5, 36), (10, 72), (15, 108), (1, 113)]
    assert ends("search_published_pfabric_0_8", "search_published") == [
        (a + 1, b + 1) for a, b in first
    ]
    assert ends("search_pfabric_0_8", "search") != [(a + 1, b + 1) for a, b in first]
    report = (found.path / "report.md").read_text()
    assert "Poisson arrivals" in report and "arrivals as in the published scripts" in report


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fig9", "--backend", "guest"),
         "experiment 'fig9' is not for the guest: use --backend simulator"),
        (("fig3a", "--backend", "moon"), "there is no backend 'moon'"),
        (("fig9", "-s", "workloads.search.arrivals='even'"),
         "workloads.search.arrivals: there are no arrivals 'even': use 'poisson' or 'published'"),
    ],
)  # fmt: skip
def test_unfit_backend_is_refused(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    done = execute(command(tmp_path, *arguments))
    assert done.returncode == 2
    assert sentence in done.stderr


def test_the_longest_runs_come_first(tmp_path: Path) -> None:
    alone = run(tmp_path, *FEW, cpus=ONE_CPU)  # two workers may write their lines in another order
    events = [json.loads(line) for line in (alone.path / "log.jsonl").read_text().splitlines()]
    # A trial tells each of its stages: the first is that it waits or begins.
    started = list(dict.fromkeys(event["name"] for event in events if event["event"] == "progress"))
    plan = resolve.plan(
        "fig9", "smoke", ["workloads.search.count=60", "workloads.mining.count=20"], only=ARMS
    )
    assert sorted(started) == sorted(trial.name for trial in plan.trials())
    assert [name.partition("_")[0] + name.split("_")[1] for name in started[:3]] == [
        "searchqjump"
    ] * 3
