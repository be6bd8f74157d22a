"""A reference run of another machine is made anew; one of this machine stays."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from qjump_mn import references
from qjump_mn.guest import Image
from qjump_mn.results import reference

pytestmark = [pytest.mark.guest, pytest.mark.nightly]


def test_the_reference_run_of_another_machine_is_renewed(image: Image, tmp_path: Path) -> None:
    if image.differences:
        pytest.skip(f"this machine is not that of the reference runs: {', '.join(image.differences)}")
    committed = (references.ours() / "orphan-smoke.json").read_bytes()
    other = msgspec.structs.replace(msgspec.json.decode(committed, type=reference.Reference), image="other")
    path = tmp_path / "orphan-smoke.json"
    path.write_bytes(msgspec.json.encode(other))
    said: list[str] = []
    for _ in range(2):
        references.renew(tmp_path, said.append)
        assert path.read_bytes() == committed
    sha256 = reference.read(path).results_sha256
    assert [line for line in said if line.startswith("orphan")] == [
        f"orphan-smoke: sha256 {sha256}",
        "orphan-smoke: is of this machine",
    ]
