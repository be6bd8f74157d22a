"""List what went wrong or took long in a run, from its log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome

MOST_TOLD = 8
"""So many trials that failed are told one by one."""


def told(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> list[str]:
    """Return sentences about lost and interrupted trials, waits for a processor, and failed
    checks."""
    events = list(_events(run))
    ended = [event for event in events if event["event"] == "trial"]
    return [*_times(manifest, ended), *_failures(events, ended), *_waits(ended), *_checks(outcome)]


def _events(run: RunDirectory) -> Iterator[dict[str, Any]]:
    """Yield the readable lines of the log; a power failure may leave half a line."""
    try:
        lines = (run.path / "log.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"utc", "event", "name"} <= event.keys():
            yield event


def _times(manifest: Manifest, ended: list[dict[str, Any]]) -> list[str]:
    until = f" to {manifest.ended_utc}" if manifest.ended_utc else ", and it has not ended"
    told = f"Run from {manifest.started_utc}{until}"
    took = {event["name"]: float(event.get("wall_s") or 0) for event in ended}
    if not took:
        return [f"{told}; the log has no trial."]
    longest = max(took, key=lambda name: took[name])
    return [
        f"{told}. Its {len(took)} trial{'' if len(took) == 1 else 's'} took "
        f"{_duration(sum(took.values()))} in all, the longest of them, {longest}, "
        f"{_duration(took[longest])}."
    ]


def _failures(events: list[dict[str, Any]], ended: list[dict[str, Any]]) -> list[str]:
    last = {event["name"]: event for event in ended}
    failed = [event for event in ended if event.get("exit_code")]
    sentences = []
    for event in failed[:MOST_TOLD]:
        again = not last[event["name"]].get("exit_code")
        what = str(event.get("message") or f"exit code {event['exit_code']}").rstrip(".")
        became = "It was run again, and is done." if again else "It was not done later."
        sentences.append(f"{event['name']} failed at {event['utc']}: {what}. {became}")
    if len(failed) > MOST_TOLD:
        sentences.append(f"{len(failed) - MOST_TOLD} more trials failed: see log.jsonl.")
    starts = Counter(event["name"] for event in events if event.get("line") == "starts")
    ends = Counter(event["name"] for event in ended)
    broken = [name for name, count in starts.items() if count > ends[name]]
    if broken:
        which = ", ".join(broken[:MOST_TOLD]) + (" and others" if len(broken) > MOST_TOLD else "")
        sentences.append(f"Broken off before the end, once or more: {which}.")
    if ended and not failed and not broken:
        sentences.append("No trial failed, and none had to be run again.")
    return sentences


def _waits(ended: list[dict[str, Any]]) -> list[str]:
    waited = sum(float(event.get("waited_s") or 0) for event in ended)
    return (
        [f"Trials waited {_duration(waited)} for a processor that others used."]
        if waited >= 1
        else []
    )


def _checks(outcome: Outcome) -> list[str]:
    words = {"fail": "failed", "unknown": "could not be made"}
    return [
        f"The check '{check.name}' {words[check.status]}: {check.text}."
        for check in outcome.checks
        if check.status in words
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
