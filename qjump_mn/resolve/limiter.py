"""Resolve the limiter of an arm: its epoch, and each level's budget per epoch."""

from __future__ import annotations

from collections.abc import Iterable

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import hooks, ports, suggestions
from qjump_mn.model.experiment import ArmSpec, ExperimentSpec, QJumpSpec
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.scheme import KEEP_BUDGETS, Limiter
from qjump_mn.model.topology import Network
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.theory import LEVELS

MAX_FACTOR_BYTES = 2**31 - 1
MAX_OVERHEAD = 2048
LATENESS_NS = 25_000
"""The longest time from charging a frame until it leaves a host, at 10 Mb/s: docs/qdisc.md,
"slack".
"""
MODES_OF_2015 = ("2015", "drop")
"""The modes of sch_qjump2015, which charges a packet on arrival."""
LONG_EPOCHS = 2
"""Remark on an epoch this many times longer than Eq. 2: it is probably a mistake."""


def of_arm(
    where: str,
    name: str,
    arm: ArmSpec,
    experiment: ExperimentSpec,
    network: Network,
    time_scale: int,
) -> QJumpPlan | None:
    """Return the limiter that an arm names, by default the first, in the mode of its scheme; None
    if its scheme does not limit.
    """
    mode = experiment.schemes[arm.scheme].limiter
    limiters = experiment.qjump
    if mode is None:
        if arm.qjump is not None:
            raise UsageError(
                f"{where}: arms.{name}: qjump = {arm.qjump!r} needs a scheme that limits, and "
                f"{arm.scheme!r} does not: leave qjump out"
            )
        return None
    if not limiters:
        raise UsageError(
            f"{where}: arms.{name}: scheme {arm.scheme!r} needs a limiter, and the experiment has "
            "none: add a table [qjump.NAME]"
        )
    key = _key(arm, experiment)
    if key not in limiters:
        raise UsageError(
            f"{where}: arms.{name}: there is no limiter qjump.{key}: "
            f"{suggestions.nearest(key, list(limiters))}"
        )
    return _limiter(f"{where}: qjump.{key}", limiters[key], mode, network, time_scale)


def _key(arm: ArmSpec, experiment: ExperimentSpec) -> str:
    """Return the name of the arm's limiter, by default the first."""
    return next(iter(experiment.qjump)) if arm.qjump is None else arm.qjump


def _limiter(
    where: str, spec: QJumpSpec, mode: Limiter, network: Network, time_scale: int
) -> QJumpPlan:
    _check(where, spec, mode)
    hosts = _hosts(spec, network)
    if hosts < 1 or spec.packet < 1:
        raise UsageError(
            f"{where}: hosts and packet must be at least 1 and 1B (got {hosts} and {spec.packet})"
        )
    equation = theory.network_epoch_ns(hosts, int(spec.packet), network.slowest_bps)
    epoch = equation if spec.epoch is None else int(spec.epoch)
    if not 1_000 <= epoch <= 10**11:
        raise UsageError(
            f"{where}: an epoch of {epoch / 1000:g} us is out of range: use 1us to 100s"
        )
    drops = mode in MODES_OF_2015
    return QJumpPlan(
        epoch_ns=epoch,
        budget_bytes=_budgets(where, spec, drops=drops),
        mode=mode,
        epochs="first-packet" if drops else spec.epochs,
        limit_packets=spec.limit_packets,
        slack_ns=_slack_ns(spec, mode, time_scale),
        overhead=0 if drops else spec.overhead,
        mpu=0 if drops else spec.mpu,
        priomap=spec.priomap,
    )


def _hosts(spec: QJumpSpec, network: Network) -> int:
    """Return n of Eq. 2."""
    return len(network.hosts) if spec.hosts is None else spec.hosts


def remarks(arm: ArmSpec, experiment: ExperimentSpec, plan: ArmPlan) -> list[str]:
    """Return remarks on the budgets of an arm's limiter."""
    if plan.qjump is None:
        return []
    name, sentences = _key(arm, experiment), []
    spec = experiment.qjump[name]
    if spec.budget_packet != spec.packet:
        equation = f"Eq. 2 with P = {int(spec.packet)} B, n = {_hosts(spec, plan.network)}."
        sentences.append(
            f"Limiter {name!r}: a factor counts {int(spec.budget_packet)} B per epoch, while the "
            f"epoch of {plan.qjump.epoch_ns / 1e6:g} ms is "
            f"{equation if spec.epoch is None else 'given.'}"
        )
    blocked = [str(number) for number in LEVELS if plan.qjump.blocks(number)]
    if blocked:
        sentences.append(
            f"Limiter {name!r}: nothing of level {', '.join(blocked)} passes, because in mode 2015 "
            "a level without a factor has no budget."
        )
    return sentences


def _slack_ns(spec: QJumpSpec, mode: Limiter, time_scale: int) -> int:
    """Return by how many ns a limiter that charges on departure extends its epoch, so that no
    window of one epoch has more than a budget on the wire.
    """
    if mode not in KEEP_BUDGETS or spec.epochs != "rolling":
        return 0
    return LATENESS_NS // time_scale if spec.slack is None else int(spec.slack)


def _check(where: str, spec: QJumpSpec, mode: Limiter) -> None:
    if not 1 <= spec.limit_packets <= 100_000:
        raise UsageError(
            f"{where}: limit_packets = {spec.limit_packets} is out of range: use 1 to 100000"
        )
    for key, value in (("overhead", spec.overhead), ("mpu", spec.mpu)):
        if not 0 <= value <= MAX_OVERHEAD:
            raise UsageError(f"{where}: {key} = {value} is out of range: use 0 to {MAX_OVERHEAD}")
    if len(spec.priomap) != 16 or not set(spec.priomap) <= set(LEVELS):
        raise UsageError(
            f"{where}: priomap must have 16 levels from 0 to 7, one for each priority from 0 to 15"
        )
    if spec.slack is not None and not 0 <= spec.slack <= 10**11:
        raise UsageError(f"{where}: a slack of {spec.slack} is out of range: use 0us to 100s")
    if mode in MODES_OF_2015 and spec.epochs == "aligned":
        raise UsageError(
            f"{where}: in mode {mode} epochs start with the first packet, not aligned: leave "
            "`epochs` out"
        )


def _budgets(where: str, spec: QJumpSpec, *, drops: bool) -> tuple[int, ...]:
    """Return each level's bytes per epoch; 0 for a level without a factor."""
    smallest = theory.MINIMUM_FRAME_BYTES - theory.VLAN_TAG_BYTES - theory.FCS_BYTES
    least = theory.MINIMUM_FRAME_BYTES if drops else max(smallest + spec.overhead, spec.mpu)
    budgets = [0] * len(LEVELS)
    for text, factor in spec.factors.items():
        number = level(f"{where}.factors", text)
        if factor <= 0 or factor * spec.budget_packet > MAX_FACTOR_BYTES:
            raise UsageError(
                f"{where}.factors.{number}: a factor of {factor:g} is out of range: use a positive "
                "one, or leave the level out for unlimited"
            )
        budget = round(factor * spec.budget_packet)
        if budget < least:
            raise UsageError(
                f"{where}.factors.{number}: a budget of {budget} bytes per epoch is less than the "
                f"smallest frame costs ({least} bytes), so nothing could be sent: raise the factor "
                "or budget_packet"
            )
        budgets[number] = budget
    return tuple(budgets)


def check_packets(where: str, limiter: QJumpPlan, workloads: Iterable[WorkloadPlan]) -> None:
    """Raise :class:`UsageError` for a workload whose packets all cost more than its level's budget,
    or whose level lets nothing pass.
    """
    for sender, used, ip_bytes in [
        ("frames without a level", 0, None),
        *(
            (load.name, used, hooks.packet_bytes(load))
            for load in workloads
            for used in sorted(hooks.levels(load))
        ),
    ]:
        if limiter.blocks(used):
            raise UsageError(
                f"{where}: {sender} would have level {used}, of which the limiter lets nothing "
                f"pass in mode 2015: give it a factor for level {used}"
            )
        budget = limiter.budget_bytes[used]
        if ip_bytes and 0 < budget < (cost := limiter.cost_bytes(ip_bytes)):
            raise UsageError(
                f"{where}: a packet of {sender} costs {cost} B of level {used}, whose budget is "
                f"{budget} B, so none could be sent: raise the factor or budget_packet"
            )


def long_epoch(arm: ArmSpec, experiment: ExperimentSpec, plan: ArmPlan) -> list[str]:
    """Return a remark on an epoch that is much longer than Eq. 2 gives for the hosts that send at a
    level with a factor.
    """
    if plan.qjump is None:
        return []
    name = _key(arm, experiment)
    spec, epoch = experiment.qjump[name], plan.qjump.epoch_ns
    if spec.epoch is None:
        return []
    sending = {
        source
        for workload in plan.workloads
        if any(plan.qjump.budget_bytes[level] for level in hooks.levels(workload))
        for (source, _), _ in ports.ways(workload, plan.network)
    }
    hosts = len(sending) if spec.hosts is None else spec.hosts
    equation = theory.network_epoch_ns(hosts, int(spec.packet), plan.network.slowest_bps)
    if not hosts or epoch < LONG_EPOCHS * equation:
        return []
    share, budget = (
        theory.host_rate_bps(int(spec.packet), equation),
        theory.host_rate_bps(int(spec.budget_packet), epoch),
    )
    return [
        f"Limiter {name!r}: its epoch, {epoch / 1e6:g} ms, is {epoch / equation:.3g} times as long "
        f"as that of Eq. 2 for n = {hosts}: factor 1 is {budget / 1e3:.3g} kb/s, "
        f"{share / budget:.3g} times less than Eq. 3's share, {share / 1e3:.3g} kb/s. So levels "
        "are limited by it, not by the network."
    ]


def level(where: str, text: str) -> int:
    """Return ``text`` as a level. Raise :class:`UsageError` that begins with ``where`` if it is not
    one.
    """
    if text not in {str(number) for number in LEVELS}:
        raise UsageError(f"{where}: {text!r} is not a level: use 0 to 7; 7 is the most urgent")
    return int(text)
