"""Writes what the trials of the presets take into qjump_mn/costs.json, from run directories, and the tables
of docs/costs.md from that.

    python3 bench/costs.py [--write] [RUN_DIRECTORY ...]

Without `--write` the tables go to standard output. The runs are of the machine that this is called on. Only
arms that are run as the preset has them count; the last of their runs wins."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import msgspec

from bench import marks
from qjump_mn import costs
from qjump_mn.backends import registry
from qjump_mn.costs import ArmCost, Costs, PresetCost
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, resolve
from qjump_mn.model.plan import Trial
from qjump_mn.results import manifest
from qjump_mn.results.manifest import Manifest

PAGE = ROOT / "docs/costs.md"


def main(arguments: list[str]) -> None:
    """Print or write."""
    folders = [Path(argument) for argument in arguments if not argument.startswith("--")]
    found = renewed(costs.measured(), folders)
    if "--write" not in arguments:
        print(table(found))
        return
    costs.FILE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    marks.write(PAGE, "costs", table(found))


def renewed(before: Costs, folders: list[Path]) -> Costs:
    """What is known with the runs in the ``folders``; nothing of arms that are run otherwise by now."""
    presets = {name: fresh for name, preset in before.presets.items() if (fresh := _fresh(name, preset))}
    for folder in folders:
        record = manifest.read(folder)
        name = f"{record.plan.experiment}/{record.plan.preset}"
        if (cost := _cost(folder, record)) is not None:
            presets[name] = _joined(presets.get(name), cost)
    work_s = round(costs.work_s(), 5) if folders else before.work_s
    return Costs(work_s, {name: presets[name] for name in sorted(presets)})


def _cost(folder: Path, record: Manifest) -> PresetCost | None:
    """What a run's trials took; None of a run that is not as its preset is."""
    usual = {key: trial.arm.name for key, trial in _usual(record.plan.experiment, record.plan.preset).items()}
    took: dict[str, list[float]] = {}
    by_processor, memory = True, [0]
    for trial in record.plan.trials():
        done = record.trials.get(trial.name)
        if done is None or done.status != "done" or done.wall_s is None or costs.arm_key(trial) not in usual:
            continue
        by_processor = by_processor and done.cpu_s is not None
        took.setdefault(trial.arm.name, []).append(done.wall_s if done.cpu_s is None else done.cpu_s)
        memory.append(done.memory_mb or 0)
    if not took:
        return None
    keys = {name: key for key, name in usual.items()}
    arms = {name: ArmCost(keys[name], round(statistics.mean(each), 2)) for name, each in took.items()}
    by: Literal["processor", "clock"] = "processor" if by_processor else "clock"
    return PresetCost(record.backend, by, max(memory) or None, arms)


def _fresh(name: str, preset: PresetCost) -> PresetCost | None:
    """Without the arms that are run otherwise by now."""
    try:
        usual = _usual(*name.split("/"))
    except UsageError:  # there is no such preset any more
        return None
    arms = {arm: cost for arm, cost in preset.arms.items() if cost.run in usual}
    return msgspec.structs.replace(preset, arms=arms) if arms else None


def _joined(before: PresetCost | None, now: PresetCost) -> PresetCost:
    """With the arms that only the earlier runs have."""
    if before is None or before.backend != now.backend:
        return now
    more = {name: cost for name, cost in before.arms.items() if name not in now.arms}
    by = "clock" if more and before.by == "clock" else now.by
    return msgspec.structs.replace(now, by=by, arms={**now.arms, **more})


def _usual(experiment: str, preset: str) -> dict[str, Trial]:
    """A trial of each arm of a preset as it comes, by what identifies it."""
    plan = resolve.plan(experiment, preset, [])
    return {costs.arm_key(trial): trial for trial in plan.trials()[: len(plan.arms_run)]}


def table(found: Costs) -> str:
    """What programs say and what trials took, by preset; and the presets that are estimates."""
    every = [(name, preset) for name in loading.names("experiments") for preset in loading.presets(name)]
    missing = [f"`{name}/{preset}`" for name, preset in every if not _known(found, name, preset)]
    return "\n".join([*_rows(found), "", f"Estimates, for nobody has measured them: {', '.join(missing)}."])


def _known(found: Costs, experiment: str, preset: str) -> bool:
    """Whether a preset's trials were measured: in runs of its own, or, but for seeds, in those of another."""
    if f"{experiment}/{preset}" in found.presets:
        return True
    plan = resolve.plan(experiment, preset, [])
    factors = costs.Factors(plan, registry.make(plan.backends[0]), found)
    return all(map(factors.measured, plan.trials()[: len(plan.arms_run)]))


HEADS = (
    *("preset", "arms", "took, s", "by", "programs alone say, s", "ratio"),
    *("other presets say, s", "ratio", "MB"),
)


def _rows(found: Costs) -> Iterator[str]:
    yield f"| {' | '.join(HEADS)} |"
    yield f"|{'---|' * len(HEADS)}"
    for name, preset in found.presets.items():
        experiment, _, of = name.partition("/")
        usual, backend = _usual(experiment, of), registry.make(preset.backend)
        known = [(usual[arm.run], arm.seconds) for arm in preset.arms.values() if arm.run in usual]
        if not known:
            continue
        others = {one: cost for one, cost in found.presets.items() if one != name}
        factors = costs.Factors(
            resolve.plan(experiment, of, []), backend, msgspec.structs.replace(found, presets=others)
        )
        took = sum(seconds for _, seconds in known)
        said = sum(costs.said_s(trial, backend) for trial, _ in known)
        expected = sum(factors.of(trial) * costs.said_s(trial, backend) for trial, _ in known)
        cells = [name, str(len(known)), f"{took:.0f}", preset.by, f"{said:.0f}", f"{took / said:.2f}"]
        knows = any(factors.knows(trial) for trial, _ in known)
        cells += [f"{expected:.0f}", f"{took / expected:.2f}"] if knows else ["–", "–"]
        yield f"| {' | '.join(cells)} | {preset.memory_mb or '–'} |"


if __name__ == "__main__":
    main(sys.argv[1:])
