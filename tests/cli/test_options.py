"""The command line itself: version, variables, completion; as a user's shell calls it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from qjump_mn import __version__, resolve
from qjump_mn.cli import commands
from qjump_mn.cli.options import check_added, names
from qjump_mn.cli.run_command import options_of
from qjump_mn.errors import UsageError
from qjump_mn.resolve import checks
from qjump_mn.results import manifest
from tests.support import synthetic, tiny
from tests.support.processes import cli, execute

PARSER = commands.parser()


def called(*words: str, **variables: str) -> tuple[int, str, str]:
    done = cli(*words, **variables)
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
    assert [arm.name for arm in run.plan.run.arms] == ["idle", "qjump"]


def test_what_a_terminal_cannot_show_is_a_question_mark(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path).path
    told = called("report", str(run), PYTHONIOENCODING="utf-8")[1]
    assert "\u2013" in told
    for encoding in ("ascii", "latin-1"):
        code, said, wrong = called("report", str(run), PYTHONIOENCODING=encoding)
        assert (code, wrong) == (0, "") and said == told.encode(encoding, "replace").decode()


def test_a_name_for_a_file_may_be_that_of_the_file(tmp_path: Path) -> None:
    done = cli("new", "experiment", "mine.toml", cwd=tmp_path)
    assert "qjump-mn run mine --backend simulator\n" in done.stdout
    assert [path.name for path in (tmp_path / "experiments").iterdir()] == ["mine.toml"]


def test_a_misspelt_command_is_no_experiment() -> None:
    for words in (("runn", "fig3a"), ("runn",)):
        code, out, wrong = called(*words)
        told = "qjump-mn: there is no command or experiment 'runn': did you mean 'run'?"
        assert (code, out) == (2, "") and wrong.startswith(told)
    code, _, wrong = called("fig3z", "--preset", "smoke")
    assert code == 2 and "no command or experiment 'fig3z': did you mean 'fig3" in wrong
    assert called("fig1a", "--preset", "nosuch")[2].startswith(
        "qjump-mn: experiment 'fig5' has no preset"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--arms", ","), "--arms: ',' has no name"),
        (("--arms", ""), "--arms: '' has no name: write one or more"),
        (("--scheme", " "), "--scheme: ' ' has no name"),
        (("--scheme", "ecn", "--arms", "idle"),
         "--arms leaves out the arm that --scheme ecn adds: add it"),
        (("--out", ""), "--out: the name of the folder is empty"),
    ],
)  # fmt: skip
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


def test_every_option_may_be_a_variable() -> None:
    code, _, said = called("explain", "fig3a", QJUMP_MN_EXPLAIN_PRESET="nosuch")
    assert (code, said) == (
        2,
        "qjump-mn: experiment 'fig3a' has no preset 'nosuch': known are smoke, course, paper, "
        "htb2015, 10g\n",
    )
    code, output, _ = called("explain", "fig3a", QJUMP_MN_EXPLAIN_PRESET="smoke")
    assert code == 0 and "* smoke:" in output
    sentence = "qjump-mn: replicates must be 1 to 1000 (got 0)"
    code, _, said = called("run", "fig3a", "--dry-run", QJUMP_MN_RUN_REPLICATES="0")
    assert code == 2 and said.startswith(sentence)


@pytest.mark.parametrize(
    ("setting", "use"),
    [
        ("seed=3", "--seed 3"),
        ("preset=smoke", "--preset smoke"),
        ("schemes=ecn", "--scheme ecn"),
        ("perturb = 2", "--perturb 2"),
        ("backend=simulator", "--backend simulator"),
        ("scheduler=tcp://10.0.0.1:8786", "--scheduler tcp://10.0.0.1:8786"),
        ("out=my runs", "--out 'my runs'"),
        ("dry_run=yes", "--dry-run"),
    ],
)
def test_an_option_given_as_a_setting_names_the_option(setting: str, use: str) -> None:
    name = setting.partition("=")[0].strip()
    with pytest.raises(UsageError) as refusal:
        PARSER.main(["run", "fig3a", "-s", setting], standalone_mode=False)
    assert str(refusal.value) == f"{name} is an option, not a setting: use {use}"
    of_explain = "" if name == "preset" else " of run"
    with pytest.raises(UsageError) as refusal:
        PARSER.main(["explain", "fig3a", "-s", setting], standalone_mode=False)
    before = "qjump-mn run " if of_explain else ""
    assert (
        str(refusal.value) == f"{name} is an option{of_explain}, not a setting: use {before}{use}"
    )


def test_no_option_of_run_is_taken_for_a_setting() -> None:
    """But for ``replicates``, which a file has, too."""
    refused = set()
    for option in PARSER.commands["run"].params:
        if option.param_type_name == "option" and option.name != "settings":
            with pytest.raises(UsageError) as refusal:
                PARSER.main(
                    ["explain", "fig3a", "-s", f"{option.name}=none"], standalone_mode=False
                )
            if "is an option" not in str(refusal.value):
                refused.add(option.name)
    assert refused == {"replicates"}


def test_an_option_in_a_variable_for_settings_is_refused() -> None:
    sentence = "qjump-mn: seed is an option, not a setting: use --seed 3\n"
    assert called("run", "fig3a", QJUMP_MN_RUN_SETTINGS="duration=1ms seed=3") == (2, "", sentence)


def test_a_setting_that_there_is_not_says_where_all_are() -> None:
    code, out, wrong = called("run", "fig3a", "-s", "bandwidth=1Mbit")
    see = "qjump-mn explain fig3a --all lists them"
    assert (code, out, wrong) == (
        2,
        "",
        f"qjump-mn: experiment 'fig3a' has no setting 'bandwidth': {see}\n",
    )
    wrong = called("run", "fig3a", "-s", "linkrate=1Mbit")[2]
    found = re.search(r"did you mean 'link\.rate'\? \(nearest: (.*); (.*)\)\n$", wrong)
    assert found and found[1].startswith("link.rate, ") and found[2] == see
    assert "link.trunk_rate" in found[1]
    assert len(found[1].split(", ")) <= 6
    wrong = called("run", "fig3a", "-s", "label=x")[2]
    assert "write the whole name, one of workloads.ping.label, " in wrong and wrong.endswith(
        f"; {see}\n"
    )


def test_every_setting_that_is_listed_can_be_given() -> None:
    code, out, _ = called("explain", "fig3a", "--preset", "smoke", "--all")
    listed = out.partition("\nsettings, to change with -s:\n")[2].splitlines()
    assert code == 0 and "  link.rate=10Mbit" in listed and "  link.trunk_rate" in listed
    given = [line.strip() for line in listed if "=" in line]
    assert len(given) > 150
    usual, changed = (resolve.plan("fig3a", "smoke", settings) for settings in ([], given))
    assert changed.run == usual.run


def test_names_that_begin_so_are_suggested_sorted() -> None:
    meant = "did you mean 'fig3a', 'fig3b' or 'fig3c'? ("
    assert f"there is no experiment 'fig3': {meant}qjump-mn list " in called("run", "fig3")[2]
    wrong = called("fig3")[2]
    assert wrong == (
        f"qjump-mn: there is no command or experiment 'fig3': {meant}qjump-mn --help lists the "
        "commands, qjump-mn list experiments the experiments)\n"
    )
    wrong = called("run", "fig3a", "--scheme", "zzzzz")[2]
    assert (
        "there is no scheme 'zzzzz': qjump-mn list schemes lists them; put your own into " in wrong
    )


def test_a_file_that_cannot_be_written_is_told_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target, what in (
        (tmp_path, "is a folder"),
        (tmp_path / "none/x", "cannot"),
        (tmp_path / "file/x", "cannot"),
    ):
        code, out, wrong = called("machine", "export", str(target))
        assert (code, out) == (2, "") and wrong.startswith(f"qjump-mn: {target} {what}"), wrong


def test_a_path_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    long = tmp_path / ("a" * 300)
    told = "cannot be used (file name too long): check the path and its permissions"
    assert called("report", str(long)) == (2, "", f"qjump-mn: {long} {told}\n")


def test_a_students_name_gives_the_seed_and_is_in_the_manifest(tmp_path: Path) -> None:
    tiny.write(tmp_path, "alpha")
    words = ["run", "alpha", "--preset", tiny.PRESET, "--student", "Alice"]
    path = {"QJUMP_MN_PATH": str(tmp_path)}
    code, _, _ = called(*words, "--out", str(tmp_path / "out"), **path)
    found = manifest.read(tmp_path / "out/last")
    seed = checks.student_seed("alice")
    assert (code, found.plan.run.seeds) == (0, (seed, seed + 1))
    assert found.argv[:7] == ("qjump-mn", *words)
    assert options_of(found.argv)["seed"] == seed
    refusal = "qjump-mn: --student gives the seed: leave --seed out\n"
    assert called(*words, "--seed", "3", **path) == (2, "", refusal)
    refusal = "qjump-mn: --student needs a name or number that the course gave you\n"
    assert called(*words[:-1], " ", **path) == (2, "", refusal)


def test_what_a_variable_asks_for_is_in_the_manifest(tmp_path: Path) -> None:
    tiny.write(tmp_path, "alpha")
    variables = {
        "QJUMP_MN_PATH": str(tmp_path),
        "QJUMP_MN_RUN_SEED": "7",
        "QJUMP_MN_RUN_PRESET": tiny.PRESET,
    }
    code, _, _ = called("run", "alpha", "--out", str(tmp_path / "out"), **variables)
    found = manifest.read(tmp_path / "out/last")
    assert (code, found.plan.run.seeds) == (0, (7, 8))
    assert found.argv[:7] == ("qjump-mn", "run", "alpha", "--preset", tiny.PRESET, "--seed", "7")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("qjump-mn run fig3", ["fig3a", "fig3b", "fig3c"]),
        ("qjump-mn comp", ["compare"]),
        ("qjump-mn run fig3a --preset ", ["smoke", "course", "paper", "htb2015", "10g"]),
        ("qjump-mn run --preset abl", ["ablation"]),
        ("qjump-mn run fig3a --preset smoke --arms i", ["idle"]),
        ("qjump-mn run fig3a --preset smoke --arms idle,c", ["idle,contended"]),
        ("qjump-mn run --arms i", []),
        ("qjump-mn run fig3a --scheme dctcp,pf", ["dctcp,pfabric", "dctcp,pfc"]),
        ("qjump-mn run fig3a --backend ", ["guest", "host", "simulator"]),
        ("qjump-mn new p", ["program"]),
        ("qjump-mn list s", ["schemes"]),
    ],
)
def test_a_shell_completes_names(typed: str, expected: list[str]) -> None:
    words = {
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
        "_QJUMP_MN_COMPLETE": "complete_bash",
    }
    code, said, error = called(**words)
    assert (code, said.split(), error) == (0, expected, "")


def test_the_shells_script_is_shown() -> None:
    """Typer looks for the shell among the parents, of which a test may have none."""
    command = f"{sys.executable} -P -m qjump_mn.run --show-completion; true"
    shown = execute(["bash", "-c", command])
    assert "complete -o default -F _qjump_mn_completion qjump-mn" in shown.stdout
