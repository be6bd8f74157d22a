"""From the words of `qjump-mn mn` to a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.mn.request import Options, Request, of_words


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script and an executable, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text("print(1)\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "sub/run.sh").chmod(0o755)
    return tmp_path


def argv(*words: str, **options: object) -> tuple[str, ...]:
    return made(*words, **options).command.argv


def made(*words: str, **options: object) -> Request:
    return of_words(words, Options(**options))  # type: ignore[arg-type]


def test_words_are_mininets_options_a_script_or_a_command() -> None:
    assert argv() == ("mn",)
    assert argv("--topo", "tree,2") == ("mn", "--topo", "tree,2")
    assert argv("my.py", "--n", "4") == ("python3", "my.py", "--n", "4")
    assert argv("sub/run.sh", "x") == ("./run.sh", "x")
    assert argv("bash", "-c", "ls") == ("bash", "-c", "ls")
    assert argv("sub/run.sh", folder=Path()) == ("./sub/run.sh",)


def test_classes_of_mininet_qos_are_custom_ones_for_mn_and_stand_for_others_in_scripts() -> None:
    assert argv("--mac", link="tc,bw=10") == ("mn", "--link", "tc,bw=10", "--mac")
    custom = argv("--mac", link="qjwire,bw=100", switch="qjprio")
    assert custom[:2] == ("mn", "--custom") and custom[2].endswith("/mininet_qos/custom.py")
    assert custom[3:] == ("--link", "qjwire,bw=100", "--switch", "qjprio", "--mac")
    assert made("my.py", link="qjwire").command.link == "qjwire"


def test_folder_is_the_scripts_and_counts() -> None:
    first = made("my.py").command
    Path("my.py").write_text("print(2)\n")
    assert made("my.py").command.hash != first.hash
    assert made("--mac").command.folder_sha256 == made("--arp").command.folder_sha256
    assert made("--custom", "my.py").command.folder_sha256 == made("my.py").command.folder_sha256


def test_seeds_do_not_count() -> None:
    assert made("my.py", seeds="2..4").command.seeds == (2, 3, 4)
    assert made("my.py", seeds="2..4").command.hash == made("my.py").command.hash


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        (["no.py"], {}, "there is no script no.py"),
        (["sub"], {}, "sub is a folder: name the script in it"),
        (["my.py"], {"folder": Path("sub")}, "my.py is not in sub"),
        (["my.py"], {"folder": Path("none")}, "is not in none|there is no folder none"),
        (["my.py"], {"seeds": "3..1"}, "--seed 3..1: give from 1 to"),
        (["my.py"], {"seeds": "x"}, "--seed x: give a number"),
        (["my.py"], {"memory": "3"}, "--memory 3: give from 512M"),
        (["my.py"], {"deadline": "3"}, "--deadline: '3' is not a duration"),
        (["my.py"], {"link": "tc"}, "--link tc: for a script it is one of qjwire"),
        (["my.py"], {"switch": "qjprio"}, "--switch qjprio: only Mininet's own mn takes it"),
        (["my.py"], {"host": "qjvlan"}, "--host qjvlan: only Mininet's own mn takes it"),
        (["my.py"], {"mininet": Path("sub")}, "--mininet sub: there is no mininet/net.py"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        made(*words, **options)


def test_file_that_is_no_script_is_refused(here: Path) -> None:
    (here / "data.txt").write_text("x")
    with pytest.raises(UsageError, match=r"neither a Python script \(.py\) nor executable"):
        made("./data.txt")


@pytest.mark.parametrize(
    "line", ["print 'x'", "    print x", "except ValueError, error:", "raise ValueError, 'x'"]
)
def test_python_2_is_recognised(here: Path, line: str) -> None:
    start = "try:\n    pass\n" if line.startswith("except") else "if 1:\n" * line.startswith(" ")
    (here / "old.py").write_text(f"import os\n{start}{line}\n    pass\n")
    with pytest.raises(UsageError, match=r"old.py:\d: .* is Python 2"):
        made("old.py")


def test_other_wrong_python_is_left_to_the_machines(here: Path) -> None:
    (here / "new.py").write_text('type Point = tuple[float, float]\nf"{"a"}"\n')
    assert argv("new.py") == ("python3", "new.py")
