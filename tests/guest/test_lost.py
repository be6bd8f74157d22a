"""A program that is absent, dies, prints nothing or has another version is one sentence, and LOST.

The sentence says what is wrong, where, and how.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.errors import LostError
from qjump_mn.guest import Image, Job, Setup
from qjump_mn.model.plan import Plan
from qjump_mn.results import directory, outcome, tables
from qjump_mn.steps import openvswitch
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up
from tests.guest.command import experiment, qjump_mn
from tests.guest.laboratory import run_well

pytestmark = pytest.mark.guest

EXPERIMENT = """
title = "Every program"
topology = "single"
warmup = "200ms"
duration = "2s"
replicates = 1

[link]

[qjump]

[claims]
slower = { statement = "Slower", source = "-", predicate = "both.ping.p50_ms >= 2 * ping.ping.p50_ms" }
unknown = { statement = "Slower too", source = "-", predicate = "broken.ping.p50_ms >= 2 * ping.ping.p50_ms" }

[workloads]
ping = { program = "ping", label = "ping", flows = ["h1>h3"], level = 6, interval = "100ms" }
bulk = { program = "iperf", label = "iperf3", flows = ["h2>h3"], level = 0 }
broken = { program = "iperf", label = "iperf3, as it cannot be", flows = ["h2>h3"], level = 0, congestion_control = "nonsense" }
clock = { program = "ptp", label = "ptpd", flows = ["h1>h3"], level = 7 }
cache = { program = "memcached", label = "memcached", flows = ["h1>h3"], level = 4, rate = 20, keys = 10 }
job = { program = "shuffle", label = "job", level = 0, master = "h1", workers = ["h2", "h3"], shuffle = "20kB", map = "50ms" }
barrier = { program = "barrier", label = "barriers", level = 6, hosts = ["h1", "h2", "h3"], interval = "50ms" }
urgent = { program = "fanin", label = "datagrams", flows = ["h1>h3", "h2>h3"], level = 7, interval = "50ms" }
commits = { program = "q2pc", label = "commits", flows = ["h1>h2", "h1>h3"], level = 5, transport = "udp", interval = "50ms" }
noise = { program = "noise", label = "bursts", flows = ["h1>h3"], level = 0, interval = "100ms", burst = 5 }

[arms]
ping = { label = "ping", workloads = ["ping"] }
bulk = { label = "bulk", workloads = ["bulk"] }
clock = { label = "clock", workloads = ["clock"] }
cache = { label = "cache", workloads = ["cache"] }
job = { label = "job", workloads = ["job"] }
barrier = { label = "barrier", workloads = ["barrier"] }
urgent = { label = "urgent", workloads = ["urgent"] }
commits = { label = "commits", workloads = ["commits"] }
noise = { label = "noise", workloads = ["noise"] }
both = { label = "ping beside iperf3", workloads = ["ping", "bulk"] }
broken = { label = "ping beside nothing", workloads = ["ping", "broken"] }

[figure]
plot = "latency_cdf"
workload = "ping"
quantity = "round trip"
arms = ["ping", "both", "broken"]

[presets.smoke]
about = "all there is"
"""
PROGRAMS = (
    ("ping", "ping", "h1", "absent dies half silent"),
    ("ping", "qjau", "h1", "absent dies"),
    ("bulk", "iperf3", "h3", "absent dies half silent"),
    ("clock", "ptpd", "h3", "absent dies half silent"),
    ("cache", "memcached", "h3", "absent dies half"),  # nothing to print, no version that matters
    ("cache", "memload", "h1", "absent dies half silent other"),
    ("job", "shuffle", "h2", "absent dies half silent other"),
    ("barrier", "barrier", "h1", "absent dies half silent other"),
    ("urgent", "fanin", "h3", "absent dies half silent other"),
    ("commits", "q2pc", "h2", "absent dies half silent other"),
    ("noise", "fanin", "h3", "absent dies half silent other"),
)
"""Arm, program, the host on which it is missed first, and what happens to it; only our own logs
tell their version."""

CASES = {
    f"{arm}-{program}-{fate}": (arm, program, host, fate)
    for arm, program, host, fates in PROGRAMS
    for fate in fates.split()
}
HALF_S = {"ptpd": 16.0}
"""After how long a program dies, if not 1 s: a slave needs 14 s to find its master."""

SENTENCES = {
    "absent": r"{shown} on {host} ended with status 127( before it was ready)?: .*{program}.*(not found in PATH|No such file or directory)",
    "dies": r"{shown} on {host} ended with status 3( before it was ready)?: no such luck",
    "half": r"{shown} on {anywhere} ended with status -9( while it was needed)?: .+",
    "silent": r"{shown} on {anywhere}: raw/.*{anywhere}\..*: it is empty, nothing was printed",
    "other": r"{shown} on {anywhere}: raw/.*{anywhere}\..*: this is not a log of {program}, version 1: it begins with '# {program} 2 .*'",
}
SAID = {
    "clock-ptpd-silent": "ptpd on h3 has not printed 'Now in state: PTP_LISTENING' after 30 s: it printed nothing",
    "cache-memcached-half": "memcached on h3 ended with status -9 while it was needed: it printed nothing",
    "clock-ptpd-half": "ptpd on h3 ended with status -9 while it was needed: .*PTP_MASTER.*",
}
"""What no pattern of SENTENCES says."""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = experiment(tmp_path_factory.mktemp("lost"), "every", EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QJUMP_MN_PATH", str(folder))
        return resolve.plan("every", "smoke", [])


@pytest.fixture(scope="module")
def out(image: Image, booted: Setup, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lost_job.py leaves, from one guest for all cases."""
    folder = tmp_path_factory.mktemp("out")
    cases = {
        case: (arm, program, fate, HALF_S.get(program, 1.0))
        for case, (arm, program, _, fate) in CASES.items()
    }
    work = {
        "openvswitch": openvswitch.start(),
        "up": bring_up(plan.shown.network.skeleton()),
        "trials": {trial.arm.name: trial_steps(trial) for trial in plan.trials()},
        "cases": cases,
    }
    files = {"plan.json": msgspec.json.encode(work).decode()}
    script = Path(__file__).with_name("lost_job.py").read_text()
    job = Job(script=script, files=files, virtual_deadline_s=2000)
    result = run_well(image, booted, job, folder)
    print(f"{len(CASES)} trials: {result.virtual_s:.0f} virtual s, {result.wall_s:.0f} s")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_lost_program_is_one_sentence(case: str, plan: Plan, out: Path) -> None:
    arm, program, host, fate = CASES[case]
    trial = next(trial for trial in plan.trials() if trial.arm.name == arm)
    code = json.loads((out / "codes.json").read_text())[case]
    if code:
        assert code == LostError.exit_code
        said = (out / case / "message.txt").read_text().removesuffix("\n")
    else:
        (workload,) = trial.arm.workloads
        with pytest.raises(LostError) as caught:
            tables.table(workload, trial, out / case / "raw")
        said = str(caught.value)
    print(said)
    shown = "ping" if program == "qjau" else program
    pattern = SAID.get(case) or SENTENCES[fate].format(
        shown=shown, program=program, host=host, anywhere="h[123]"
    )
    assert re.fullmatch(pattern, said), said


def test_lost_arm_does_not_stop_the_others(plan: Plan, tmp_path: Path) -> None:
    folder = experiment(tmp_path, "every", EXPERIMENT)
    words = "every --preset smoke --arms ping,both,broken --out out".split()
    done = qjump_mn(*words, cwd=folder)
    assert done.returncode == 5
    run = directory.existing(tmp_path / "out/last")
    found = outcome.read(run.path)
    verdicts = {row.claim: row.verdict for row in found.verdicts}
    assert verdicts == {"slower": "REPRODUCED", "unknown": "NOT RUN"}
    assert {arm.name: arm.done for arm in found.arms} == {"ping": 1, "both": 1, "broken": 0}
    why = found.missing["broken/1"]
    lost = "lost: iperf3 on h2 ended with status 1 while it was needed: .*congestion.*"
    assert re.fullmatch(lost, why)
    assert (run.path / "fig/latency_cdf.png").is_file()
    assert set(found.links) == {"ping", "both"}
    for text in (done.stdout, (run.path / "report.md").read_text()):
        assert " ".join(f"broken/1: {why}".split()) in " ".join(text.split())
