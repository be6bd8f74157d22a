"""The numbers that claims use by name, counted by hand for links of 10 Mb/s and buffers of 152200
B."""

from __future__ import annotations

import pytest

from qjump_mn.resolve import plan

AT_10_MBPS = {
    "hosts": 12,
    "rate_mbps": 10,
    "frame_ms": 1542 * 8 / 10**4,
    "buffer_ms": 152_200 * 8 / 10**4,
    "link_goodput_mbps": 10 * 1448 / 1542,
}


@pytest.mark.parametrize(
    ("backend", "processor_ms"), [("guest", 0), ("simulator", 0), ("host", 0.12)]
)
def test_constants_describe_network_and_processor(backend: str, processor_ms: float) -> None:
    constants = plan("fig3a", "smoke", [], backend=backend).judged.constants
    expected = {**AT_10_MBPS, "processor_ms": processor_ms}
    assert {name: constants[name] for name in expected} == pytest.approx(expected)
