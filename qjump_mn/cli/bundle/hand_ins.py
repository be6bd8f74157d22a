"""``check``: check one bundle or a folder of students' bundles, and write tables for course staff.

Each bundle has its own judge (checking.py), so a bundle that kills its judge is one line of the
table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from qjump_mn.cli.bundle import assignment, checking
from qjump_mn.cli.bundle.checking import Checked, Rerun
from qjump_mn.cli.bundle.judge import Part
from qjump_mn.console import Table, unfolded_width
from qjump_mn.errors import MachineError, UsageError, is_full, reason_of
from qjump_mn.model.words import plain
from qjump_mn.process.files import write_atomically
from qjump_mn.resolve import checks
from qjump_mn.results import directory

ENDING = ".zip"
GRADESCOPE = "results.json"
"""The name of the file in which an autograder of Gradescope leaves its results."""
ENDINGS = (".csv", ".json")
COLUMNS = ("bundle", "check", "first problem")
FAULTS = 1


def check(
    path: Path,
    out: Console,
    *,
    assigned: Path | None = None,
    rerun: Rerun,
    table: Path | None = None,
) -> int:
    """Check the bundle ``path``, or each bundle in that folder, and write the findings into
    ``table``.

    Returns the exit code of :func:`checking.check` for a bundle. For a folder it is 0 if all is
    well, 3 if this machine could not check a bundle, else 1. Raises :class:`UsageError` for an
    assignment that makes no plan, a folder without bundles or a table that cannot be written, and
    the error of a single bundle's check.
    """
    if table and table.suffix not in ENDINGS:
        raise UsageError(f"--table: {table} must end in {' or '.join(ENDINGS)}")
    if assigned:
        assignment.plan(assignment.read(assigned))
    if path.is_dir():
        results = _check_folder(path, out, assigned, rerun)
        _write(table, results, _json([_row(result) for result in results]))
        codes = {result.code for result in results}
        machine = MachineError.exit_code
        return machine if machine in codes else FAULTS if any(codes) else 0
    checked = checking.check(path, out, assigned=assigned, rerun=rerun)
    is_gradescope = table is not None and table.name == GRADESCOPE
    _write(table, [checked], _json(_gradescope(checked) if is_gradescope else [_row(checked)]))
    if checked.error:
        raise checked.error
    return checked.code


def bundles(folder: Path) -> list[Path]:
    """Return the bundles in a folder, sorted by name; raise :class:`UsageError` if there is
    none."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ENDING)
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {reason_of(error)}") from None
    if not paths:
        raise UsageError(f"{folder} has no bundle: their names end in {ENDING}")
    return paths


def save(table: Path, content: bytes) -> None:
    """Write a table; raise :class:`UsageError` if it cannot be written."""
    try:
        write_atomically(table, content)
    except OSError as error:
        if is_full(error):
            raise
        raise UsageError(f"--table: {table} cannot be written: {reason_of(error)}") from None
    directory.hand_over(table)


def _check_folder(folder: Path, out: Console, assigned: Path | None, rerun: Rerun) -> list[Checked]:
    results, paths = [], bundles(folder)
    for number, path in enumerate(paths, 1):
        out.print(Text(plain(f"{number}/{len(paths)} {path.name}")))
        silent = Console(file=io.StringIO())
        results.append(checking.check(path, silent, assigned=assigned, rerun=rerun))
    results = _name_copies(results)
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for result in results:
        table.add_row(*(Text(plain(cell)) for cell in _cells(result)))
    table.width = unfolded_width(out, table)
    out.print(table)
    return results


def _name_copies(results: Sequence[Checked]) -> list[Checked]:
    """Add a problem to each bundle of a run that other bundles have, too, or of whose student there
    are others."""
    return [
        result._replace(
            parts=(*result.parts, Part("copy", "", problems)), code=max(result.code, FAULTS)
        )
        if (problems := tuple(_copies(result, results)))
        else result
        for result in results
    ]


def _copies(result: Checked, results: Sequence[Checked]) -> Iterator[str]:
    others = [other for other in results if other is not result]
    same = [other.path.name for other in others if result.times and other.times == result.times]
    if same:
        yield f"the same run as {', '.join(same)}"
    namesakes = [
        other.path.name
        for other in others
        if result.student
        and other.student
        and checks.student_seed(other.student) == checks.student_seed(result.student)
    ]
    if namesakes and not same:
        yield f"the same --student as {', '.join(namesakes)}"


def _cells(checked: Checked) -> tuple[str, str, str]:
    return checked.path.name, checked.verdict, checked.problem


def _row(checked: Checked) -> dict[str, Any]:
    row = dict(zip(("bundle", "check", "first_problem"), _cells(checked), strict=True))
    facts = {"exit_code": checked.code, "student": checked.student}
    return {**row, **facts, "parts": _tests(checked)}


def _tests(checked: Checked) -> list[dict[str, Any]]:
    """Return each part of the check as a test for Gradescope, with a point if it is well."""
    if checked.error:
        return [_test("bundle", checked.problem, is_well=False)]
    parts = (part for part in checked.parts if part.good or part.problems)
    return [
        _test(part.name, "\n".join(part.problems) or part.good, is_well=not part.problems)
        for part in parts
    ]


def _test(name: str, output: str, *, is_well: bool) -> dict[str, Any]:
    status = "passed" if is_well else "failed"
    return {
        "name": name,
        "status": status,
        "score": int(is_well),
        "max_score": 1,
        "output": plain(output),
    }


def _gradescope(checked: Checked) -> dict[str, Any]:
    """Return the results in Gradescope's format; the score is the number of passed tests."""
    tests = _tests(checked)
    output = f"{checked.verdict}: {checked.problem}" if checked.problem else checked.verdict
    return {"score": sum(test["score"] for test in tests), "output": plain(output), "tests": tests}


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _csv(results: Sequence[Checked]) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, "exit code", "student"])
    for result in results:
        rows.writerow([*map(_as_text, _cells(result)), result.code, _as_text(result.student)])
    return text.getvalue().encode()


def _as_text(cell: str) -> str:
    """Return a cell that spreadsheets do not take for a formula."""
    shown = plain(cell)
    return f"'{shown}" if shown[:1] in tuple("=+-@\t\r") else shown


def _write(table: Path | None, results: Sequence[Checked], as_json: bytes) -> None:
    if table:
        save(table, as_json if table.suffix == ".json" else _csv(results))
