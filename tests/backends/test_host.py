"""The host backend's checks of the machine, and its claim to the network.

tests/guest/test_host_backend.py runs it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qjump_mn.backends import host_claim, host_leftovers, host_needs
from qjump_mn.backends.host_claim import Claim
from qjump_mn.backends.host_leftovers import Setting
from qjump_mn.errors import MachineError
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan
from qjump_mn.toolbox import build
from tests.guest import trees

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a network to claim")


@pytest.fixture(scope="module")
def fig3a() -> Plan:
    return plan("fig3a", "smoke", [])


def test_only_mininet_is_imported_from_system_packages() -> None:
    host_needs.find_mininet()
    assert host_needs.DEBIAN_PACKAGES not in sys.path
    for name in ("numpy", "yaml", "apt_pkg"):
        assert host_needs.FINDER.find_spec(name, None) is None


def test_every_program_of_a_plan_is_checked(fig3a: Plan) -> None:
    programs = [*host_needs._programs(fig3a)]
    assert {
        "ovs-vsctl",
        "mnexec",
        "ethtool",
        "iperf3",
        "ping",
        "qjau",
        "/usr/lib/qjump-mn/libpatience.so",
    } <= {*programs}
    assert not {name for name in programs if "=" in name or name.startswith("-")}


def test_missing_programs_come_with_install_commands(
    fig3a: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ip").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(host_needs, "find_mininet", lambda: "")
    with pytest.raises(MachineError) as caught:
        host_needs.check(fig3a)
    said = str(caught.value)
    assert said.startswith("this machine lacks ovs-vsctl, mnexec, ") and said.endswith(
        ", or use --backend guest"
    )
    assert "iperf3" in said and "qjau" in said and " ip," not in said
    (packages,) = re.findall(r"apt-get install ([^;]*)", said)
    assert {"openvswitch-switch", "iproute2", "iperf3", "mininet"} <= {*packages.split()}
    assert "; make -C native/app-util install PREFIX=/usr" in said
    for folder in re.findall(r"make -C (\S+) install", said):
        assert (Path(host_needs.__file__).parents[2] / folder / "Makefile").is_file()


def test_our_programs_are_installed_from_their_folders() -> None:
    assert host_needs._install_commands(["qjump-edt", "nsping"]) == (
        "make -C native/qjump-edt install PREFIX=/usr; make -C native/nsping install PREFIX=/usr"
    )


def test_departure_times_need_none_of_our_modules() -> None:
    settings = [
        "link.model=tbf",
        *(f"schemes.{name}.limiter=edt" for name in ("qjump", "qjump-drop")),
    ]
    assert not {*host_needs.OURS} & {*host_needs._modules(plan("fig3a", "smoke", settings))}


def test_suggested_settings_need_none_of_our_modules(fig3a: Plan) -> None:
    assert {*host_needs.OURS} <= {*host_needs._modules(fig3a)}
    said = host_needs._module_advice(["the kernel module sch_wire"], fig3a)
    settings = re.findall(r"-s (\S+?),? ", said)
    assert settings[0] == "link.model=tbf"
    assert not {*host_needs.OURS} & {*host_needs._modules(plan("fig3a", "smoke", settings))}


def test_missing_module_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the real programs where there are any; without them, nothing can be loaded either."""
    assert host_needs.missing_modules(["no_such_module"]) == ["the kernel module no_such_module"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host_needs.missing_modules(["veth"]) == ["the kernel module veth"]


def test_missing_tc_plugins_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Debian's own tc, which has none of ours, and has them."""
    tree = trees.toolbox()
    (tmp_path / "tc").write_text(
        f'#!/bin/sh\nexec {shlex.join(tree.program("usr/sbin/tc"))} "$@"\n'
    )
    (tmp_path / "modprobe").write_text("#!/bin/sh\n")  # a kernel that has every module
    for name in ("tc", "modprobe"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    names = ("qjump", "qjump2015", "wire")
    assert host_needs.missing_modules(host_needs.OURS) == [
        f"tc's plugin for {name}" for name in names
    ]
    plugins = [node for name, node in build.tc_plugins(tree).items() if name.endswith(".so")]
    for plugin in plugins:
        assert isinstance(plugin.content, Path)
        (tmp_path / plugin.content.name).symlink_to(plugin.content)
    monkeypatch.setenv("TC_LIB_DIR", str(tmp_path))
    assert host_needs.missing_modules(host_needs.OURS) == []


def test_missing_root_is_one_sentence(fig3a: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineError, match="run it with sudo, or use --backend guest"):
        host_needs.check(fig3a)


@root
def test_second_process_is_refused_with_the_holders_name(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from qjump_mn.backends.host_claim import Claim\n"
        "with Claim(print, Path(sys.argv[1])): pass"
    )
    with Claim(print, tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
        said: list[str] = []
        host_claim.clean(said.append, tmp_path)
        assert (tmp_path / host_claim.JOURNAL).exists()
    whose = rf"a run of \S+ \(pid {os.getpid()}, since [-0-9]+ \d\d:\d\d UTC\) has this machine's network"
    assert re.search(rf"MachineError: {whose}: wait for its end", done.stderr)
    assert re.fullmatch(rf"{whose}; nothing was removed", "\n".join(said))
    assert [path.name for path in tmp_path.iterdir()] == [host_claim.LOCK]


@root
def test_first_recorded_setting_is_restored(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with Claim(print, tmp_path / "claim") as claimed:
        claimed.note_setting(("read",), ("tee", str(kept)), "first")
        claimed.note_setting(("read",), ("tee", str(kept)), "second")
        claimed.note_setting(("read", "other"), ("tee", f"{kept}2"), "other")
    assert (kept.read_text(), Path(f"{kept}2").read_text()) == ("first", "other")


def test_damaged_journal_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / host_claim.JOURNAL).write_bytes(b'{"mark": ')
    with pytest.raises(
        MachineError,
        match=r"host\.json, which lists what a killed run left, .* and remove that file$",
    ):
        host_claim.read(tmp_path / host_claim.JOURNAL)


@root
def test_only_lasting_settings_are_restored_after_reboot(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with subprocess.Popen(
        ["sleep", "60"], env={**os.environ, host_leftovers.VARIABLE: "a mark"}
    ) as process:
        journal = host_leftovers.Journal(
            mark="a mark",
            pid=1,
            user="somebody",
            since="long ago",
            boot="another",
            modules=(),
            settings=[
                Setting((), ("tee", str(kept)), "back"),
                Setting((), ("sysctl", "-qp", "-"), "no.such = 1"),
            ],
        )
        (tmp_path / host_claim.JOURNAL).write_bytes(msgspec.json.encode(journal))
        host_claim.clean(print, tmp_path)
        assert process.poll() is None, (
            "a process of another boot had the same mark, and is somebody else's"
        )
        assert kept.read_text() == "back"
        now = msgspec.structs.replace(journal, boot=host_leftovers.boot())
        (tmp_path / host_claim.JOURNAL).write_bytes(msgspec.json.encode(now))
        said: list[str] = []
        host_claim.clean(said.append, tmp_path)
        assert process.wait(10) == -9
    assert said == [f"ended process {process.pid} (sleep)"]
