"""Congestion laws that schemes name: what the plan keeps of them, and what is refused."""

from __future__ import annotations

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.model.scheme import Law
from qjump_mn.resolve import named_files, plan
from qjump_mn.results import user_files
from tests.support.user_files import Write

SCHEME = """
label = "mine"
about = "a congestion law of somebody's own"
look = { colour = "#123456", marker = "o" }
only_simulated = true

[simulator]
like = "tcp"
transport = { congestion = "custom", law = "mine.wat" }
"""


def resolved(*settings: str) -> Plan:
    return plan("fig9", "smoke", list(settings), schemes=["mine"])


@pytest.fixture(autouse=True)
def scheme(own: Write) -> None:
    """A user's scheme with a law."""
    own("schemes/mine.toml", SCHEME)
    own("schemes/mine.wat", "(module)")


def test_plan_has_the_law_and_its_hash_changes_with_it(own: Write) -> None:
    first = resolved()
    own("schemes/mine.wat", "(module )")
    second = resolved()
    laws = {arm.scheme.name: arm.scheme.law for arm in first.arms}
    assert laws.pop("mine") == Law(file="mine.wat", code="(module)")
    assert set(laws.values()) == {None}
    assert first.hash != second.hash
    hashes = [[trial.hash for trial in found.trials()] for found in (first, second)]
    differ = [one != other for one, other in zip(*hashes, strict=True)]
    assert differ == [trial.arm.scheme.name == "mine" for trial in first.trials()]


def test_run_keeps_the_law() -> None:
    assert {"schemes/mine.toml", "schemes/mine.wat"} <= dict(user_files.files_of(resolved())).keys()


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("other.wat", r"there is no file other\.wat: put it into "),
        ("../mine.wat", r"'\.\./mine\.wat' is not the name of a law's file: use letters"),
        ("mine.c", r"'mine\.c' is not the name of a law's file: use letters"),
    ],
)
def test_other_files_are_refused(file: str, sentence: str, own: Write) -> None:
    own("schemes/mine.toml", SCHEME.replace("mine.wat", file))
    with pytest.raises(UsageError, match=rf"mine.*: simulator\.transport\.law: {sentence}"):
        resolved()


def test_a_long_law_is_refused(own: Write) -> None:
    own("schemes/mine.wat", " " * (named_files.MAX_LAW_BYTES + 1))
    with pytest.raises(UsageError, match=r"mine\.wat has 1048577 bytes: a law may have 1048576"):
        resolved()


def test_a_binary_law_is_kept_as_it_is(own: Write) -> None:
    own("schemes/mine.toml", SCHEME.replace("mine.wat", "mine.wasm"))
    content = b"\0asm\1\0\0\0\xff"
    own("schemes/mine.wasm", "").write_bytes(content)
    (law,) = {arm.scheme.law for arm in resolved().arms} - {None}
    assert law is not None and law.content == content
    own("schemes/mine.toml", SCHEME)
    own("schemes/mine.wat", "").write_bytes(content)
    with pytest.raises(UsageError, match=r"mine\.wat is not text in UTF-8"):
        resolved()
