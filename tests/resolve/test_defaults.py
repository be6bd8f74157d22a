"""What an experiment's file may leave out, and what is filled in."""

from __future__ import annotations

from typing import Any

import pytest

from qjump_mn.resolve import defaults

TIMES = {"warmup": "2s", "duration": "10s"}


def completed(**raw: Any) -> dict[str, Any]:
    defaults.complete(raw, "mine")
    return raw


def test_complete_needs_workloads_and_arms_only() -> None:
    swept = {"label": "Swept", "sweep": {}, "workloads": ["bulk"]}
    found = completed(
        workloads={"ping": {}, "bulk": {"label": "Bulk"}},
        arms={"first": {"workloads": ["ping", "bulk"]}, "swept": dict(swept)},
    )
    assert found == {
        "title": "mine",
        "topology": "paper12",
        "presets": {"course": {"about": "as the file has it"}},
        **TIMES,
        "workloads": {"ping": {"label": "ping"}, "bulk": {"label": "Bulk"}},
        "arms": {"first": {"label": "first", "workloads": ["ping", "bulk"]}, "swept": swept},
        "figure": {"plot": "latency_cdf", "workload": "ping", "arms": ["first"]},
    }


def test_complete_keeps_what_is_written() -> None:
    raw = {
        "title": "T",
        "topology": "t",
        "presets": {"mine": {}},
        "warmup": "1s",
        "duration": "3s",
        "figure": {"plot": "cdf", "workload": "w", "arms": []},
    }
    assert completed(**raw) == raw


@pytest.mark.parametrize(
    ("raw", "times"),
    [
        ({"backends": ["simulator", "guest"]}, {}),
        ({"backends": ["guest", "simulator"]}, TIMES),
        ({"backends": "simulator"}, TIMES),
        ({"duration": "3s"}, {"duration": "3s"}),
        ({"warmup": "1s"}, {**TIMES, "warmup": "1s"}),
    ],
)
def test_complete_adds_times_unless_the_simulator_or_the_file_decides(
    raw: dict[str, Any], times: dict[str, str]
) -> None:
    found = completed(**raw)
    assert {name: found[name] for name in ("warmup", "duration") if name in found} == times


@pytest.mark.parametrize("part", ["workloads", "arms", "figure"])
def test_complete_leaves_parts_of_a_wrong_type_to_validation(part: str) -> None:
    assert completed(**{part: 7})[part] == 7
