"""KCSAN's reports in a kernel's log: which are of our modules."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

OURS = frozenset(("sch_qjump", "sch_qjump2015", "sch_wire"))
_TITLE = re.compile(r"BUG: KCSAN: (?:data-race|assert: race) in (.+?)(?: / (.+))?")
_EDGE = re.compile("=+")


@dataclass(frozen=True)
class Race:
    """One report: the functions whose accesses race, and its lines."""

    functions: tuple[str, ...]
    text: str

    def is_of(self, modules: Collection[str]) -> bool:
        """Whether one of the two accesses is in one of these modules."""
        return any(f"[{module}]" in function for function in self.functions for module in modules)


@dataclass(frozen=True)
class Races:
    """All of a log: races of `modules`, races of others, and the lines that are none of KCSAN's."""

    ours: list[Race]
    others: list[Race]
    rest: list[str]


def races(log: Sequence[str], modules: Collection[str] = OURS) -> Races:
    """Take a log apart. A report stands between two lines of =, and begins with its title."""
    ours: list[Race] = []
    others: list[Race] = []
    rest: list[str] = []
    report: list[str] | None = None
    for line in log:
        if report is not None:
            if not _EDGE.fullmatch(line):
                report.append(line)
                continue
            race = Race(_functions(report[0]), "\n".join(report))
            (ours if race.is_of(modules) else others).append(race)
            report = None
        elif _TITLE.match(line):
            report = [line]
        elif not _EDGE.fullmatch(line):
            rest.append(line)
    if report is not None:  # the log ends in it
        ours.append(Race(_functions(report[0]), "\n".join(report)))
    return Races(ours, others, rest)


def _functions(title: str) -> tuple[str, ...]:
    match = _TITLE.fullmatch(title)
    return tuple(name for name in match.groups() if name) if match else ()
