"""Compare what each guest's agent wrote down with the plan or the command: its job and its files.

A trial whose files are a copy of another trial's, or that was run before the plan was edited, has
another job. This finds edits, and is no proof: whoever knows the program can write the file anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from qjump_mn.backends import guest
from qjump_mn.errors import QJumpError
from qjump_mn.results import contents
from qjump_mn.results.manifest import AnyManifest, Manifest

NAME = "agent.json"
CONSOLE = "console.log"
"""The file of a trial that the guest's host writes."""

_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_NO_JOBS = (*_DAMAGED, OSError, QJumpError)
"""What the steps of a damaged plan raise, and what went into a damaged command's run."""


class Receipt(msgspec.Struct, frozen=True):
    """``agent.json``: the SHA-256 of the guest's setup and job, and of each file that it left."""

    job: str
    files: dict[str, str]


def problems(run: Path, facts: AnyManifest) -> list[str]:
    """Return a sentence for each trial whose guest got another job than the plan's or the
    command's, and for each file that is not the guest's."""
    origin = "plan" if isinstance(facts, Manifest) else "command"
    try:
        planned = _jobs(run, facts)
    except _NO_JOBS as error:
        return [f"the {origin} has no jobs: {type(error).__name__}: {error}"]
    listed = contents.by_trial(facts.files)
    records = facts.trials
    done = [name for name in planned if name in records and records[name].status == "done"]
    receipts = {name: _receipt(run, name) for name in done}
    found = [_missing([name for name in done if receipts[name] is None], len(done))]
    for name, receipt in receipts.items():
        if receipt is not None:
            found += _problems(name, receipt, planned, listed.get(name, {}), origin)
    return [problem for problem in found if problem]


def _jobs(run: Path, facts: AnyManifest) -> dict[str, str]:
    """Return the SHA-256 of the job of each trial, by name."""
    if isinstance(facts, Manifest):
        return {trial.name: guest.job_sha256(trial) for trial in facts.plan.trials()}
    # It imports the guest's parts, which other commands of the command line do without.
    from qjump_mn.mn import running

    command, own = facts.command, run / contents.OWN
    return {trial.name: running.job_sha256(command, own, trial.seed) for trial in command.trials()}


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
    name: str,
    receipt: Receipt,
    planned: Mapping[str, str],
    listed: Mapping[str, str],
    origin: str,
) -> Iterator[str]:
    folder = f"{contents.TRIALS}/{name}"
    if receipt.job != planned[name]:
        other = next((trial for trial, job in planned.items() if job == receipt.job), None)
        ran = f"the job of {other}" if other else f"another job than the {origin}'s"
        yield f"the guest of {name} ran {ran}; or another version of qjump-mn ran it"
    written = {f"{folder}/{path}": digest for path, digest in receipt.files.items()}
    ours = (f"{folder}/{NAME}", f"{folder}/{CONSOLE}")
    for path in sorted({*written, *listed}.difference(ours)):
        if written.get(path) != listed.get(path):
            yield f"{path} is not what the guest wrote"
