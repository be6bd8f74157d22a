"""The reference runs that are committed: each is of its experiment and preset as they are now. They
are renewed one after another, and one that is lost keeps none of the others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.cli import references
from qjump_mn.errors import LostError
from qjump_mn.resolve import loading
from qjump_mn.results import reference

FOLDER = references.ours()
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
NEVER = """
[presets.10g.claims.never]
statement = "Nothing arrives"
source = "nobody"
predicate = "levels.urgent.max_ms < 0"
shows = "levels.urgent.max_ms"
gate = true
"""


def test_there_are_reference_runs() -> None:
    assert "fig3a-smoke" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_run_is_of_the_plan_as_it_is(name: str) -> None:
    experiment, _, preset = name.rpartition("-")
    assert preset in loading.presets(experiment)
    plan, kept = resolve.plan(experiment, preset, []), reference.read(FOLDER / f"{name}.json")
    assert kept.plan_sha256 == plan.hash
    assert {trial: entry.run_sha256 for trial, entry in kept.trials.items()} == {
        trial.name: trial.hash for trial in plan.trials()
    }


@pytest.mark.nightly
def test_the_others_are_renewed_when_one_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiments = tmp_path / "own/experiments"
    experiments.mkdir(parents=True)
    original = (FOLDER.parent / "fig11.toml").read_text()
    (experiments / "astray.toml").write_text(original + NEVER)
    monkeypatch.setenv("QJUMP_MN_PATH", f"{tmp_path / 'own'}")
    folder = tmp_path / "reference"
    folder.mkdir()
    committed = (FOLDER / "fig11-10g.json").read_bytes()
    stale = msgspec.structs.replace(
        msgspec.json.decode(committed, type=reference.Reference), plan_sha256="0" * 64
    )
    for name in ("astray-10g.json", "fig11-10g.json"):
        (folder / name).write_bytes(msgspec.json.encode(stale))
    said: list[str] = []
    with pytest.raises(LostError, match=r"run astray --preset 10g .*ended with exit code 4"):
        references.renew(folder, said.append)
    assert (folder / "fig11-10g.json").read_bytes() == committed
    assert reference.read(folder / "astray-10g.json") == stale
    assert [line.partition(":")[0] for line in said if "-10g: " in line] == [
        "astray-10g",
        "fig11-10g",
    ]
