"""The kernel accepts the arms that no smoke run has, and what it reports is what was planned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.guest import Image, Job, Setup
from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.topology import Network
from qjump_mn.resolve import loading
from qjump_mn.steps import apply_arm, asbuilt, openvswitch, readback
from qjump_mn.steps.network import bring_up
from tests.guest.laboratory import run_well

pytestmark = pytest.mark.guest


def emulated(experiment: str, presets: list[str]) -> Iterator[tuple[str, ArmPlan]]:
    """The arms of an experiment that run on a kernel, called experiment/preset/arm."""
    for preset in presets:
        plan = resolve.plan(experiment, preset, [])
        if "guest" in plan.shown.backends:
            yield from ((f"{experiment}/{preset}/{arm.name}", arm) for arm in plan.arms)


def identity(arm: ArmPlan) -> bytes:
    """What is done to the network: of the workloads it depends on which hosts answer pings at which
    level. One epoch or budget is as good as another: tc takes it as a number of ns or bytes."""
    limiter = arm.qjump
    qjump = limiter and msgspec.structs.replace(
        limiter, epoch_ns=1, budget_bytes=tuple(min(budget, 1) for budget in limiter.budget_bytes)
    )
    answering = sorted(
        {reply for workload in arm.workloads for reply in hooks.echo_replies(workload)}
    )
    return msgspec.json.encode([arm.network, arm.scheme, qjump, arm.uses_levels, answering])


def untried() -> dict[str, ArmPlan]:
    """One arm for each treatment that only longer presets have."""
    experiments = loading.names("experiments")
    tried = {
        identity(arm) for experiment in experiments for _, arm in emulated(experiment, ["smoke"])
    }
    arms: dict[bytes, tuple[str, ArmPlan]] = {}
    for experiment in experiments:
        for name, arm in emulated(experiment, list(loading.presets(experiment))):
            if (key := identity(arm)) not in tried:
                arms.setdefault(key, (name, arm))
    return dict(arms.values())


def work(chosen: dict[str, ArmPlan]) -> list[dict[str, Any]]:
    """For each network what brings it up, and for each arm of it what treats it and reads it
    back."""
    networks: dict[Network, dict[str, Any]] = {}
    for name, arm in chosen.items():
        steps = [*apply_arm.apply_arm(arm, 1), *readback.built(arm)]
        networks.setdefault(arm.network.skeleton(), {})[name] = steps
    return [{"up": bring_up(network), "arms": arms} for network, arms in networks.items()]


@pytest.mark.nightly
def test_kernel_accepts_every_other_treatment(image: Image, booted: Setup, tmp_path: Path) -> None:
    chosen = untried()
    assert len(chosen) >= 30
    todo = {"openvswitch": openvswitch.start(), "networks": work(chosen)}
    script = Path(__file__).with_name("arms_job.py").read_text()
    files = {"work.json": msgspec.json.encode(todo).decode()}
    run_well(image, booted, Job(script=script, files=files, virtual_deadline_s=4000), tmp_path)
    for name, arm in chosen.items():
        assert asbuilt.differences(tmp_path / name / readback.BEFORE, arm) == [], name
    sentences = json.loads((tmp_path / "sentences.json").read_text())
    assert {name: sentences[name] for name in chosen} == dict.fromkeys(chosen, "")
