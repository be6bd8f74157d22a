"""Who enters which level of qjump: what docs/qdisc.md, kmod-patches/README.md and tc-qjump(8) say
of it, as tests/guest/qdisc/checks/qjump_who.py measured. A boot of its own, of 40 s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.guest.checks import KERNELS, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
DEFAULT = "0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0"
SHIPPED = "0 1 2 3 4 5 5 5 0 0 0 0 0 0 6 7"
FOR_QJAU = "0 1 2 3 4 7 0 0 0 0 0 0 0 0 0 0"
PRIORITIES = {"igmp": 7, "mld": 7, "lowdelay": 6, "both": 4, "ef": 4, "throughput": 2, "af21": 2}
PRIORITIES |= dict.fromkeys(("arp", "ping", "none", "cs6", "cs7"), 0)


@pytest.fixture(scope="module", params=KERNELS)
def values(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    maps = [priomap.replace(" ", ",") for priomap in (DEFAULT, SHIPPED, FOR_QJAU)]
    guest = measured(request.param, [["qjump_who", *maps]], tmp_path_factory.mktemp("who"))
    return guest.values("qjump_who")


def test_a_packet_is_at_the_level_that_the_map_has_for_its_priority(values: dict[str, Any]) -> None:
    priorities = PRIORITIES | {str(p): p for p in range(17)}
    for priomap, found in zip((DEFAULT, SHIPPED, FOR_QJAU), values["found"], strict=True):
        levels = [*map(int, priomap.split()), 0]
        assert found == {name: [levels[priority]] for name, priority in priorities.items()}, priomap


def test_the_maps_that_are_shipped_keep_level_7_to_one_priority(values: dict[str, Any]) -> None:
    default, shipped, for_qjau = (
        {name for name, levels in found.items() if levels == [7]} for found in values["found"]
    )
    assert (default, shipped, for_qjau) == ({"igmp", "mld", "7"}, {"15"}, {"5"})
    assert values["forbidden"] == list(range(7, 17)), "of a user without capabilities"


def test_the_pages_have_the_maps() -> None:
    for name in ("docs/qdisc.md", "kmod-patches/README.md", "kmod-patches/tc/tc-qjump.8"):
        assert f"priomap {SHIPPED}" in (ROOT / name).read_text(), name
    assert f"priomap {FOR_QJAU}" in (ROOT / "docs/qdisc.md").read_text()
