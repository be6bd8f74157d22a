"""Programs in a user's folder: ``new program`` writes one that runs as it is; what cannot be used is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.results import outcome

NAME = "beacon"


def called(folder: Path, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "qjump_mn.run", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    code, said, _ = called(tmp_path, "new", "program", NAME)
    assert code == 0 and said.startswith(f"programs/{NAME} and experiments/{NAME}.toml are written.")
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
        ("ping", "program 'ping' is there already: take another name"),
        ("base", "program 'base' is there already: take another name"),
        ("a-b", "new program: 'a-b' is no name of a Python package: use letters, digits and _"),
        ("fig3a", "experiment 'fig3a' is there already, "),
        (NAME, f"program '{NAME}' is there already: take another name"),
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
    assert error == f"qjump-mn: {module} cannot be imported (RuntimeError: not yet): repair it\n"
    assert called(folder, "explain", "fig3a")[0] == 0


def test_a_measure_that_cannot_be_imported_is_one_sentence(folder: Path) -> None:
    measures = folder / "programs" / NAME / "measures.py"
    assert called(folder, "run", NAME, "--backend", "simulator")[0] == 0
    measures.write_text("from qjump_mn import nothing_of_this_name\n")
    code, _, error = called(folder, "report", "results/last")
    assert (
        code == 2 and f"{measures.parent}: qjump_mn.programs.{NAME}.measures:MEASURES does not load" in error
    )


def test_one_of_our_names_is_refused_where_it_is_used(folder: Path) -> None:
    (folder / "programs" / NAME).rename(folder / "programs" / "ping")
    code, _, error = called(folder, "explain", "fig3a")
    assert code == 2
    assert error.startswith(f"qjump-mn: {folder}/programs/ping: qjump-mn has a program 'ping' itself")


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


@pytest.mark.root
def test_what_is_somebody_elses_is_not_run(folder: Path) -> None:
    module = folder / "programs" / NAME / "program.py"
    module.write_text("import qjump_mn\nraise SystemExit('it was run')\n")
    os.chown(module, 12345, 12345)
    code, _, error = called(folder, "explain", NAME)
    assert code == 2
    assert error.startswith(f"qjump-mn: {module} is somebody else's, and would be run")
