"""Reference runs are run again: what is the same stays as it is, what differs is rewritten and
said."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from qjump_mn.cli import references
from qjump_mn.guest import Image
from qjump_mn.results import reference

pytestmark = [pytest.mark.guest, pytest.mark.nightly]


def test_renew_rewrites_what_differs_and_says_what(image: Image, tmp_path: Path) -> None:
    if image.differences:
        pytest.skip(
            f"this machine is not that of the reference runs: {', '.join(image.differences)}"
        )
    committed = (references.ours() / "orphan-smoke.json").read_bytes()
    before = msgspec.json.decode(committed, type=reference.Reference)
    name, trial = next(iter(before.trials.items()))
    other = msgspec.structs.replace(trial, results_sha256="other")
    path = tmp_path / "orphan-smoke.json"
    path.write_bytes(
        msgspec.json.encode(msgspec.structs.replace(before, trials=before.trials | {name: other}))
    )
    said: list[str] = []
    for _ in range(2):
        references.renew(tmp_path, said.append)
        assert path.read_bytes() == committed
    assert [line for line in said if line.startswith("orphan")] == [
        f"orphan-smoke: results changed in {name}: rewritten",
        "orphan-smoke: unchanged",
    ]
