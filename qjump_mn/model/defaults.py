"""What an experiment's file may leave out: an experiment of one's own is a network, workloads and arms."""

from __future__ import annotations

from typing import Any

PRESET = "course"
TOPOLOGY = "paper12"
TIMES = {"warmup": "2s", "duration": "10s"}
"""Of what is emulated; the simulator's flows end by themselves."""

AS_WRITTEN = {PRESET: {"about": "as the file has it"}}
"""The presets of a file that has none."""


def complete(raw: dict[str, Any], name: str) -> None:
    """Put into the content of the file of the experiment called ``name``, not yet checked, what it leaves
    out and what has an obvious value."""
    raw.setdefault("title", name)
    raw.setdefault("topology", TOPOLOGY)
    if not raw.get("presets"):
        raw["presets"] = AS_WRITTEN
    backends = raw.get("backends")
    if not (isinstance(backends, list) and backends[:1] == ["simulator"]) and "duration" not in raw:
        for key, value in TIMES.items():
            raw.setdefault(key, value)
    arms = _tables(raw.get("arms"))
    for key, one in (*_tables(raw.get("workloads")).items(), *arms.items()):
        one.setdefault("label", key)
    workloads = next(
        (arm["workloads"] for arm in arms.values() if isinstance(arm.get("workloads"), list)), None
    )
    usual = {
        "plot": "latency_cdf",
        "workload": workloads[0] if workloads else "",
        "arms": [key for key, arm in arms.items() if "sweep" not in arm],
    }
    figure = raw.get("figure", {})
    if isinstance(figure, dict):
        raw["figure"] = {**usual, **figure}


def _tables(value: Any) -> dict[str, dict[str, Any]]:
    """The tables of a table; what is none is told when the file is checked."""
    return (
        {key: one for key, one in value.items() if isinstance(one, dict)} if isinstance(value, dict) else {}
    )
