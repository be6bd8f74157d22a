"""The command line itself: version, variables, completion; as a user's shell calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn import __version__
from qjump_mn.options import check_added, names
from qjump_mn.results import manifest
from tests import synthetic, tiny


def called(*words: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "qjump_mn.run", *words],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_version_is_told() -> None:
    assert called("--version") == (0, f"qjump-mn {__version__}\n", "")


def test_the_name_alone_tells_what_there_is() -> None:
    code, out, wrong = called()
    assert (code, wrong) == (0, "") and out.startswith("Usage: qjump-mn")


def test_an_option_with_names_may_be_given_again(tmp_path: Path) -> None:
    assert names(["idle,contended", "qjump", "idle"]) == ("idle", "contended", "qjump")
    words = ("run", "fig3a", "--preset", "10g", "-s", "duration=1ms", "--out", str(tmp_path))
    assert called(*words, "--arms", "idle", "--arms", "qjump")[0] in (0, 1, 4)
    run = manifest.read((tmp_path / "last").resolve())
    assert [arm.name for arm in run.plan.arms_run] == ["idle", "qjump"]


def test_what_a_terminal_cannot_show_is_a_question_mark(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path).path
    told = called("report", str(run), PYTHONIOENCODING="utf-8")[1]
    assert "\u2013" in told
    for encoding in ("ascii", "latin-1"):
        code, said, wrong = called("report", str(run), PYTHONIOENCODING=encoding)
        assert (code, wrong) == (0, "") and said == told.encode(encoding, "replace").decode()


def test_a_name_for_a_file_may_be_that_of_the_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "qjump_mn.run", "new", "experiment", "mine.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "qjump-mn run mine\n" in done.stdout
    assert [path.name for path in (tmp_path / "experiments").iterdir()] == ["mine.toml"]


def test_a_misspelt_command_is_no_experiment() -> None:
    for words in (("runn", "fig3a"), ("runn",)):
        code, out, wrong = called(*words)
        told = "qjump-mn: there is no command or experiment 'runn': did you mean 'run'? (nearest: run, "
        assert (code, out) == (2, "") and wrong.startswith(told)
    code, _, wrong = called("fig3z", "--preset", "smoke")
    assert code == 2 and "no command or experiment 'fig3z': did you mean 'fig3" in wrong
    assert called("fig1a", "--preset", "nosuch")[2].startswith("qjump-mn: experiment 'fig5' has no preset")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--arms", ","), "--arms: ',' names none"),
        (("--arms", ""), "--arms: '' names none: write one or more"),
        (("--scheme", " "), "--scheme: ' ' names none"),
        (
            ("--scheme", "ecn", "--arms", "idle"),
            "--arms leaves out what --scheme ecn adds: name its arm, too",
        ),
        (("--out", ""), "--out: it names no folder"),
    ],
)
def test_what_would_pass_for_something_else_is_refused(
    words: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, wrong = called("run", "fig3a", "--preset", "10g", *words)
    assert (code, out) == (2, "") and wrong.startswith(f"qjump-mn: {sentence}")
    assert not list(tmp_path.iterdir())


def test_the_arm_of_a_scheme_may_be_one_of_those_that_are_run() -> None:
    check_added(("fq-codel", "mine"), ("idle", "fq_codel", "search_mine"))
    check_added(("fq-codel",), ())


def test_a_kernel_that_there_is_not() -> None:
    sentence = "--kernel: there is no kernel '5.15': known are 6.1, 7; for the guest's own leave it out\n"
    assert called("run", "fig3a", "--kernel", "5.15") == (2, "", f"qjump-mn: {sentence}")


def test_every_option_may_be_a_variable() -> None:
    code, _, said = called("explain", "fig3a", QJUMP_MN_EXPLAIN_PRESET="nosuch")
    assert (code, said) == (
        2,
        "qjump-mn: experiment 'fig3a' has no preset 'nosuch': known are smoke, course, paper, htb2015, 10g\n",
    )
    code, output, _ = called("explain", "fig3a", QJUMP_MN_EXPLAIN_PRESET="smoke")
    assert code == 0 and "* smoke:" in output
    assert "QJUMP_MN_RUN_REPLICATES" in called("run", "--help")[1]


@pytest.mark.parametrize("command", ["export", "wheels"])
def test_a_file_that_cannot_be_written_is_told_before_it_is_made(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target, what in (
        (tmp_path, "is a folder"),
        (tmp_path / "none/x", "cannot"),
        (tmp_path / "file/x", "cannot"),
    ):
        code, out, wrong = called("machine", command, str(target))
        assert (code, out) == (2, "") and wrong.startswith(f"qjump-mn: {target} {what}"), wrong


def test_a_path_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    long = tmp_path / ("a" * 300)
    told = "cannot be used (file name too long): look whose it is, and what"
    assert called("report", str(long)) == (2, "", f"qjump-mn: {long} {told}\n")


def test_what_a_variable_asks_for_is_in_the_manifest(tmp_path: Path) -> None:
    tiny.write(tmp_path, "alpha")
    variables = {"QJUMP_MN_PATH": str(tmp_path), "QJUMP_MN_RUN_SEED": "7", "QJUMP_MN_RUN_PRESET": tiny.PRESET}
    code, _, _ = called("run", "alpha", "--out", str(tmp_path / "out"), **variables)
    found = manifest.read(tmp_path / "out/last")
    assert (code, found.plan.seeds) == (0, (7, 8))
    assert found.argv[:7] == ("qjump-mn", "run", "alpha", "--preset", tiny.PRESET, "--seed", "7")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("qjump-mn run fig3", ["fig3a", "fig3b", "fig3c"]),
        ("qjump-mn comp", ["compare"]),
        ("qjump-mn run fig3a --preset ", ["smoke", "course", "paper", "htb2015", "10g"]),
        ("qjump-mn run fig3a -p c", ["course"]),
        ("qjump-mn explain fig1a --preset s", ["smoke"]),
        ("qjump-mn run --preset abl", ["ablation"]),
        ("qjump-mn run fig3a --preset smoke --arms i", ["idle"]),
        ("qjump-mn run fig3a --preset smoke --arms idle,c", ["idle,contended"]),
        ("qjump-mn run fig3a --preset nosuch --arms i", []),
        ("qjump-mn run --arms i", []),
        ("qjump-mn run fig3a --scheme dctcp,pf", ["dctcp,pfabric", "dctcp,pfc"]),
        ("qjump-mn run fig3a --backend ", ["guest", "host", "simulator"]),
        ("qjump-mn new p", ["program"]),
    ],
)
def test_a_shell_completes_names(typed: str, expected: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_QJUMP_MN_COMPLETE": "complete_bash"}
    code, said, error = called(**words)
    assert (code, said.split(), error) == (0, expected, "")


def test_the_shells_script_is_shown() -> None:
    """Typer looks for the shell among the parents, of which a test may have none."""
    command = f"{sys.executable} -P -m qjump_mn.run --show-completion; true"
    shown = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert "complete -o default -F _qjump_mn_completion qjump-mn" in shown.stdout
