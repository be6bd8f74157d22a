"""A made-up run directory in the formats of the real programs. A TEST FIXTURE: no number in it was
measured.

Distributions are shaped like those of the prototype (Figure 3a at 10 Mb/s).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from qjump_mn import resolve, theory
from qjump_mn.backends import guest
from qjump_mn.cli.bundle import receipts
from qjump_mn.install.provenance import Git
from qjump_mn.model.plan import ArmPlan, Plan, QJumpPlan, Trial
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.programs.iperf import program as iperf
from qjump_mn.programs.iperf.program import IperfPlan
from qjump_mn.programs.ping import program as ping
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.results import contents, directory
from qjump_mn.results.contents import Results
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Clock, Manifest, TrialRecord
from qjump_mn.results.outcome import ArmSummary, Outcome, Spread
from qjump_mn.steps import asbuilt
from qjump_mn.steps.apply_arm import transport

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
START = 1767225636.0

Floats = npt.NDArray[np.float64]


def rtts_ms(trial: Trial, workload: PingPlan) -> Floats:
    """Round trips shaped like the prototype's; nan is a lost ping."""
    random = np.random.default_rng([trial.seed, *trial.arm.name.encode()])
    network, count = trial.network, workload.count
    idle = (
        theory.ping_rtt_ns(workload.payload_bytes, network.speeds(*workload.flows[0])) / 1e6
        + 0.0005
    )
    frame = theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.link.rate_bps) / 1e6
    base = idle + random.integers(0, 3, count) / 1e3
    residual = random.beta(1.1, 1.1, (count, 3)) @ np.array([0.35, 0.45, 1.05]) * frame * 1.35
    buffer_ms = network.link.buffer_bytes * 8e3 / network.link.rate_bps
    filled = 0.9 + 0.09 * np.sin(np.arange(count) / 90)
    shapes: dict[str, Callable[[], Floats]] = {
        "idle": lambda: base,
        "contended": lambda: np.clip(
            base + buffer_ms * filled + random.normal(0, 2, count), 90, 126.5
        ),
        "window_only": lambda: base + 27 + random.normal(0, 1.2, count),
    }
    if trial.arm.name.startswith("limiter"):
        return np.round(_limited_ms(trial, workload) + base, 3)
    made = (
        shapes[trial.arm.name]()
        if trial.arm.name in shapes
        else np.minimum(base + residual, idle + 2.9 * frame)
    )
    if trial.arm.name == "idle":
        made = made.copy()
        made[0] += 0.37  # ARP and cold caches
    return np.round(made, 3)


def _limited_ms(trial: Trial, workload: PingPlan) -> Floats:
    """How long each reply waits for its budget of one an epoch; nan is a dropped one."""
    limiter = trial.arm.qjump
    assert limiter is not None
    waits = np.zeros(workload.count)
    if limiter.mode == "drop":
        period = round(1 / (1 - theory.ping_loss(workload.interval_ns, limiter.epoch_ns)))
        waits[np.arange(workload.count) % period != 0] = np.nan
        return waits
    epoch_ms = limiter.epoch_ns / 1e6
    waits[:] = np.minimum(np.arange(workload.count), limiter.limit_packets) * epoch_ms
    waits[
        (np.arange(workload.count) > limiter.limit_packets) & (np.arange(workload.count) % 3 != 0)
    ] = np.nan
    return waits


def rtt_text(milliseconds: float) -> str:
    """A round trip as iputils prints it."""
    digits = 3 if milliseconds < 1 else 2 if milliseconds < 10 else 1 if milliseconds < 100 else 0
    return f"{milliseconds:.{digits}f}"


def ping_text(values_ms: Floats, address: str, interval_s: float, payload: int) -> str:
    """What ``ping -D -n`` of iputils 20240905 prints."""
    lines = [f"PING {address} ({address}) {payload}({payload + 28}) bytes of data."]
    for index, value in enumerate(values_ms):
        if not np.isnan(value):
            lines.append(
                f"[{START + index * interval_s + value / 1e3:.6f}] {payload + 8} bytes from "
                f"{address}: icmp_seq={index + 1} ttl=64 time={rtt_text(value)} ms"
            )
    good = values_ms[~np.isnan(values_ms)]
    loss = 100 * (1 - len(good) / len(values_ms))
    lines += [
        "",
        f"--- {address} ping statistics ---",
        f"{len(values_ms)} packets transmitted, {len(good)} received, {loss:g}% packet loss, time "
        f"{len(values_ms) * interval_s * 1e3:.0f}ms",
    ]
    if len(good):
        lines.append(
            "rtt min/avg/max/mdev = "
            f"{good.min():.3f}/{good.mean():.3f}/{good.max():.3f}/{good.std():.3f} ms"
        )
    return "\n".join(lines) + "\n"


def iperf_report(
    rate_mbps: float, seconds: float, streams: int, *, sender: bool, seed: int
) -> dict[str, Any]:
    """What ``iperf3 -J -i 0.5`` of 3.18 prints, without what no parser reads."""
    random = np.random.default_rng(seed)
    sockets = [5 + 2 * index for index in range(streams)]
    intervals: list[dict[str, Any]] = []
    for k in range(int(seconds * 2)):
        parts = []
        for socket in sockets:
            sent = (
                int(rate_mbps / streams * 1e6 / 8 * 0.5 / 1448 * random.uniform(0.995, 1.005))
                * 1448
            )
            part = {
                "socket": socket,
                "start": k * 0.5 + 1e-6 * (k > 0),
                "end": (k + 1) * 0.5 + 1e-6,
            }
            part |= {"seconds": 0.5, "bytes": sent, "bits_per_second": sent * 16.0}
            if sender:
                part |= {"retransmits": int(random.poisson(1)), "snd_cwnd": 60816, "rtt": 104000}
            parts.append({**part, "omitted": False, "sender": sender})
        total = sum(part["bytes"] for part in parts)
        whole = {"start": k * 0.5, "end": (k + 1) * 0.5, "bytes": total, "omitted": False}
        intervals.append({"streams": parts, "sum": whole})
    asked = {"protocol": "TCP", "num_streams": streams, "blksize": 131072, "omit": 0}
    start = {"version": "iperf 3.18", "test_start": {**asked, "duration": int(seconds)}}
    received = sum(interval["sum"]["bytes"] for interval in intervals)
    return {"start": start, "intervals": intervals, "end": {"sum_received": {"bytes": received}}}


def write_trial(run: RunDirectory, trial: Trial) -> None:
    """One done trial, without the bookkeeping."""
    run.prepare(trial.name)
    raw = run.raw(trial.name)
    raw.mkdir()
    for workload in trial.arm.workloads:
        for index, flow in enumerate(workload.flows):
            address = f"10.0.0.{trial.network.hosts.index(flow[1]) + 1}"
            if isinstance(workload, PingPlan):
                text = ping_text(
                    rtts_ms(trial, workload),
                    address,
                    workload.interval_ns / 1e9,
                    workload.payload_bytes,
                )
                (raw / ping.output_name(workload, flow)).write_text(text)
            elif isinstance(workload, IperfPlan):
                link = trial.network.link.rate_bps
                full = theory.tcp_goodput_bps(trial.network.mtu_bytes, link) / 1e6
                rate = full * 0.996 * (0.36, 0.31, 0.33)[index]
                rate /= 1 if len(workload.flows) == 3 else 0.36
                rate *= 0.74 if trial.arm.name == "bulk_limited" else 1
                seconds = trial.length_ns / 1e9
                seed = trial.seed * 100 + index
                for end in ("client", "server"):
                    sender = end == "client"
                    report = iperf_report(rate, seconds, workload.streams, sender=sender, seed=seed)
                    text = json.dumps(report, indent=1) + "\n"
                    (raw / iperf.output_name(workload, flow, end)).write_text(text)
    write_asbuilt(run.asbuilt(trial.name) / "before", trial)
    write_waits(run.asbuilt(trial.name) / "ended", trial)
    window = [trial.warmup_ns / 1e9, trial.length_ns / 1e9]
    facts = {
        "trial": msgspec.to_builtins(trial),
        "cpu_busy": 0.05 if len(trial.arm.workloads) == 1 else 0.31,
        "window_s": window,
        "began_ns": 10**11,
        "began_utc_ns": round(START * 1e9),
        "switch_drops": 0,
        "notes": [],
    }
    (run.trial(trial.name) / "trial.json").write_text(json.dumps(facts, indent=1) + "\n")
    write_receipt(run, trial)


def write_receipt(run: RunDirectory, trial: Trial) -> None:
    """What the guest's agent writes: the hashes of its job and of the files that are there now."""
    folder = f"{contents.TRIALS}/{trial.name}/"
    hashes = contents.hashes(run.path, trial.name)
    files = {path.removeprefix(folder): digest for path, digest in hashes.items()}
    receipt = receipts.Receipt(job=guest.job_sha256(trial), files=files)
    (run.trial(trial.name) / receipts.NAME).write_bytes(msgspec.json.encode(receipt))


def write_waits(folder: Path, trial: Trial) -> None:
    """What is read of the switches' levels at the end: a tenth of a frame's time each waited."""
    folder.mkdir()
    frame_ns = theory.occupancy_ns(theory.frame_bytes(1500), trial.network.link.rate_bps)
    counted = {"packets": 50, "max_wait_ns": frame_ns // 10, "max_late_ns": 0}
    levels = [{"level": level, **counted} for level in range(8)]
    qdiscs = [
        {"kind": "wire", "dev": device, "root": True, "levels": levels}
        for (node, _), device in trial.network.interfaces().items()
        if node in trial.network.switches
    ]
    (folder / "tc-switches.json").write_text(json.dumps(qdiscs) + "\n")


def write_asbuilt(folder: Path, trial: Trial) -> None:
    """What ip, tc, ethtool, sysctl and Open vSwitch print of a network as planned whose links are
    of model wire or htb, reduced to what is compared and shown."""
    folder.mkdir(parents=True, exist_ok=True)
    network = trial.network
    for node in (SWITCHES, *network.hosts):
        devices = sorted(network.switch_ports()) if node == SWITCHES else [f"{node}-eth0"]
        (folder / f"tc-{node}.json").write_text(json.dumps(qdiscs(trial.arm, node, devices)))
    write_rest(folder, trial)


def write_rest(folder: Path, trial: Trial) -> None:
    """What all but tc print."""
    network = trial.network
    write_links(folder, trial)
    (folder / "ovs.txt").write_text(
        "    Bridge s0\n        Port s0-eth1\n            Interface s0-eth1\n"
    )
    for switch in network.switches:
        (folder / f"flows-{switch}.txt").write_text(
            " cookie=0x0, table=0, priority=0 actions=NORMAL\n"
        )
    if times := trial.arm.departure_times:
        for host in network.hosts:
            (folder / f"edt-{host}.json").write_text(json.dumps(rule(times)))
    if settings := transport(trial.arm):
        for host in network.hosts:
            (folder / f"tcp-{host}.txt").write_text(
                "".join(f"{key} = {value}\n" for key, value in settings.items())
            )


def write_links(folder: Path, trial: Trial) -> None:
    """What ip and ethtool print."""
    network, offloading = trial.network, trial.arm.tcp.segmentation_offload
    for node in (SWITCHES, *network.hosts):
        devices = sorted(network.switch_ports()) if node == SWITCHES else [f"{node}-eth0"]
        (folder / f"ip-{node}.json").write_text(json.dumps(interfaces(network, node, devices)))
        on = asbuilt.SEGMENTATION if offloading and node != SWITCHES else ()
        vlan = [] if node == SWITCHES else [network.vlan_device(node)]
        offloads = (
            f"Features for {device}:\n"
            + "".join(f"{name}: {'on' if name in on else 'off'}\n" for name in asbuilt.OFFLOADS)
            for device in (*devices, *vlan)
        )
        (folder / f"ethtool-{node}.txt").write_text("".join(offloads))


def qdiscs(arm: ArmPlan, node: str, devices: Sequence[str]) -> list[dict[str, Any]]:
    """What tc prints of the devices of a node."""
    counters = dict.fromkeys(("drops", "overlimits", "backlog", "qlen"), 0)
    counters |= {"bytes": 123456, "packets": 789}
    links = arm.network.by_device()
    found: list[dict[str, Any]] = []
    for device in devices:
        options: dict[str, Any] = {
            "rate_bps": links[device].rate_bps,
            "limit": links[device].buffer_bytes,
            "delay_ns": links[device].delay_ns + links[device].host_ns,
            "classify": "pcp",
            "orphan": links[device].orphan,
        }
        root = {"kind": arm.network.model, "handle": "5:", "root": True, "dev": device}
        found.append({**root, "options": options, **counters})
        if node != SWITCHES and arm.qjump:
            kind, options = limiter(arm.qjump)
            place = {"kind": kind, "handle": "6:", "dev": device, "parent": "5:1"}
            found.append({**place, "options": options, **counters})
            if arm.qjump.mode == "edt":
                found += [
                    {
                        "kind": "fq",
                        "handle": f"6{level + 1}:",
                        "dev": device,
                        "parent": f"6:{8 - level}",
                        **counters,
                    }
                    for level, budget in enumerate(arm.qjump.budget_bytes)
                    if budget
                ]
    return found


def limiter(plan: QJumpPlan) -> tuple[str, dict[str, Any]]:
    """The kind of a host's limiter, and what tc prints of its options."""
    if plan.mode == "edt":
        return "prio", {"bands": 8}
    if plan.mode != "delay":
        none = asbuilt.UNLIMITED if plan.mode == "drop" else 0
        return "qjump2015", {
            "epoch_ns": plan.epoch_ns,
            "budgets": [budget or none for budget in plan.budget_bytes],
        }
    return "qjump", rule(plan)


def rule(plan: QJumpPlan) -> dict[str, Any]:
    """What tc prints of qjump's options, and qjump-edt of its rule."""
    return {
        "epoch_ns": plan.epoch_ns,
        "slack_ns": plan.slack_ns,
        "budgets": list(plan.budget_bytes),
        "limits": [plan.limit_packets] * len(plan.budget_bytes),
        "priomap": list(plan.priomap),
        "overhead": plan.overhead,
        "mpu": plan.mpu,
    }


def interfaces(network: Network, node: str, devices: Sequence[str]) -> list[dict[str, Any]]:
    """What ip prints of the devices of a node and, for a host, of its VLAN device."""
    plain = {"flags": ["UP"], "mtu": network.mtu_bytes, "operstate": "UP"}
    plain |= {"num_tx_queues": 8, "num_rx_queues": 8}
    found: list[dict[str, Any]] = [
        {"ifname": device, **plain, "linkinfo": {"info_kind": "veth"}, "addr_info": []}
        for device in devices
    ]
    if node != SWITCHES:
        maps = [{"from": level, "to": level} for level in range(1, 8)]
        data = {"protocol": "802.1Q", "id": network.vlan, "egress_qos": maps, "ingress_qos": maps}
        address = {
            "family": "inet",
            "local": f"10.0.0.{network.hosts.index(node) + 1}",
            "prefixlen": 8,
        }
        vlan = {"linkinfo": {"info_kind": "vlan", "info_data": data}, "addr_info": [address]}
        found.append({"ifname": network.vlan_device(node), **plain, **vlan})
    return found


def create(
    out: Path,
    plan: Plan,
    *,
    clock: Clock = "virtual",
    now: datetime.datetime = NOW,
    options: Sequence[str] = (),
    needs_bytes: int = 0,
) -> RunDirectory:
    """A run directory with its manifest and no trial yet; ``options`` are those of its command line
    that made the plan, beside the preset."""
    return directory.create(
        out,
        plan,
        backend="host" if clock == "real" else "guest",
        clock=clock,
        argv=("qjump-mn", "run", plan.shown.experiment, "--preset", plan.shown.preset, *options),
        git=Git(commit="0123456789abcdef0123456789abcdef01234567", dirty=False),
        versions={
            "qjump-mn": "0.1.0",
            "mininet": "2.3.0",
            "linux": "6.12.107",
            "iperf3": "3.18",
            "iputils": "20240905",
            "made by": "tests/support/synthetic.py",
        },
        machine={name: (name.encode().hex() * 32)[:64] for name in ("image", "kernel", "initrd")}
        | {"locked_image": (b"image".hex() * 32)[:64]},
        now=now,
        needs_bytes=needs_bytes,
    )


def make(
    out: Path,
    preset: str = "smoke",
    replicates: int | None = None,
    settings: list[str] | None = None,
    *,
    clock: Clock = "virtual",
    only: Sequence[str] = (),
) -> RunDirectory:
    """A complete run directory of Figure 3a."""
    plan = resolve.plan("fig3a", preset, settings or [], replicates=replicates, only=only)
    options = [word for setting in settings or [] for word in ("-s", setting)]
    options += ["--replicates", str(replicates)] if replicates else []
    options += ["--arms", ",".join(only)] if only else []
    run = create(out, plan, clock=clock, options=options)
    for trial in plan.trials():
        write_trial(run, trial)
        run.finish(trial.name, TrialRecord(status="done", exit_code=0, virtual_s=9.5, wall_s=6.25))
    run.close(NOW + datetime.timedelta(seconds=61))
    return run


DONE = TrialRecord(status="done", exit_code=0)


def add(run: RunDirectory, arm: str = "idle", record: TrialRecord = DONE) -> str:
    """Write the first trial of an arm into a run directory, and enter how it ended; its name."""
    trial = next(trial for trial in run.manifest.plan.trials() if trial.arm.name == arm)
    write_trial(run, trial)
    run.finish(trial.name, record)
    return trial.name


def results(run: RunDirectory) -> Results:
    """The digests of what is on disk."""
    return contents.results(run.path, run.manifest)


def discrepancies(run: RunDirectory) -> list[str]:
    """What disk, manifest and marks do not agree in."""
    return contents.discrepancies(run.path, run.manifest)


Values = Mapping[str, Mapping[str, float | Sequence[float]]]
"""Of each measure of each workload: one value, or one a seed."""


def summary(name: str, values: Values | None = None, **entries: Any) -> ArmSummary:
    """An arm with these values of seeds 1, 2, ..., and ``entries``."""
    measures = {
        workload: {
            measure: Spread.of(dict(enumerate(of if isinstance(of, Sequence) else [of], start=1)))
            for measure, of in measured.items()
        }
        for workload, measured in (values or {}).items()
    }
    plain = {"label": name, "scheme": "", "planned": 1, "done": 1, "flows": {}}
    return ArmSummary(**{"name": name, "measures": measures, **plain, **entries})


def summaries(plan: Plan, values: Mapping[str, Values]) -> list[ArmSummary]:
    """Arms of a plan with these values, by their names."""
    labels = {arm.name: arm.label for arm in plan.arms}
    return [summary(name, of, label=labels[name]) for name, of in values.items()]


def altered(plan: Plan, **parts: Mapping[str, Any]) -> Plan:
    """A plan with other entries in its parts, such as ``shown={"title": "another"}``."""
    return replace(
        plan, **{part: replace(getattr(plan, part), **entries) for part, entries in parts.items()}
    )


def redrawn(manifest: Manifest, **entries: Any) -> Manifest:
    """A manifest whose experiment has these entries of ``[figure]``."""
    figure = replace(manifest.plan.shown.figure, **entries)
    return replace(manifest, plan=altered(manifest.plan, shown={"figure": figure}))


def outcome(arms: Sequence[ArmSummary], **entries: Any) -> Outcome:
    """An outcome of nothing but these arms, and ``entries``."""
    nothing: dict[str, Any] = {
        "plan_sha256": "",
        "results_sha256": "",
        "reference": "",
        "verdicts": (),
        "checks": (),
        "missing": {},
        "drawings": (),
        "exit_code": 0,
    }
    return Outcome(arms=tuple(arms), **{**nothing, **entries})
