"""Analyse a run directory: tables, measures, fidelity, verdicts, figures, reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from qjump_mn.analysis import (
    copies,
    fidelity,
    link_loads,
    margins,
    measures,
    published_comparison,
    sentences,
    verdicts,
)
from qjump_mn.analysis.check import check
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.programs import registry
from qjump_mn.programs.facts import TrialTables
from qjump_mn.report import document, drawing, notes
from qjump_mn.report.player import page as player
from qjump_mn.report.timelines import page as timelines
from qjump_mn.results import contents, directory, outcome, reference, tables
from qjump_mn.results.contents import Results
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome


@dataclasses.dataclass(frozen=True)
class Analysed:
    """A run directory with its outcome and the digests of its results."""

    run: RunDirectory
    manifest: Manifest
    outcome: Outcome
    results: Results


def analyse(path: Path) -> Analysed:
    """Analyse the run in ``path`` and write tables, ``verdicts.json``, figures and reports into it.

    Nothing is run again, and root is not needed. An incomplete run is analysed as far as it goes.
    Raises UsageError if ``path`` is not a run directory, or if its plan has a bad claim or figure.
    """
    run = _existing(path)
    notes.read(run.path)  # an error in the notes comes before anything is written
    manifest = run.manifest
    plan = manifest.plan
    registry.check(registry.of(workload).name for arm in plan.arms for workload in arm.workloads)
    check(plan)
    data, missing = read_trials(run, manifest)
    results = contents.results(run.path, manifest)
    result = _judge(run, manifest, data, missing, results)
    outcome.write(run.path, result)
    timelines.write(run, manifest, data)
    player.write(run, manifest, data)
    document.write(run, manifest, result)
    directory.hand_over(run.path)
    return Analysed(run, manifest, result, results)


def _existing(path: Path) -> RunDirectory:
    try:
        return directory.existing(path)
    except UsageError:
        registry.check(registry.broken())  # a manifest cannot be read without its program
        raise


def _judge(
    run: RunDirectory,
    manifest: Manifest,
    data: Sequence[TrialTables],
    missing: Mapping[str, str],
    results: Results,
) -> Outcome:
    """Measure the trials, check their fidelity, judge the claims, and draw the figures."""
    plan = manifest.plan
    measured = [measures.measure(trial) for trial in data]
    perturbed, missing_perturbed = _perturbed(run, manifest)
    every_missing = {**missing, **missing_perturbed}
    checks = fidelity.checks(run, manifest, data, every_missing)
    rows = margins.add_margins(plan, verdicts.judge(plan, measured, checks), perturbed)
    arms = measures.summarise(plan, measured)
    exit_code = verdicts.exit_code(rows, missing, checks)
    compared = reference.compare(
        manifest,
        results,
        reference.find(plan.shown.experiment, plan.shown.preset),
        valid=exit_code != verdicts.INVALID,
    )
    return Outcome(
        plan_sha256=manifest.plan_sha256,
        results_sha256=results.sha256,
        reference=compared.sentence,
        arms=arms,
        verdicts=rows,
        checks=checks,
        missing=every_missing,
        drawings=drawing.draw(run, manifest, arms),
        exit_code=exit_code,
        links=link_loads.summarise(data),
        beside=published_comparison.compare(manifest, arms),
        sentences=sentences.of(plan, arms),
        alike=tuple(copies.alike(manifest)),
        reference_clause=compared.clause,
    )


def read_trials(run: RunDirectory, manifest: Manifest) -> tuple[list[TrialTables], dict[str, str]]:
    """Return the tables of every trial that is done, and the reason for each other trial."""
    return _read(run, manifest, manifest.plan.unperturbed.trials())


def _perturbed(
    run: RunDirectory, manifest: Manifest
) -> tuple[list[margins.PerturbedRun], dict[str, str]]:
    """Return each perturbed run's measures, and the reason for each trial without tables.

    The runs are read one by one: all their tables may not fit into memory.
    """
    plan, runs, missing = manifest.plan, [], dict[str, str]()
    files = contents.by_trial(manifest.files)
    for number, perturbation in enumerate(plan.run.perturbations, 1):
        data, reasons = _read(run, manifest, plan.perturbed(number))
        missing |= reasons
        perturbed = margins.PerturbedRun(
            number=number,
            what=perturbation.what,
            measured={trial.trial.arm.name: measures.measure(trial).values for trial in data},
            constants=plan.judged.varied.get(perturbation.what, plan.judged.constants),
            says=margins.reached(plan, files, number)
            and all(check.status != "fail" for check in fidelity.of_trials(run, manifest, data)),
        )
        runs.append(perturbed)
    return runs, missing


def _read(
    run: RunDirectory, manifest: Manifest, trials: Iterable[Trial]
) -> tuple[list[TrialTables], dict[str, str]]:
    data, missing = [], {}
    for trial in trials:
        record = manifest.trials.get(trial.name)
        if record is not None and record.status != "done":
            missing[trial.name] = (
                f"{record.status}: {record.message or f'exit code {record.exit_code}'}"
            )
        elif not run.is_done(trial.name):
            missing[trial.name] = "not run"
        else:
            try:
                data.append(tables.build(run, trial))
            except LostError as error:
                missing[trial.name] = f"unreadable: {error}"
    return data, missing
