"""Reference runs are renewed one after another, and one that is lost keeps none of the others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from qjump_mn import references
from qjump_mn.errors import LostError
from qjump_mn.results import reference

NEVER = """
[presets.10g.claims.never]
statement = "Nothing arrives"
source = "nobody"
predicate = "levels.urgent.max_ms < 0"
shows = "levels.urgent.max_ms"
gate = true
"""


@pytest.mark.slow
def test_the_others_are_renewed_when_one_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiments = tmp_path / "own/experiments"
    experiments.mkdir(parents=True)
    original = (references.ours().parent / "fig11.toml").read_text()
    (experiments / "astray.toml").write_text(original + NEVER)
    monkeypatch.setenv("QJUMP_MN_PATH", f"{tmp_path / 'own'}")
    folder = tmp_path / "reference"
    folder.mkdir()
    committed = (references.ours() / "fig11-10g.json").read_bytes()
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
    assert [line.partition(":")[0] for line in said if "-10g: " in line] == ["astray-10g", "fig11-10g"]
