"""The line of a key or table in a file, as the file may write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn.resolve import toml_locations
from qjump_mn.resolve.toml_locations import Laid

TEXT = """title = "T"
link.rate = "10Mbit"
"spaced" . key = 1

[workloads.ping]
program = "ping"
interval = "1ms"
[ workloads."bulk" ]
 program = 'iperf'

[[points]]
x = 1
[presets.course.workloads]
ping.interval = "2ms"
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("title", 1),
        ("link.rate", 2),
        ("link", 2),
        ("link.rate.more", 2),
        ("spaced.key", 3),
        ("workloads.ping", 5),
        ("workloads.ping.interval", 7),
        ("workloads.ping.nosuch", 5),
        ("workloads.bulk.program", 9),
        ("points[0]", 11),
        ("points", 11),
        ("points[0].x", 11),
        ("presets.course.workloads.ping.interval", 14),
        ("presets.course.workloads.bulk", 13),
        ("program", None),
        ("nosuch", None),
        ("", None),
    ],
)
def test_line_is_of_the_key_or_the_table_that_would_have_it(place: str, line: int | None) -> None:
    assert toml_locations.line(TEXT, place) == line


def test_line_in_a_file_without_tables() -> None:
    assert toml_locations.line("a = 1\nb = 2", "b") == 2


@pytest.mark.parametrize(
    ("message", "place", "laid", "line"),
    [
        ("", "title", {}, 1),
        ("Object contains unknown field `interval`", "workloads.ping", {}, 7),
        ("Object contains unknown field `title`", "", {}, 1),
        ("", "nosuch", {}, None),
        ("", "workloads.ping.interval", {"workloads": {"ping": {"interval": "2ms"}}}, 14),
        ("", "workloads.ping.program", {"workloads": {"ping": {"interval": "2ms"}}}, 6),
        ("", "workloads.ping.interval", {"workloads": "text"}, 7),
        ("", "workloads[3].ping", {"workloads": [1]}, 13),
        ("", "", {"workloads": {}}, None),
    ],
)
def test_suffix_names_file_and_line(
    message: str, place: str, laid: dict[str, object], line: int | None, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    end = f", line {line})" if line else ")"
    found = toml_locations.suffix(message, place, file, [Laid("presets.course", laid)])
    assert found == f" ({file}{end}"
    assert toml_locations.suffix(message, place, None) == ""
