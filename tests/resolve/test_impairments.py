"""Links that lose, delay and reorder frames: what is asked for, its commands, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Run, Start
from qjump_mn.links import registry
from qjump_mn.model import identity
from qjump_mn.model.link import Impairment
from qjump_mn.model.topology import Network
from qjump_mn.resolve import plan
from qjump_mn.steps import traces
from qjump_mn.steps.apply_arm import apply_arm, port_queues

JITTER = "0:0us,50:10us,100:1ms"


def network_of(*settings: str) -> Network:
    return plan("fig3a", "smoke", list(settings)).arms[0].network


def lines(network: Network, device: str, *, on_switch: bool, seed: int = 7) -> str:
    link = network.by_device()[device]
    return "\n".join(registry.of("wire").shape(link, device, on_switch=on_switch, seed=seed).tc)


def test_loss_is_drawn_where_a_frame_is_received_and_from_the_seed() -> None:
    network = network_of("link.loss_of.h3=0.1%")
    (port,) = [port for (_, port), (node, _) in network.ports() if node == "h3"]
    for device, on_switch in ((port, True), ("h3-eth0", False)):
        first = lines(network, device, on_switch=on_switch)
        assert f"dev i-{device} root netem limit 1000 loss 0.1000000% seed " in first
        assert first == lines(network, device, on_switch=on_switch)
        assert first != lines(network, device, on_switch=on_switch, seed=8)
    assert "netem" not in lines(network, "h4-eth0", on_switch=False)
    assert network.told_impairments == "links of h3 lose 0.1% of frames"


def test_reordered_frames_wait_and_the_others_do_not() -> None:
    network = network_of("link.reorder=1%", "link.reorder_by=2ms")
    assert "netem limit 1000 delay 2000000ns reorder 99.0000000% seed" in lines(
        network, "h3-eth0", on_switch=False
    )
    assert network.told_impairments == "links delay 1% by 2ms, out of order"


def test_jitter_is_the_wire_s_own_at_both_ends() -> None:
    network = network_of(f"link.jitter_of.s2={JITTER}")
    drawn = "jitter 0:0ns,50:10000ns,100:1000000ns seed 7"
    ends = [(port, device) for (_, port), (node, device) in network.ports() if node == "s2"]
    for device in ends[0]:
        assert lines(network, device, on_switch=True).endswith(drawn)
        assert "netem" not in lines(network, device, on_switch=True)
    assert "jitter" not in lines(network, "h3-eth0", on_switch=False)


def test_a_link_without_impairment_overrides_the_others() -> None:
    network = network_of("link.loss=1%", "link.loss_of.h3=0%")
    assert "h3" not in dict(network.impaired)
    assert dict(network.impaired)["h4"] == Impairment(loss_ppb=10**7)
    assert network.skeleton() == network_of().skeleton()


def test_plans_without_impairments_keep_their_hash() -> None:
    network = network_of()
    assert "impair" not in str(identity.canonical(network))
    assert identity.sha256(network) != identity.sha256(network_of("link.loss=1%"))


def test_a_port_has_one_hook_for_loss_and_for_a_scheme_s_queues() -> None:
    settings = ["link.loss=1%", "arms.contended.scheme=priorities-fq-codel"]
    resolved = plan("fig3a", "smoke", settings)
    arm = next(arm for arm in resolved.arms if arm.scheme.switch_port and arm.uses_levels)
    text = "\n".join(str(getattr(step, "stdin", "")) for step in apply_arm(arm, 1))
    hooks = re.findall(r"qdisc add dev (\S+) clsact", text)
    assert len(hooks) == len(set(hooks)) and set(arm.network.switch_ports()) <= set(hooks)


def test_read_back_is_compared() -> None:
    wire = registry.of("wire")
    link = network_of("link.loss=0.1%", "link.reorder=1%", "link.reorder_by=2ms").links()[0]
    options: dict[str, Any] = {
        "loss-random": {"loss": 0.001},
        "delay": {"delay": 0.002},
        "reorder": {"reorder": 0.99},
    }
    netem = {"kind": "netem", "root": True, "options": options}
    assert wire.received_differences([netem], link) == []
    options["loss-random"]["loss"] = 0.002
    assert wire.received_differences([netem], link) == [
        "the loss of what it receives is 0.002, not 0.001"
    ]
    assert len(wire.received_differences([], link)) == 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["link.loss=60%"], "link.loss = 60% is out of range: use at most 50%"),
        (["link.loss_of.h99=1%"], "link.loss_of: there is no link of 'h99': name the host or"),
        (["link.loss=1"], "'1' is not a share: write a number and one of the units ppb, ppm, %"),
        (["link.reorder=1%"], "link.reorder needs the time by which these frames are late"),
        (["link.reorder_by=1ms"], "link.reorder_by needs a share of frames: set link.reorder"),
        (["link.jitter=0:0us,100:2s"], "link.jitter is out of range: use at most 1s at 100"),
        (
            ["link.loss=1%", "link.model=tbf"],
            "loss, jitter, reorder and trace are for links of model wire",
        ),
        (
            [f"link.jitter={JITTER}", f"link.host_jitter={JITTER}"],
            "a wire draws from one distribution: leave out link.jitter or link.host_jitter",
        ),
    ],
)
def test_wrong_impairments_are_refused(settings: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        network_of(*settings)


def test_a_trace_gates_the_port_towards_the_lower_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies/mine.trace").write_text("1\n1\n4\n")
    monkeypatch.chdir(tmp_path)
    resolved = plan("fig3a", "smoke", ["link.trace_of.s2=mine"])
    arm = resolved.arms[0]
    network = arm.network
    ((upper, lower),) = [
        (port, device) for (_, port), (node, device) in network.ports() if node == "s2"
    ]
    gate = f"qdisc add dev {upper} parent 5:1 handle 4: tbf rate 100bit burst 1518 limit"
    assert gate in lines(network, upper, on_switch=True)
    assert "tbf" not in lines(network, lower, on_switch=True)
    assert port_queues(arm.scheme, network)[upper][0].startswith(
        f"qdisc add dev {upper} parent 4:1 handle 20: prio"
    )
    assert port_queues(arm.scheme, network)[lower] == []
    write, start = traces.follow(network)
    assert isinstance(write, Run) and isinstance(start, Start)
    ((counts, by_count),) = json.loads(write.stdin)
    assert counts == [1, 2, 0, 0]
    assert f"dev {upper} parent 5:1 handle 4: tbf rate 100bit burst 3036 limit" in by_count["2"]
    assert network.told_impairments == "links of s2 follow a trace of 0.004 s"


def test_drawn_times_are_known() -> None:
    assert network_of(f"link.jitter_of.h3={JITTER}").draws_times
    assert network_of("link.reorder=1%", "link.reorder_by=2ms").draws_times
    assert not network_of("link.loss=1%").draws_times and not network_of().draws_times


def test_a_missing_trace_is_refused() -> None:
    with pytest.raises(UsageError, match=r"link.trace: there is no file none.trace: put it into"):
        network_of("link.trace=none")
