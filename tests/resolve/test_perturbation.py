"""Perturbed runs in a plan: what is varied, one thing at a time, and that nothing else becomes
another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.backends import estimate
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.programs import registry
from tests.support.processes import cli

SEED, PACKETS = "another seed", "full-size packets - 4 B"


def planned(name: str = "fig3a", preset: str = "smoke", *settings: str, **options: Any) -> Plan:
    return resolve.plan(name, preset, list(settings), **options)


def different(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two values of one shape differ, with both."""
    if isinstance(before, dict):
        assert before.keys() == after.keys()
        for key in before:
            yield from different(before[key], after[key], f"{place}.{key}".lstrip("."))
    elif isinstance(before, list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            yield from different(one, other, place)
    elif before != after:
        yield place, before, after


def varied(plan: Plan, what: str) -> set[tuple[str, Any, Any]]:
    """What is otherwise in the arms of the perturbed runs with ``what``."""
    ordinary = sorted(plan.run.arms, key=lambda arm: arm.name)
    return set(
        different(*(msgspec.to_builtins(arms) for arms in (ordinary, list(plan.run.varied[what]))))
    )


@pytest.mark.parametrize("replicates", [1, 3])
def test_the_trials_of_replicates_are_the_same_with_and_without(replicates: int) -> None:
    without, plan = planned(replicates=replicates), planned(replicates=replicates, perturb=9)
    assert plan.unperturbed == without and plan.unperturbed.hash == without.hash
    assert plan.hash != without.hash
    assert plan.trials()[: len(without.trials())] == without.trials()
    assert len(plan.trials()) == len(without.trials()) + 9 * len(without.run.arms)
    assert planned(replicates=replicates, perturb=0) == without
    assert (
        msgspec.json.decode(msgspec.json.encode(plan), type=Plan, dec_hook=registry.decode) == plan
    )


def test_kinds_take_turns_and_each_turn_begins_from_the_other_seed_of_the_one_before() -> None:
    plan = planned(replicates=3, seed=5, perturb=10)
    assert [(one.what, one.seed) for one in plan.run.perturbations] == [
        (SEED, 8),
        ("buffer + 2 %", 5),
        ("propagation + 20 ns", 5),
        (PACKETS, 5),
        (SEED, 9),
        ("buffer - 2 %", 8),
        ("propagation + 40 ns", 8),
        (PACKETS, 8),
        (SEED, 10),
        ("buffer + 2 %", 9),
    ]
    assert {one.seed for one in plan.run.perturbations if one.what == SEED}.isdisjoint(
        plan.run.seeds
    )


def test_no_run_is_repeated_and_none_lies_in_the_folder_of_another() -> None:
    plan = planned(replicates=2, perturb=50, only=["contended", "qjump"])
    trials = plan.trials()
    assert (
        len({trial.name for trial in trials})
        == len({trial.hash for trial in trials})
        == len(trials)
    )
    assert [trial.name for trial in plan.perturbed(50)] == [
        "contended/perturbed50",
        "qjump/perturbed50",
    ]


def test_where_a_trial_lies_is_no_part_of_what_it_does() -> None:
    plan, more = planned(perturb=1), planned(replicates=2)
    assert [trial.hash for trial in plan.perturbed(1)] == [
        trial.hash for trial in more.trials() if trial.seed == 2
    ]


def test_a_buffer_is_varied_wherever_it_is_used() -> None:
    plan = planned(perturb=6)
    for what, buffer in (("buffer + 2 %", 155_244), ("buffer - 2 %", 149_156)):
        assert varied(plan, what) == {
            ("network.link.buffer_bytes", 152_200, buffer),
            ("network.trunk.buffer_bytes", 152_200, buffer),
        }
        assert plan.judged.varied[what]["buffer_ms"] == pytest.approx(buffer * 8e3 / 1e7)
    trunk = planned("fig3a", "smoke", "link.trunk_buffer=200kB", perturb=6)
    assert ("network.trunk.buffer_bytes", 200_000, 204_000) in varied(trunk, "buffer + 2 %")
    ecn = planned("fig3a", "smoke", schemes=["ecn"], only=["idle", "ecn"], perturb=6)
    lines = [line for arm in ecn.run.varied["buffer - 2 %"] for line in arm.scheme.switch_port]
    assert any("limit 149156" in line for line in lines), lines


def test_hosts_take_2_per_cent_more_or_less_where_they_take_any_time() -> None:
    plan = planned("table1", "paper", perturb=8)
    assert varied(plan, "host time + 2 %") == {("network.link.host_ns", 5000, 5100)}
    assert varied(plan, "host time - 2 %") == {("network.link.host_ns", 5000, 4900)}


def test_else_links_are_some_ns_longer_or_shorter() -> None:
    assert varied(planned(perturb=8), "propagation + 40 ns") == {
        ("network.link.delay_ns", 0, 40),
        ("network.trunk.delay_ns", 0, 40),
    }
    fabric = planned("fig9", "smoke", perturb=8)
    assert varied(fabric, "propagation - 20 ns") == {
        ("network.link.delay_ns", 2700, 2680),
        ("network.trunk.delay_ns", 200, 180),
    }


def test_packets_are_a_word_shorter() -> None:
    places = {"network.mtu_bytes", "network.link.mtu_bytes", "network.trunk.mtu_bytes"}
    plan = planned(perturb=4)
    assert varied(plan, PACKETS) == {(place, 1500, 1496) for place in places}
    assert plan.judged.varied[PACKETS]["frame_ms"] < plan.judged.constants["frame_ms"]


def test_one_machine_state_serves_all_but_shorter_packets() -> None:
    plan = planned("table1", "paper", perturb=8)
    arms: dict[str, tuple[ArmPlan, ...]] = {"": plan.run.arms, **plan.run.varied}
    states = {what: {arm.network.skeleton() for arm in some} for what, some in arms.items()}
    assert {what for what, some in states.items() if some != states[""]} == {PACKETS}


def test_a_link_whose_first_ns_would_add_a_queue_keeps_none() -> None:
    plan = planned("fig3a", "smoke", "link.model=htb", perturb=9)
    assert {one.what for one in plan.run.perturbations} == {
        SEED,
        "buffer + 2 %",
        "buffer - 2 %",
        PACKETS,
    }
    mixed = planned("links", "smoke", perturb=4)
    delays = {
        (arm.network.model, arm.network.link.delay_ns)
        for arm in mixed.run.varied["propagation + 20 ns"]
    }
    assert delays == {("wire", 20), ("htb", 0), ("tbf", 0)}


def test_what_cannot_be_varied_is_left_out_and_said() -> None:
    plan = planned("fig3a", "smoke", "workloads.ping.payload=1472B", perturb=8)
    assert PACKETS not in {one.what for one in plan.run.perturbations}
    assert any(
        remark.startswith(
            f"No perturbed run has {PACKETS}: experiment 'fig3a': workloads.ping.payload"
        )
        for remark in plan.shown.remarks
    )


@pytest.mark.parametrize("count", [-1, 1001])
def test_a_number_that_cannot_be_is_one_sentence(count: int) -> None:
    sentence = f"{count} perturbed runs are out of range: use 0 to 1000"
    with pytest.raises(UsageError, match=sentence):
        planned(perturb=count)
    done = cli("run", "fig3a", "--perturb", str(count), "--dry-run")
    assert (done.returncode, done.stderr) == (2, f"qjump-mn: {sentence}\n")


def test_the_expected_time_counts_them() -> None:
    backend, without = GuestBackend(), planned(replicates=2)
    alone_s = estimate.each_trial(without, backend, without.trials())
    perturbed = planned(replicates=2, perturb=6)
    each_s = estimate.each_trial(perturbed, backend, perturbed.trials())
    # Shorter packets are more: at most by 4 B of 1496 where all of a trial's time is theirs.
    shorter = 1 + [run.what for run in perturbed.run.perturbations].index(PACKETS)
    more_s = {
        trial.arm.name: each_s[trial.name] - alone_s[f"{trial.arm.name}/1"]
        for trial in perturbed.perturbed(shorter)
    }
    assert all(0 <= more <= alone_s[f"{arm}/1"] * 4 / 1496 for arm, more in more_s.items())
    assert sum(each_s.values()) - sum(more_s.values()) == pytest.approx(4 * sum(alone_s.values()))


@pytest.mark.parametrize(
    ("perturb", "used"),
    [(1, set()), (2, {"buffer + 2 %"}), (4, {"buffer + 2 %", "propagation + 20 ns", PACKETS})],
)
def test_plan_has_only_the_variants_that_it_runs(perturb: int, used: set[str]) -> None:
    made = planned("fig3a", "smoke", only=["idle"], perturb=perturb)
    assert set(made.run.varied) == set(made.judged.varied) == used


def test_only_perturbed_runs_remark_on_what_cannot_be_varied() -> None:
    for perturb, count in ((0, 0), (6, 1)):
        remarks = planned("fig3a", "smoke", "link.buffer=1522B", perturb=perturb).shown.remarks
        assert sum("No perturbed run has buffer - 2 %" in remark for remark in remarks) == count
