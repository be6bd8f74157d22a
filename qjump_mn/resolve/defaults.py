"""Fill in what an experiment's file may leave out: workloads and arms are enough."""

from __future__ import annotations

from typing import Any

PRESET = "course"
TOPOLOGY = "paper12"
TIMES = {"warmup": "2s", "duration": "10s"}
"""Default times of emulated experiments. The simulator needs none: its flows end by themselves."""

AS_WRITTEN = {PRESET: {"about": "as the file has it"}}
"""The presets of a file that defines none."""


def complete(raw: dict[str, Any], name: str) -> None:
    """Add the missing defaults to ``raw``, the content of the file of the experiment called
    ``name``, which is not validated yet.
    """
    raw.setdefault("title", name)
    raw.setdefault("topology", TOPOLOGY)
    if not raw.get("presets"):
        raw["presets"] = AS_WRITTEN
    backends = raw.get("backends")
    if not (isinstance(backends, list) and backends[:1] == ["simulator"]) and "duration" not in raw:
        for key, value in TIMES.items():
            raw.setdefault(key, value)
    arms = _tables(raw.get("arms"))
    for key, table in (*_tables(raw.get("workloads")).items(), *arms.items()):
        table.setdefault("label", key)
    workloads = next(
        (arm["workloads"] for arm in arms.values() if isinstance(arm.get("workloads"), list)), None
    )
    default_figure = {
        "plot": "latency_cdf",
        "workload": workloads[0] if workloads else "",
        "arms": [key for key, arm in arms.items() if "sweep" not in arm],
    }
    figure = raw.get("figure", {})
    if isinstance(figure, dict):
        raw["figure"] = {**default_figure, **figure}


def _tables(value: Any) -> dict[str, dict[str, Any]]:
    """Return the entries of ``value`` that are tables. Validation reports the others later."""
    entries = value.items() if isinstance(value, dict) else ()
    return {key: entry for key, entry in entries if isinstance(entry, dict)}
