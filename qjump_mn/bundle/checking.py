"""``check``: what can be said of a bundle that somebody hands in.

It is a stranger's file. Nothing in it is executed but in a guest, and only if it is run again; what reads the
programs' output has limits, and what is printed has no control characters.
"""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from qjump_mn import provenance, scratch, verification
from qjump_mn.bundle import archive, assignment
from qjump_mn.errors import BEGINS, InvalidRunError, LostError, MachineError, UsageError
from qjump_mn.judging import judging
from qjump_mn.results import contents, directory, manifest, outcome, wording
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome

MOST_SHOWN = 20
MEMORY_BYTES = 4 << 30
WITH_FOLDER = ("<title>", "qjump-mn report ")
"""Lines of a report that begin so have the name of the run's folder, which a bundle has not."""
TIME_S = 900
"""What judging a run may take: 15 s and 1 GiB for the largest of ours."""


def check(
    path: Path,
    out: Console,
    *,
    options_of: Callable[[Sequence[str]], Mapping[str, Any]],
    assigned: Path | None = None,
    again: bool = False,
    arms: Sequence[str] = (),
    sample: int = 0,
) -> int:
    """Say whether the bundle ``path`` is as it was made, of the plan that was ``assigned``, and says what
    its raw files say. ``options_of`` reads a run's command line; ``again`` runs its trials here, as
    :func:`verification.verify` does with ``arms`` and ``sample``.

    Returns 0 where all is well and no trial is missing, 4 for a run that cannot be believed, 5 where a trial
    was lost that was run again, and 1 for anything else. Raises :class:`archive.ChangedError` for a bundle
    that was edited, other :class:`UsageError` for what is no bundle and for an assignment that makes no plan,
    and :class:`MachineError` where the disk is full.
    """
    asked = assignment.read(assigned) if assigned else None
    with scratch.folder() as folder:
        run = Path(folder, "run")
        run.mkdir()
        archive.opened(path, run)
        directory.hand_over(Path(folder))
        told, codes = _manifest(path, run), []
        out.print(_about(told), markup=False)
        codes.append(_untouched(run, told, out))
        if asked is not None:
            codes.append(_as_assigned(asked, told, options_of(told.argv), out))
        else:
            codes.append(_as_here(told, out))
        judged = _judged_alike(run, told, out)
        codes.append(judged)
        if again and not any(record.status == "done" for record in told.trials.values()):
            out.print("no trial is done: nothing can be run again", markup=False)
        elif again and judged == InvalidRunError.exit_code and not (arms or sample):
            out.print(
                "not run again: the run is invalid; add --arms or --sample to run some of its trials all the "
                "same",
                markup=False,
            )
        elif again:
            codes.append(verification.verify(run, out, arms=arms, sample=sample))
    code = max(codes)
    good = "all is well" if again else "nothing found; not proved: use --rerun"
    out.print("not all is well: see above" if code else good, markup=False)
    return code


def _manifest(path: Path, run: Path) -> Manifest:
    """That of the bundle ``path``, which was opened into ``run``; nobody knows that folder."""
    try:
        return manifest.read(run)
    except UsageError as error:
        raise UsageError(str(error).replace(str(run), str(path))) from None


def _about(told: Manifest) -> str:
    version = told.versions.get("qjump-mn", "unknown")
    text = (
        f"{told.plan.experiment}, preset {told.plan.preset}, {wording.seeds(told.plan.seeds)}; "
        f"run on {told.started_utc} by qjump-mn {version} on machine "
        f"{told.machine.get('image', 'none')[:12]}, backend {told.backend}: {shlex.join(told.argv)}"
    )
    return plain(text)


def plain(text: str) -> str:
    """A stranger's words without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _untouched(run: Path, told: Manifest, out: Console) -> int:
    problems = [*contents.discrepancies(run, told), *contents.unmarked(run, told)]
    if told.plan.hash != told.plan_sha256:
        problems.insert(0, "the plan is not the one that was run")
    count = len(told.files)
    return _said(out, f"files: all {count} are those of the manifest", "files", problems)


def _as_assigned(asked: assignment.Assignment, told: Manifest, given: Mapping[str, Any], out: Console) -> int:
    return _said(out, "plan: as assigned", "plan", assignment.differences(asked, told, given))


def _as_here(told: Manifest, out: Console) -> int:
    good, problems = assignment.compared_here(told)
    return _said(out, good, "plan", problems)


def _said(out: Console, good: str, what: str, problems: Sequence[str]) -> int:
    """Print what is good, or the problems; the exit code."""
    if not problems:
        out.print(good, markup=False)
        return 0
    for problem in problems[:MOST_SHOWN]:
        out.print(plain(f"{what}: {problem}"), markup=False)
    if len(problems) > MOST_SHOWN:
        out.print(f"{what}: and {len(problems) - MOST_SHOWN} more", markup=False)
    return 1


def _written(run: Path) -> dict[str, list[str]]:
    """The lines of what was written from the raw files for readers, pictures apart."""
    found = {}
    for name in ("report.md", "report.html", *(f"fig/{file.name}" for file in (run / "fig").glob("*.csv"))):
        if (run / name).is_file():
            text = (run / name).read_text(errors="replace")
            text = re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]*", "", text)
            lines = text.splitlines()
            found[name] = [line for line in lines if not line.startswith(WITH_FOLDER)]
    return found


def _written_alike(
    theirs: dict[str, list[str]], ours: dict[str, list[str]], told: Manifest, out: Console
) -> int:
    """Compare the report and the tables of figures with those that are written anew."""
    if told.git != provenance.git():
        out.print("report: not compared, for another version of qjump-mn wrote it: read yours", markup=False)
        return 0
    problems = []
    for name in sorted(theirs.keys() | ours.keys()):
        pairs = itertools.zip_longest(theirs.get(name, ()), ours.get(name, ()), fillvalue="")
        other = next((number for number, (one, two) in enumerate(pairs, 1) if one != two), None)
        if other is not None:
            problems.append(f"{name} is not what the raw files give, from line {other} on")
    return _said(out, "report: written anew, it is the bundle's, pictures apart", "report", problems)


def _judged_alike(run: Path, told: Manifest, out: Console) -> int:
    """Judge the run from its raw files, and compare with what the bundle says."""
    try:
        said: Outcome | None = outcome.read(run)
    except UsageError:
        said = None
    report = _written(run)
    _analyse(run)
    judged = outcome.read(run)
    table = {row.claim: row for row in (said.verdicts if said else ())}
    problems = [] if said else ["the bundle has no verdicts that can be read"]
    for row in judged.verdicts:
        out.print(Text(plain(f"  {row.verdict}  {wording.value(row)}  {row.statement} ({row.claim})")))
        if said and (row.claim not in table or table[row.claim].verdict != row.verdict):
            theirs = table[row.claim].verdict if row.claim in table else "nothing"
            problems.append(f"{row.claim} is {row.verdict}, the bundle says {theirs}")
    if said and said.arms != judged.arms:
        problems.append("the measures of the bundle are not those of its raw files")
    code = _said(
        out, "verdicts: judged again from the raw files, they are the bundle's", "verdicts", problems
    )
    code = max(code, _written_alike(report, _written(run), told, out))
    failed = [check for check in judged.checks if check.status == "fail"]
    for one in failed:
        out.print(plain(f"fidelity: {one.name}: {one.text}"), markup=False)
        code = max(code, 1)
    # A gate that does not hold leaves no verdict that may be believed, though the files are what they were.
    invalid = [row for row in judged.verdicts if row.verdict == "INVALID"]
    if invalid:
        out.print(plain(f"the run cannot be believed: {invalid[0].note}"), markup=False)
    return code if judged.believable and not invalid else InvalidRunError.exit_code


def _analyse(run: Path) -> None:
    """Judge the run in a process of its own, with an end to its memory and its time."""
    (run / outcome.NAME).unlink(missing_ok=True)
    limits = ("--limits", str(MEMORY_BYTES), str(TIME_S))
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with judging(run, *limits, **silent) as process:
        _, errors = process.communicate()
    if not (run / outcome.NAME).is_file():
        last = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        is_machine = process.returncode == MachineError.exit_code  # a full disk
        kind = MachineError if is_machine else LostError
        raise kind(plain(f"the run cannot be judged: {last[0].removeprefix(BEGINS)}"))
