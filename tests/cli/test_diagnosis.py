"""``doctor``: told as it is found, or as JSON; which backend, and why. No guest runs here
(tests/guest/test_doctor.py has the real command)."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import msgspec
import pytest

from qjump_mn import guest
from qjump_mn.cli import doctor
from qjump_mn.cli.doctor import Finding, State
from qjump_mn.errors import LostError, MachineError
from qjump_mn.guest import outer
from qjump_mn.process import die_with_parent
from qjump_mn.toolbox import machines, processors
from tests.support.screen import Screen

_boot = doctor._boot


def said(*, as_json: bool = False) -> tuple[int, str]:
    out = Screen(300)
    return doctor.report(out, as_json=as_json), out.text


@pytest.fixture(autouse=True)
def guest_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_boot", lambda progress, deadline: (State.OK, "runs a job"))


def test_what_is_well_is_told_with_the_backend() -> None:
    code, text = said()
    assert code == 0
    assert "\nok       guest: runs a job\n" in text
    assert text.endswith("whatever else this machine does\nexperiments run here\n")
    assert "\nbackend guest: the usual one: " in text


def test_findings_are_told_as_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest may take a quarter of a minute: what was found before is there by then."""
    out = Screen(300)
    before: list[str] = []

    def boot(progress: object, deadline: object) -> tuple[State, str]:
        before.append(out.text)
        return State.OK, ""

    monkeypatch.setattr(doctor, "_boot", boot)
    doctor.report(out)
    assert "ok       processors: " in before[0] and before[0].endswith(
        "         starting a guest, which takes 15 s at most\n"
    )


def test_missing_programs_of_util_linux_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "util-linux" not in said()[1]
    monkeypatch.setattr(die_with_parent, "missing", lambda: ["setpriv", "chrt"])
    code, text = said()
    assert code == 3
    assert "\nmissing  util-linux: no setpriv, no chrt\n         install util-linux\n" in text


@pytest.mark.parametrize(
    ("memory_mib", "code", "last"),
    [
        (10**6, 0, "nothing is missing, but this machine is too busy to try an experiment"),
        (0, MachineError.exit_code, "experiments do not run here yet: see above"),
    ],
)
def test_a_busy_machine_lacks_nothing(
    memory_mib: int, code: int, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_boot", lambda *_: (State.UNKNOWN, "not tried"))
    monkeypatch.setattr(doctor, "_memory_mib", lambda: memory_mib)
    ended, text = said()
    assert re.search(r"^unknown  guest: not tried\nno +host backend", text, re.M), (
        "without a remedy"
    )
    assert "\nbackend guest: the usual one" in text
    assert (ended, text.splitlines()[-1]) == (code, last)
    told = msgspec.json.decode(said(as_json=True)[1])
    assert told["state"] == ("missing" if code else "unknown")


def test_a_guest_that_dies_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(*_: object, **__: object) -> None:
        raise LostError("the guest's kernel panicked")

    monkeypatch.setattr(doctor, "_boot", _boot)
    monkeypatch.setattr(machines, "is_at_hand", lambda: True)
    monkeypatch.setattr(guest, "prepare", lambda progress: None)
    monkeypatch.setattr(guest, "run", runs)
    monkeypatch.setattr(doctor, "core", lambda patience_s: contextlib.nullcontext())  # never busy
    code, text = said()
    assert code == MachineError.exit_code
    assert "\nmissing  guest: the guest's kernel panicked\n" in text


@pytest.mark.parametrize("is_installed", [False, True])
def test_a_machine_around_the_guest_is_told_and_not_tried(
    is_installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_installed:
        (tmp_path / outer.QEMU).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(processors, "here", lambda: "aarch64")
    monkeypatch.setattr(doctor, "_boot", _boot)
    monkeypatch.setattr(machines, "is_at_hand", lambda: True)
    monkeypatch.setattr(guest, "prepare", lambda progress: None)
    code, text = said()
    assert code == (0 if is_installed else MachineError.exit_code)
    assert "starting a guest" not in text
    if is_installed:
        assert (
            f"\nok       guest: is here, and runs in {tmp_path}/{outer.QEMU}, which takes about"
            in text
        )
    else:
        assert re.search(
            r"\nmissing  guest: on aarch64 .* not installed: run `apt-get install .*\nno", text
        )


def test_without_a_guest_another_backend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    says = "the guest is not built yet"
    monkeypatch.setattr(doctor, "_boot", lambda *_: (State.MISSING, says))
    host = Finding("host backend", State.MISSING, "", required=False)
    monkeypatch.setattr(doctor, "_host", lambda: iter([host]))
    code, text = said()
    assert code == MachineError.exit_code
    assert "\nmissing  guest: the guest is not built yet\n" in text
    assert "\nbackend simulator: neither the guest nor the host backend runs here; " in text
    monkeypatch.setattr(doctor, "_host", lambda: iter([host._replace(state=State.OK)]))
    assert "\nbackend host: the guest does not run here; " in said()[1]


def test_a_program_can_read_it() -> None:
    code, text = said(as_json=True)
    told = msgspec.json.decode(text)
    assert (code, told["state"], told["backend"]) == (0, "ok", "guest")
    guest = next(one for one in told["findings"] if one["what"] == "guest")
    assert guest == {
        "what": "guest",
        "state": "ok",
        "says": "runs a job",
        "remedy": "",
        "required": True,
    }
