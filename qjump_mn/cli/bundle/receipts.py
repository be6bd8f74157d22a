"""Compare what each guest's agent wrote down with the plan: the job that it got, and its files.

A trial whose files are a copy of another trial's, or that was run before the plan was edited, has
another job. This finds edits, and is no proof: whoever knows the program can write the file anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from qjump_mn.backends import guest
from qjump_mn.results import contents
from qjump_mn.results.manifest import Manifest

NAME = "agent.json"
CONSOLE = "console.log"
"""The file of a trial that the guest's host writes."""

_NO_STEPS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What the steps of a damaged plan raise."""


class Receipt(msgspec.Struct, frozen=True):
    """``agent.json``: the SHA-256 of the guest's setup and job, and of each file that it left."""

    job: str
    files: dict[str, str]


def problems(run: Path, facts: Manifest) -> list[str]:
    """Return a sentence for each trial whose guest got another job than the plan's, and for each
    file that is not the guest's."""
    trials = {trial.name: trial for trial in facts.plan.trials()}
    try:
        planned = {name: guest.job_sha256(trial) for name, trial in trials.items()}
    except _NO_STEPS as error:
        return [f"the plan has no jobs: {type(error).__name__}: {error}"]
    listed = contents.by_trial(facts.files)
    done = [name for name in trials if name in facts.trials and facts.trials[name].status == "done"]
    receipts = {name: _receipt(run, name) for name in done}
    found = [_missing([name for name in done if receipts[name] is None], len(done))]
    for name, receipt in receipts.items():
        if receipt is not None:
            found += _problems(name, receipt, planned, listed.get(name, {}))
    return [problem for problem in found if problem]


def _receipt(run: Path, name: str) -> Receipt | None:
    path = run / contents.TRIALS / name / NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _missing(names: list[str], trials: int) -> str:
    """Return one sentence for all trials without the file; empty if there are none."""
    if not names:
        return ""
    which = f"{names[0]}/{NAME} is" if len(names) == 1 else f"{NAME} of {len(names)} trials are"
    if len(names) == trials > 1:
        which = f"{NAME} of all {trials} trials are"
    return f"{which} missing or cannot be read; or an older version of qjump-mn ran it"


def _problems(
    name: str, receipt: Receipt, planned: Mapping[str, str], listed: Mapping[str, str]
) -> Iterator[str]:
    folder = f"{contents.TRIALS}/{name}"
    if receipt.job != planned[name]:
        other = next((trial for trial, job in planned.items() if job == receipt.job), None)
        ran = f"the job of {other}" if other else "another job than the plan's"
        yield f"the guest of {name} ran {ran}; or another version of qjump-mn ran it"
    written = {f"{folder}/{path}": digest for path, digest in receipt.files.items()}
    ours = (f"{folder}/{NAME}", f"{folder}/{CONSOLE}")
    for path in sorted({*written, *listed}.difference(ours)):
        if written.get(path) != listed.get(path):
            yield f"{path} is not what the guest wrote"
