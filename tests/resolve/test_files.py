"""Files of experiments by name, and those that are too short or badly named."""

from __future__ import annotations

from pathlib import Path

import pytest

import qjump_mn
from qjump_mn.errors import UsageError
from qjump_mn.resolve import loading, plan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    (tmp_path / "experiments").mkdir()
    return tmp_path / "experiments"


def test_names_leaves_out_files_whose_names_are_not_valid(folder: Path) -> None:
    for name in ("mine.toml", "b@d.toml", "notes.txt"):
        (folder / name).write_text("")
    (folder / "sub.toml").mkdir()
    names = loading.names("experiments")
    assert {"mine", "fig3a"} <= set(names) and names == sorted(names)
    assert not {"b@d", "notes", "sub"} & set(names)
    (sentence,) = loading.misnamed("experiments")
    assert "b@d" in sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("arms = {}\nworkloads = {}", "experiment 'mine' has no arms: give it at least one"),
        ("topology = 5", "topology: must be a text"),
    ],
)
def test_file_that_is_not_enough_is_refused(text: str, sentence: str, folder: Path) -> None:
    (folder / "mine.toml").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        plan("mine", "course", [])


PING = """
[workloads.ping]
program = "ping"
flows = ["h1>h2"]
interval = "10ms"
level = 6
[arms.idle]
workloads = ["ping"]
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{PING}scheme = 5", r"arms\.idle\.scheme: must be a text"),
        (f'{PING}[schemes.mine]\nbase = "nosuch"', "there is no scheme 'nosuch'"),
        (f"{PING}[arms.other]\nworkloads = 5", r"arms\.other\.workloads: must be a list"),
    ],
)
def test_schemes_of_arms_and_bases_are_checked(text: str, sentence: str, folder: Path) -> None:
    (folder / "mine.toml").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        plan("mine", "course", [])
    (folder / "mine.toml").write_text(PING)
    assert plan("mine", "course", []).run.arms[0].scheme.name == "none"


def test_our_files_are_in_the_package_or_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qjump_mn, "__file__", str(tmp_path / "package/__init__.py"))
    beside, within = tmp_path / "schemes", tmp_path / "package/schemes"
    assert loading.folders("schemes")[-1] == beside
    within.mkdir(parents=True)
    assert loading.folders("schemes")[-1] == within
