"""Programs in a user's folder: ``new program`` writes one that runs as it is; what cannot be used
is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.cli import run_command
from qjump_mn.programs import user_programs
from qjump_mn.results import outcome

NAME = "beacon"


def called(folder: Path, *words: str, named: bool = True) -> tuple[int, str, str]:
    """Start the command line there; ``named``: root's QJUMP_MN_PATH names the folder, too."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "qjump_mn.run", *words],
        cwd=folder,
        env={**os.environ, "QJUMP_MN_PATH": str(folder) if named else ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    code, said, _ = called(tmp_path, "new", "program", NAME)
    assert code == 0 and said.startswith(
        f"programs/{NAME} and experiments/{NAME}.toml are written."
    )
    return tmp_path


def medians(folder: Path) -> dict[str, float]:
    found = outcome.read((folder / "results/last").resolve())
    return {arm.name: arm.measures["asks"]["p50_ms"].median for arm in found.arms}


def test_a_new_program_runs_in_the_simulator_as_it_is(folder: Path) -> None:
    code, said, error = called(folder, "run", NAME, "--backend", "simulator")
    assert (code, error) == (0, ""), said
    taken = medians(folder)
    assert taken["idle"] < taken["qjump"] < taken["contended"]
    again, _, error = called(folder, "report", "results/last")
    assert (again, error) == (0, "")


@pytest.mark.guest
def test_a_new_program_runs_in_the_guest_as_it_is(folder: Path) -> None:
    code, said, error = called(folder, "run", NAME)
    assert (code, error) == (0, ""), said
    taken = medians(folder)
    assert taken["idle"] < taken["qjump"] < taken["contended"]


def test_its_processes_are_printed(folder: Path) -> None:
    code, said, _ = called(folder, "run", NAME, "--dry-run", "--backend", "guest")
    assert code == 0 and "python3 -c" in said and "def answer(port" in said


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ping", "program 'ping' exists already: use another name"),
        ("base", "program 'base' exists already: use another name"),
        (
            "a-b",
            "new program: 'a-b' is not the name of a Python package: use letters, digits and _",
        ),
        ("fig3a", "experiment 'fig3a' exists already, "),
        (NAME, f"program '{NAME}' exists already: use another name"),
    ],
)
def test_what_cannot_be_begun_is_refused(name: str, sentence: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    code, _, error = called(folder, "new", "program", name)
    assert code == 2 and error.startswith(f"qjump-mn: {sentence}")
    assert sorted(folder.rglob("*")) == before


def test_one_that_cannot_be_imported_stops_only_what_uses_it(folder: Path) -> None:
    module = folder / "programs" / NAME / "program.py"
    module.write_text("import qjump_mn\nraise RuntimeError('not yet')\n")
    code, _, error = called(folder, "explain", NAME)
    assert code == 2
    assert (
        error
        == f"qjump-mn: {module} cannot be imported (RuntimeError: not yet, {module}, line 2): "
        "repair it\n"
    )
    assert called(folder, "explain", "fig3a")[0] == 0


def test_a_measure_that_cannot_be_imported_is_one_sentence(folder: Path) -> None:
    measures = folder / "programs" / NAME / "measures.py"
    assert called(folder, "run", NAME, "--backend", "simulator")[0] == 0
    measures.write_text("from qjump_mn import nothing_of_this_name\n")
    code, _, error = called(folder, "report", "results/last")
    assert (
        code == 2
        and f"{measures.parent}: qjump_mn.programs.{NAME}.measures:MEASURES cannot be imported"
        in error
    )


def mistaken(folder: Path, module: str, right: str, wrong: str) -> tuple[Path, int]:
    """Put a mistake into a module, and return its file and line."""
    path = folder / "programs" / NAME / module
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong, 1))
    return path, text[: text.index(right)].count("\n") + 1


@pytest.mark.parametrize(
    ("right", "wrong", "what"),
    [
        (
            "int(self.interval)",
            "int(self.interval) // 0",
            "ZeroDivisionError: integer division or modulo",
        ),
        ("bounded(f", "unbounded(f", "NameError: name 'unbounded' is not defined"),
    ],
)
def test_a_mistake_in_what_makes_the_plan_has_its_place(
    right: str, wrong: str, what: str, folder: Path
) -> None:
    path, line = mistaken(folder, "program.py", right, wrong)
    code, _, error = called(folder, "explain", NAME)
    assert code == 2 and error.startswith(f"qjump-mn: your program fails with {what}")
    assert error.endswith(f", {path}, line {line}: repair it\n")


def test_python_hears_the_sentence_of_the_command_line(folder: Path) -> None:
    path, line = mistaken(
        folder, "measures.py", "return of_latencies(table)", "return {'p50_ms': 1 / 0}"
    )
    code = (
        "from qjump_mn import api, errors\n"
        f"try: api.run('{NAME}', backend='simulator', settings={{'duration': '1s'}}, arms=None)\n"
        "except errors.QJumpError as error: print('told', error.exit_code, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "QJUMP_MN_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    sentence = f"your program fails with ZeroDivisionError: division by zero, {path}, line {line}"
    assert f"\ntold 2 {sentence}: repair it\n" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("module", ["program.py", "measures.py", "simulated.py"])
def test_sys_exit_in_a_module_is_a_sentence(module: str, folder: Path) -> None:
    path = folder / "programs" / NAME / module
    path.write_text("import qjump_mn\nraise SystemExit(0)\n")
    code, _, error = called(folder, "run", NAME, "--backend", "simulator", "-s", "duration=1s")
    assert code == 2 and f"(SystemExit: 0, {path}, line 2): repair it\n" in error


def test_a_program_that_is_not_whole_is_refused(folder: Path) -> None:
    mistaken(folder, "program.py", "def planned", "def plans")
    code, _, error = called(folder, "explain", NAME)
    assert code == 2
    assert (
        error
        == f"qjump-mn: qjump_mn.programs.{NAME}.program: class Spec needs a method 'planned'\n"
    )


def test_mistakes_in_what_reads_a_run_have_their_places(folder: Path) -> None:
    path, line = mistaken(
        folder, "measures.py", "return of_latencies(table)", "return {'p50_ms': 1 / 0}"
    )
    code, said, error = called(folder, "run", NAME, "--backend", "simulator", "-s", "duration=1s")
    zero = "qjump-mn: your program fails with ZeroDivisionError: division by zero"
    assert (code, error) == (2, f"{zero}, {path}, line {line}: repair it\n") and "[3/3]" in said
    for wrong, what in (
        ("{'p50': 1.0}", "'p50', but MEASURES of the plan has sent, received, "),
        ("{'p50_ms': None}", "None for 'p50_ms': return a number, or leave it out"),
        ("{'p50_ms': float('nan')}", "nan for 'p50_ms': return a number, or leave it out"),
    ):
        mistaken(folder, "measures.py", "{'p50_ms': 1 / 0}", wrong)
        code, _, error = called(folder, "report", "results/last")
        place = f"{folder}/programs/{NAME}: program '{NAME}'"
        assert code == 5 and error.startswith(f"qjump-mn: {place}: values returned {what}")
        mistaken(folder, "measures.py", wrong, "{'p50_ms': 1 / 0}")
    mistaken(folder, "measures.py", "{'p50_ms': 1 / 0}", "of_latencies(table)")
    path, line = mistaken(
        folder, "program.py", 'return f"{NAME}, ', 'return f"{NAME}{self.nosuch}, '
    )
    code, _, error = called(folder, "report", "results/last")
    assert code == 2 and "has no attribute 'nosuch'" in error and f"{path}, line {line}:" in error


@pytest.mark.parametrize(
    ("right", "wrong", "what"),
    [
        ("us(latency, gaps)", "us(latency, gaps), 3", "is not what this version reads: ValueError"),
        (
            "flow_name(flow), number",
            "flow_name(flow), 'x'",
            "is not what this version reads: ValueError",
        ),
        (
            "gaps = stage",
            "gaps = 1 / 0 + stage",
            "lost: your program fails with ZeroDivisionError: division by zero, {path}, line ",
        ),
    ],
)
def test_a_mistake_in_simulated_rows_loses_the_trial(
    right: str, wrong: str, what: str, folder: Path
) -> None:
    path, _ = mistaken(folder, "simulated.py", right, wrong)
    words = ("run", NAME, "--backend", "simulator", "-s", "duration=1s", "--arms", "idle")
    code, said, _ = called(folder, *words)
    said = " ".join(said.split())
    assert code == 5 and what.format(path=path) in said


def test_a_run_whose_program_is_not_here_says_where_to_start(folder: Path, tmp_path: Path) -> None:
    words = ("run", NAME, "--backend", "simulator", "-s", "duration=1s", "--arms", "idle")
    assert called(folder, *words)[0] in (0, 1)
    run, elsewhere = (folder / "results/last").resolve(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    for verb in (("report", str(run)), ("compare", str(run), str(run))):
        code, _, error = called(elsewhere, *verb)
        assert code == 2 and error == (
            f"qjump-mn: {run}/manifest.json: program '{NAME}' is not found here: start from the "
            f"folder that has programs/{NAME}, set QJUMP_MN_PATH to it, or install the package "
            "that brings it\n"
        )
    mistaken(folder, "program.py", "class Plan", "nosuch\nclass Plan")
    code, _, error = called(folder, "compare", str(run), str(run))
    assert (
        code == 2
        and "program.py cannot be imported (NameError: name 'nosuch' is not defined" in error
    )


def test_one_of_our_names_is_refused_where_it_is_used(folder: Path) -> None:
    (folder / "programs" / NAME).rename(folder / "programs" / "ping")
    code, _, error = called(folder, "explain", "fig3a")
    assert code == 2
    assert error.startswith(
        f"qjump-mn: {folder}/programs/ping: qjump-mn already has a program 'ping': "
    )


def test_python_that_has_nothing_to_do_with_us_is_not_run(folder: Path) -> None:
    other = folder / "programs" / "hello"
    other.mkdir()
    (other / "program.py").write_text("raise SystemExit('it was run')\n")
    assert called(folder, "explain", NAME)[0] == 0


def test_a_folder_that_is_gone_has_no_programs(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && exec {sys.executable} -P -m qjump_mn.run --version"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def spying(folder: Path) -> tuple[Path, Path]:
    """A program that leaves a file where it is imported; its module and that file."""
    module, file = folder / "programs" / NAME / "program.py", folder / "imported"
    module.write_text(f"{module.read_text()}\nopen({str(file)!r}, 'w').close()\n")
    return module, file


@pytest.mark.parametrize("words", [["--help"], ["list"], ["explain", "fig3a"]])
def test_program_is_not_imported_unless_its_experiment_is_named(
    folder: Path, words: list[str]
) -> None:
    _, file = spying(folder)
    _, said, error = called(folder, *words)
    assert not file.exists()
    if words == ["list"]:
        assert f"{NAME} uses a program of its own: see  qjump-mn explain {NAME}\n" in said, error
    assert called(folder, "explain", NAME)[0] == 0 and file.exists()


def test_check_imports_no_program(folder: Path) -> None:
    words = ("run", NAME, "--backend", "simulator", "-s", "duration=1s", "--arms", "idle")
    assert called(folder, *words)[0] in (0, 1)
    assert called(folder, "bundle", "results/last", "--out", "mine.zip")[0] == 0
    _, file = spying(folder)
    code, _, error = called(folder, "check", "mine.zip")
    # Nobody, as whom root checks, cannot even read pytest's folder.
    sentence = (
        "this command does not import users' programs"
        if os.geteuid()
        else f"program '{NAME}' is not found"
    )
    assert code == 2 and sentence in error
    assert not file.exists()


@pytest.mark.root
def test_root_imports_from_the_current_folder_only_with_trust(folder: Path) -> None:
    _, file = spying(folder)
    words = ("run", NAME, "--backend", "simulator", "-s", "duration=1s", "--arms", "idle")
    code, _, error = called(folder, *words, named=False)
    assert (code, file.exists()) == (2, False)
    assert error == (
        f"qjump-mn: {folder}/programs/{NAME}: root does not import programs from the current "
        f"folder: read program '{NAME}' first, then use --trust, or QJUMP_MN_PATH={folder}\n"
    )
    assert called(folder, *words, "--trust", named=False)[0] in (0, 1)
    assert file.exists() and called(folder, "report", "results/last", "--trust", named=False)[
        0
    ] in (0, 1)


def test_trust_in_a_strangers_command_line_is_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(user_programs.VARIABLE, raising=False)
    run_command.options_of(["qjump-mn", "run", "fig3a", "--trust"])
    assert user_programs.VARIABLE not in os.environ


@pytest.mark.root
@pytest.mark.parametrize(
    ("name", "mode", "reason"),
    [
        (f"programs/{NAME}/program.py", None, "belongs to another user"),
        (f"programs/{NAME}/__init__.py", None, "belongs to another user"),
        (f"programs/{NAME}/__pycache__/measures.cpython-311.pyc", None, "belongs to another user"),
        (f"programs/{NAME}/measures.py", 0o666, "can be written by every user"),
        (f"programs/{NAME}", 0o1777, "can be written by every user"),
        ("programs", 0o1777, "can be written by every user"),
        (".", 0o777, "can be written by every user"),
    ],
)
def test_program_that_others_may_change_is_not_imported(
    folder: Path, name: str, mode: int | None, reason: str
) -> None:
    _, file = spying(folder)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_text("")
    if mode is None:
        os.chown(path, 65534, 65534)
    else:
        path.chmod(mode)
    code, _, error = called(folder, "explain", NAME)
    assert code == 2 and not file.exists()
    assert error.startswith(
        f"qjump-mn: {folder}/programs/{NAME} is not imported: {path.resolve()} {reason}: "
    )
