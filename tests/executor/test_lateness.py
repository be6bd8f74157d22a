"""Measuring how late programs get the processor."""

from __future__ import annotations

import time

import pytest

from qjump_mn.executor.lateness import Lateness

EVERY_S = 0.023


def test_busy_processor_is_measured() -> None:
    with Lateness(EVERY_S) as taken:
        time.sleep(2 * EVERY_S)
        began = time.monotonic()
        while time.monotonic() - began < 5 * EVERY_S:
            # One call, which keeps the interpreter's lock as another process keeps a processor.
            sum(range(10**7))
    # There is no upper bound: whoever runs beside the tests may take the processor too.
    assert taken.quantiles_us()["max"] > 5000


def test_quantiles_are_relative_to_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lateness(EVERY_S) as lateness:
        pass
    monkeypatch.setattr(lateness, "_late_s", [(100 - rank) * 1e-6 + 50e-6 for rank in range(100)])
    assert lateness.quantiles_us() == {"p50": 49.0, "p99": 97.0, "max": 99.0}
    monkeypatch.setattr(lateness, "_late_s", [rank * 1e-6 for rank in range(1000)])
    assert lateness.quantiles_us() == {"p50": 499.0, "p99": 989.0, "max": 999.0}
    monkeypatch.setattr(lateness, "_late_s", [1e-6, 3e-6])
    assert lateness.quantiles_us() == {"p50": 0.0, "p99": 0.0, "max": 2.0}
    monkeypatch.setattr(lateness, "_late_s", [])
    assert lateness.quantiles_us() == {"p50": 0.0, "p99": 0.0, "max": 0.0}
