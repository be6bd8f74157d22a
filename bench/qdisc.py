"""Measure the instructions that each queueing discipline spends on a packet, on every kernel of the
tests, and what limits a level. Print Markdown tables.

    python bench/qdisc.py [--write]

`--write` replaces the tables in docs/qdisc-cost.md and docs/qdisc.md, and bench/qdisc.json, with
which tests/guest/test_qdisc_cost.py compares. The figures come from qdisc_cost.py,
qdisc_compare.py, qjump_slack.py, qjump_parents.py, edt_window.py and qjump_blast.py in
tests/guest/qdisc/checks. They are exact for an image, so one measurement suffices.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from qjump_mn.guest import prepare
from tests.guest.checks import COMPARED, COST, KERNELS, measured
from tests.guest.departures import measured as measured_in_guest

ROOT = Path(__file__).parent.parent
DOCUMENT, COMPARISON, FIGURES = (
    ROOT / "docs/qdisc-cost.md",
    ROOT / "docs/qdisc.md",
    ROOT / "bench/qdisc.json",
)
TITLES = {
    "qdiscs": "a packet that leaves at once",
    "paths": "a packet that does not leave",
}

Figures = dict[str, dict[str, Any]]


def main() -> None:
    """Measure, print and, if asked, write."""
    figures = {kernel: measure(kernel) for kernel in KERNELS}
    compared = comparison()
    slack, parents = slack_table(cases("qjump_slack")), parents_table(cases("qjump_parents"))
    edt, blast = edt_table(in_guest("edt_window")), blast_table(in_guest("qjump_blast"))
    text = "\n\n".join(
        [
            ", ".join(
                f"Linux {figures[k]['release']}: noqueue {figures[k]['noqueue']:.0f}"
                for k in figures
            ),
            *tables(figures),
        ]
    )
    print(text, compared, slack, parents, edt, blast, sep="\n\n")
    if sys.argv[1:] == ["--write"]:
        for path, name, table in (
            (DOCUMENT, "qdisc", text),
            (COMPARISON, "qdisc", compared),
            (COMPARISON, "slack", slack),
            (COMPARISON, "parents", parents),
            (COMPARISON, "edt", edt),
            (COMPARISON, "blast", blast),
        ):
            marks.write(path, name, table)
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


def measure(kernel: str) -> dict[str, Any]:
    """Return a kernel's figures, with its release."""
    with tempfile.TemporaryDirectory() as scratch:
        guest = measured(kernel, [COST], Path(scratch))
        return {"release": guest.results["release"], **guest.values(*COST)}


def cases(check: str) -> Any:
    """Return a check's cases on the guest's own kernel, in a boot of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        return measured("6.12", [[check]], Path(scratch)).values(check)["cases"]


def in_guest(check: str) -> dict[str, Any]:
    """Return what a check reports in the guest, where code takes no time."""
    with tempfile.TemporaryDirectory() as scratch:
        return measured_in_guest(prepare(print), Path(scratch), check)


def comparison() -> str:
    """Return the table of what limits a level, on the guest's own kernel, or on the newest if that
    lacks it."""
    rows = [
        "| what limits level 4 | most in any T: as root | below a busy HTB | lost | "
        "a budget of one frame, in quarters | a message of a budget takes | "
        "TCP's share, 4 frames | 16 frames | an urgent frame waits |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kernel, check in COMPARED.items():
        with tempfile.TemporaryDirectory() as scratch:
            values = measured(kernel, [check], Path(scratch)).values("qdisc_compare")
        for name, case in values["cases"].items():
            own = ", own rate" if "refused" in case else ""
            below = (
                "all lost"
                if case["lost_below"] == case["sent"]
                else f"{case['below_htb']:g} B{own}"
            )
            message = (
                f"{case['message_ns'] / 1e6:.3g} ms" if case["message_ns"] > 0 else "not all arrive"
            )
            shares = " | ".join(share_of(case, frames) for frames in ("4", "16"))
            wait = f"{case['wait_ns'] / values['bulk_ns']:.2f} frames{own}"
            rows.append(
                f"| {name} | {case['most']:g} B | {below} | {case['lost'] / case['sent']:.0%} | "
                f"{case['quarters']:.3g} B | {message} | {shares} | {wait} |"
            )
    return "\n".join(rows)


def share_of(case: dict[str, Any], frames: str) -> str:
    """Format what TCP gets of a budget of so many frames: alone, with packets of one frame, and by
    two flows."""
    if frames not in case["tcp"]:
        return "–"
    notes = [
        f"{case[key][frames]:.1%}{said}"
        for key, said in (("tcp_single", ""), ("tcp_two", " by two flows"))
        if frames in case.get(key, {})
    ]
    return f"{case['tcp'][frames]:.1%}" + (f" ({', '.join(notes)})" if notes else "")


def slack_table(cases: list[dict[str, Any]]) -> str:
    """Return the table with a row for each epoch: without a slack, and with one of 25 us."""
    rows = [
        "| T | slack | most in an exact T | behind a burst of another level | that is too much by "
        "| share |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        epoch, slack = (case[key] / 1000 for key in ("epoch_ns", "slack_ns"))
        given = f"{slack:g} us" if slack else "none"
        rows.append(
            f"| {epoch:g} us | {given} | {case['most']:g} B | {case['behind']['most']:g} B | "
            f"{case['excess']} bytes | {case['share']:.1%} |"
        )
    return "\n".join(rows)


def parents_table(cases: dict[str, dict[str, Any]]) -> str:
    """Return the table with a row for each parent of a qjump."""
    rows = [
        "| parent | most in any T above a busy wire | go before an urgent frame | "
        "the same beside a busy class | another class waits |",
        "|---|---|---|---|---|",
    ]
    for name, case in cases.items():
        beside = (
            f"{case['beside']['passed']} | {case['blocked']:.1f} T" if "beside" in case else "– | –"
        )
        rows.append(
            f"| {name} | {case['late']['most']:g} B | {case['alone']['passed']} | {beside} |"
        )
    return "\n".join(rows)


EDT = {
    "qjump root": ("qjump", "as root"),
    "qjump wire": ("qjump", "below a busy link"),
    "qjump-edt root": ("departure times", "as root"),
    "qjump-edt wire": ("departure times", "below a busy link"),
    "slack": ("departure times, slack of level 7's W", "below a busy link"),
}


def edt_table(values: dict[str, Any]) -> str:
    """Return the table with a row for each limiter and place."""
    rows = [
        "| what limits levels 7 and 4 | position | most in any T: level 7 | level 4 | "
        "in any T - W: level 7 | level 4 | an urgent frame waits |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (limiter, place) in EDT.items():
        case = values["cases"][name]
        most = [
            f"{case[level][window]:.3g} B" for window in ("exact", "less") for level in ("7", "4")
        ]
        wait = f"{case['wait_ns'] / values['frame_ns']:.2f} frames" if "wait_ns" in case else "–"
        rows.append(f"| {limiter} | {place} | {' | '.join(most)} | {wait} |")
    return "\n".join(rows)


def blast_table(values: dict[str, Any]) -> str:
    """A row for each case: how many levels exceed their budgets, and by how much, with and without
    a slack."""
    cases = values["cases"]
    rows = [
        f"| eight limited levels | {' | '.join(slack_heads(cases))} |",
        f"|---|{'---|' * 2 * len(cases)}",
    ]
    for name in next(iter(cases.values())):
        cells = []
        for by_name in cases.values():
            most = by_name[name]["most"]
            cells += [f"{sum(one > 1 for one in most)} of {len(most)}", f"{max(most):.3g} B"]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def slack_heads(slacks: Iterable[str]) -> list[str]:
    """Two column headings for each slack in ns."""
    return [
        head
        for slack in slacks
        for head in (
            f"{f'slack {int(slack) / 1000:g} us' if int(slack) else 'no slack'}: above a budget",
            "most",
        )
    ]


def tables(figures: Figures) -> list[str]:
    """Return a table for each group: instructions above noqueue on each kernel."""
    blocks = []
    for group, title in TITLES.items():
        names = list(dict.fromkeys(name for kernel in figures for name in figures[kernel][group]))
        rows = [f"| {title} | {' | '.join(figures)} |", f"|---|{'---|' * len(figures)}"]
        for name in names:
            found = [figures[kernel][group].get(name) for kernel in figures]
            cells = ["–" if value is None else f"{value:.0f}" for value in found]
            rows.append(f"| `{name}` | {' | '.join(cells)} |")
        blocks.append("\n".join(rows))
    return blocks


if __name__ == "__main__":
    main()
