"""Kernel modules of schemes: what the plan keeps of them, their step, and what is refused."""

from __future__ import annotations

import re

import msgspec
import pytest

from qjump_mn.backends import emulated
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Run
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.resolve import plan
from qjump_mn.results import user_files
from qjump_mn.steps.apply_arm import apply_arm
from tests.support.user_files import Write

SCHEME = """
label = "mine"
about = "a congestion control of somebody's own"
look = { colour = "#123456", marker = "o" }
congestion_control = "mine"
module = "tcp_mine.c"
parameters = { gain = 3.4 }
module_parameters = "gain={gain} burst={2 * frame}"
"""
SOURCE = "int mine;\n"


def resolved(*settings: str, backend: str = "") -> Plan:
    return plan("fig3a", "smoke", list(settings), schemes=["mine"], backend=backend)


def mine(found: Plan) -> ArmPlan:
    return next(arm for arm in found.arms if arm.name == "mine")


@pytest.fixture(autouse=True)
def scheme(own: Write) -> None:
    """A user's scheme with a module."""
    own("schemes/mine.toml", SCHEME)
    own("schemes/tcp_mine.c", SOURCE)


def test_plan_has_the_source_and_its_hash_changes_with_it(own: Write) -> None:
    first = resolved()
    own("schemes/tcp_mine.c", "int other;\n")
    second = resolved()
    assert mine(first).scheme.module is not None
    assert mine(first).scheme.module != mine(second).scheme.module
    assert first.hash != second.hash
    hashes = [[trial.hash for trial in found.trials()] for found in (first, second)]
    differ = [one != other for one, other in zip(*hashes, strict=True)]
    assert differ == [trial.arm.name == "mine" for trial in first.trials()]


def test_line_ends_of_another_system_do_not_count(own: Write) -> None:
    first = resolved()
    own("schemes/tcp_mine.c", SOURCE.replace("\n", "\r\n"))
    assert resolved().hash == first.hash


def test_module_is_loaded_before_its_congestion_control_is_chosen() -> None:
    steps = [step for step in apply_arm(mine(resolved()), 1) if isinstance(step, Run)]
    load, allow = steps[:2]
    assert load.argv[-3:] == ("/usr/lib/qjump-mn/tcp_mine.ko", "gain=3", "burst=3044")
    assert "tcp_allowed_congestion_control" in allow.argv[-1]
    assert not any("insmod" in " ".join(step.argv) for step in steps[1:])


def test_run_keeps_the_source() -> None:
    assert {"schemes/mine.toml", "schemes/tcp_mine.c"} <= dict(
        user_files.files_of(resolved())
    ).keys()


def test_no_remark_says_that_linux_lacks_the_congestion_control(own: Write) -> None:
    assert not any("has no congestion control" in remark for remark in resolved().shown.remarks)
    own("schemes/mine.toml", re.sub("(?m)^module.*$", "", SCHEME))
    assert any("has no congestion control" in remark for remark in resolved().shown.remarks)


def test_modules_are_for_the_guest_only() -> None:
    emulated.check(resolved(backend="guest"))
    with pytest.raises(UsageError, match=r"arms\.mine: module tcp_mine\.c: .*use --backend guest$"):
        emulated.check(resolved(backend="host"))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("module='tcp_other.c'", "module: there is no file tcp_other.c: put it into .*/schemes"),
        ("module='../tcp_mine.c'", "module: '../tcp_mine.c' is not the name of a module's source"),
        ("module='tcp_mine.ko'", "'tcp_mine.ko' is not the name of a module's source: use lower"),
        ("module=''", "module: '' is not the name of a module's source"),
        ("module_parameters='loud'", "'loud' is not a module's parameter: write NAME=VALUE"),
        ("module_parameters='gain={other}'", r"module_parameters: \{other\}: .*is not known"),
        ("module_parameters='gain={gain'", "has a brace without a partner"),
    ],
)
def test_what_cannot_be_a_module_is_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolved(f"schemes.mine.{setting}")


def test_parameters_without_a_module_are_refused(own: Write) -> None:
    own("schemes/mine.toml", SCHEME.replace('module = "tcp_mine.c"\n', ""))
    with pytest.raises(UsageError, match="module_parameters: there is no module: name one"):
        resolved()


@pytest.mark.parametrize("text", ["int a;\f\n", "int \u202ea;\n", f"int a; // {'x' * (256 << 10)}"])
def test_source_that_a_manifest_cannot_hold_is_refused(text: str, own: Write) -> None:
    own("schemes/tcp_mine.c", text)
    with pytest.raises(UsageError, match=r"^scheme 'mine': tcp_mine\.c: "):
        resolved()


def test_edited_plan_leads_nowhere_else() -> None:
    arm = mine(resolved())
    assert arm.scheme.module is not None
    module = msgspec.structs.replace(arm.scheme.module, file="../../root.c")
    edited = msgspec.structs.replace(arm, scheme=msgspec.structs.replace(arm.scheme, module=module))
    with pytest.raises(UsageError, match=r"'\.\./\.\./root\.c' is not the name"):
        list(apply_arm(edited, 1))
