"""``doctor``: told as it is found, or as JSON; which backend, and why. The guest is not booted here
(tests/guest/test_damage.py does)."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from qjump_mn import diagnosis, guest
from qjump_mn.diagnosis import Finding
from qjump_mn.errors import LostError, MachineError
from qjump_mn.toolbox import machines

_boot = diagnosis._boot


def said(*, as_json: bool = False) -> tuple[int, str]:
    text = io.StringIO()
    out = Console(file=text, width=300, highlight=False, soft_wrap=True)
    return diagnosis.report(out, as_json=as_json), text.getvalue()


@pytest.fixture(autouse=True)
def guest_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_boot", lambda progress: "")


def test_what_is_well_is_told_with_the_backend() -> None:
    code, text = said()
    assert code == 0
    assert "\nok       guest: boots and runs a job\n" in text
    assert text.endswith("in them\nexperiments run here\n") and "\nbackend guest: the usual one: " in text


def test_findings_are_told_as_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest takes a quarter of a minute: what was found before is there by then."""
    text = io.StringIO()
    before: list[str] = []

    def boot(progress: object) -> str:
        before.append(text.getvalue())
        return ""

    monkeypatch.setattr(diagnosis, "_boot", boot)
    diagnosis.report(Console(file=text, width=300, highlight=False, soft_wrap=True))
    assert "ok       processors: " in before[0] and before[0].endswith("         boots a guest, 15 s\n")


def test_who_has_the_cores_is_told_while_the_guest_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(image: object, job: object, out: Path, *, progress: Callable[[str], None]) -> None:
        progress("hello")
        progress("waits for a core: pid 12 has it")
        raise LostError("it was ended")

    monkeypatch.setattr(diagnosis, "_boot", _boot)
    monkeypatch.setattr(machines, "is_at_hand", lambda: True)
    monkeypatch.setattr(guest, "prepare", lambda progress: None)
    monkeypatch.setattr(guest, "run", runs)
    _, text = said()
    assert "boots a guest, 15 s\n         waits for a core: pid 12 has it\nmissing  guest: it was" in text


def test_without_a_guest_another_backend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_boot", lambda progress: "the guest is not built yet")
    monkeypatch.setattr(
        diagnosis, "_host", lambda: iter([Finding("host backend", False, "", required=False)])
    )
    code, text = said()
    assert code == MachineError.exit_code
    assert "\nmissing  guest: the guest is not built yet\n" in text
    assert "\nbackend simulator: neither the guest nor the host backend runs here; " in text
    monkeypatch.setattr(diagnosis, "_host", lambda: iter([Finding("host backend", True, "", required=False)]))
    assert "\nbackend host: the guest does not run here; " in said()[1]


def test_a_program_can_read_it() -> None:
    code, text = said(as_json=True)
    told = msgspec.json.decode(text)
    assert (code, told["runs"], told["backend"]) == (0, True, "guest")
    guest = next(one for one in told["findings"] if one["what"] == "guest")
    assert guest == {
        "what": "guest",
        "well": True,
        "says": "boots and runs a job",
        "remedy": "",
        "required": True,
    }
