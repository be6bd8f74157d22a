"""The build of a Rust program: repeatable to the bit, and a sentence without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree, build, crates
from tests.support import facts

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).resolve().parents[3] / "native" / "barrier"


@pytest.mark.nightly
def test_two_builds_are_the_same_to_the_bit(tree: Tree, tmp_path: Path) -> None:
    def build_again() -> None:
        first = build.native_program(tree, "barrier", print)
        build.compiled(tree, build.program("barrier"), tmp_path / "second")
        sums = [
            cache.hash_of_file(folder / "usr/bin/barrier")
            for folder in (first, tmp_path / "second")
        ]
        assert sums[0] == sums[1]

    facts.established(
        "the barrier's second build", facts.key_of(tree, build.program("barrier")), build_again
    )


@pytest.mark.slow  # cargo tries several times
def test_without_a_network_crates_are_missing_in_one_sentence(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path))
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens at the port of `discard`
    with pytest.raises(
        MachineError, match="the crates of barrier cannot be fetched, connect this machine"
    ) as raised:
        crates.fetched(tree, SOURCE)
    assert "\n" not in str(raised.value)
    assert not list((tmp_path / "crates").glob("*/registry"))
