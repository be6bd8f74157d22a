"""Run an instance in the outer machine (guest/outer.py), with a program in the place of QEMU.

Its input, its output, and the meaning of its end; tests/guest/test_outer_machine.py has the real
one.
"""

from __future__ import annotations

import itertools
import re
import stat
import threading
import time
from pathlib import Path

import pytest

from qjump_mn import guest
from qjump_mn.errors import LostError, MachineError
from qjump_mn.guest import images, instance, outer
from qjump_mn.toolbox import machine_file, processors
from qjump_mn.toolbox import outer_machine as around

# Writes its arguments, the output, a line of the console and how the instance ended, then does what
# a test wants.
_FAKE = """#!/bin/sh
printf '%s\\n' "$@" >{folder}/argv
path() {{ word=${{1#*path=}}; echo "${{word%%,*}}"; }}
for word; do
    case $word in
        file,id=out,*) printf output >>"$(path "$word")" ;;
        file,id=log,*) echo hello >>"$(path "$word")" ;;
        file,id=status,*) printf '{status}' >>"$(path "$word")" ;;
        file:*) echo 'Kernel panic' >"${{word#file:}}" ;;
    esac
done
{then}
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine's folder, a kernel and an initramfs."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in (machine_file.KERNEL, machine_file.INITRD, "linux", "cpio"):
        (folder / name).write_bytes(f"<{name}>".encode().ljust(8))
    (tmp_path / "run").mkdir()
    return folder


def play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str = "0\\n", then: str = ""
) -> None:
    """Put the program in QEMU's place."""
    path = tmp_path / "bin" / outer.QEMU
    path.parent.mkdir()
    path.write_text(_FAKE.format(folder=tmp_path, status=status, then=then))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")


def ran(machine: Path, **options: object) -> instance.Outcome:
    folder = machine.parent / "run"
    return outer.run(machine, machine / "linux", machine / "cpio", b"input", folder, **options)  # type: ignore[arg-type]


def test_outer_machine_is_for_other_processors_or_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(outer.VARIABLE, raising=False)
    monkeypatch.setattr(processors, "here", lambda: "x86_64")
    assert not outer.is_wanted()
    monkeypatch.setenv(outer.VARIABLE, "1")
    assert outer.is_wanted()
    monkeypatch.delenv(outer.VARIABLE)
    monkeypatch.setattr(processors, "here", lambda: "aarch64")
    assert outer.is_wanted()


def test_missing_qemu_names_packages_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "here", lambda: "aarch64")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "on aarch64 the guest needs .*not installed: run `apt-get install qemu-sys"
    with pytest.raises(MachineError, match=missing):
        guest.check_processor()


def test_machine_file_provides_its_outer_machine(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(around, "machine", lambda progress: tmp_path / "made")
    monkeypatch.setattr(outer, "is_wanted", lambda: False)
    assert images._outer_machine(machine, said.append) is None and not said
    monkeypatch.setattr(outer, "is_wanted", lambda: True)
    assert images._outer_machine(machine, said.append) == machine and outer.QEMU in said[0]
    assert images._outer_machine(tmp_path / "none", said.append) == tmp_path / "made"
    assert images._outer_machine(None, said.append) == tmp_path / "made"


def test_instance_gets_the_same_input_as_without_qemu(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, monkeypatch)
    lines: list[str] = []
    left = ran(machine, memory_mb=512, words=["one=1"], line=lines.append)
    assert (left.out.read_bytes(), left.log.read_text(), lines) == (b"output", "hello\n", ["hello"])
    argv = (tmp_path / "argv").read_text().splitlines()
    told = dict(itertools.pairwise(argv))
    assert told["-accel"].startswith("tcg") and "-icount" not in argv and told["-cpu"] == "max"
    assert told["-m"] == f"{512 + outer.MORE_MB}M"
    assert told["-kernel"] == str(machine / machine_file.KERNEL)
    assert "-nodefaults" in argv and not {"-nic", "-netdev", "-drive"} & set(argv)
    archive = Path(told["-initrd"]).read_bytes()
    assert archive.startswith(b"<initrd>")
    words = "\n".join(instance.command_line(512, ["one=1"])).encode()
    for name, content in (
        (around.PROGRAM, b"<linux>"), (around.IMAGE, b"<cpio>"), (around.INPUT, b"input"), (around.WORDS, words),
    ):  # fmt: skip
        assert re.search(re.escape(name.encode()) + rb"\0+" + re.escape(content), archive), name


@pytest.mark.parametrize(
    ("status", "then", "why"),
    [
        ("1\\n", "", "^the guest ended with status 1; the end of its console:\n  hello$"),
        ("", "echo no room >&2; exit 1", "(?s)^the machine around the guest ended before the guest; .*no room$"),
    ],
)  # fmt: skip
def test_bad_end_is_an_error_with_the_console(
    status: str, then: str, why: str, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, monkeypatch, status, then)
    with pytest.raises(LostError, match=why):
        ran(machine)


def test_deadline_is_scaled_by_the_slowdown(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, monkeypatch, then="exec sleep 60")
    began = time.monotonic()
    with pytest.raises(LostError, match=r"the guest overran its deadline of 1\.5 s"):
        ran(machine, wall_deadline_s=1.5 / outer.SLOWER)
    assert 1.5 <= time.monotonic() - began < 30


def test_stop_ends_the_machine(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, monkeypatch, "", f"echo $$ >{tmp_path}/pid; exec sleep 60")
    stop = instance.Stop()
    timer = threading.Timer(1.0, stop.now)
    timer.start()
    with pytest.raises(LostError):
        ran(machine, stop=stop)
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path("/proc", pid).exists()
