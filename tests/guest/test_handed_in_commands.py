"""A command's run in the guest: verified, compared, bundled and checked; and one that was forged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qjump_mn.results import command_directory
from qjump_mn.results.command_directory import CommandDirectory
from tests.guest.command import qjump_mn, succeeds

pytestmark = [pytest.mark.guest, pytest.mark.smoke, pytest.mark.fresh]

SCRIPT = """
import random, sys
value = random.SystemRandom().random()
print("drawn", value)
open("drawn.csv", "w").write(f"{value}\\n")
sys.exit(int(sys.argv[1]))
"""


def made(folder: Path, *words: str) -> CommandDirectory:
    """Run the script as a user does, in the folder."""
    assert qjump_mn("mn", *words, cwd=folder).returncode == 3
    run = command_directory.existing(folder / "results/last")
    assert isinstance(run, CommandDirectory)
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    (folder / "draw.py").write_text(SCRIPT)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> CommandDirectory:
    return made(folder, "--seed", "1..2", "draw.py", "3")


def test_commands_run_is_verified_bundled_and_checked(
    run: CommandDirectory, tmp_path: Path
) -> None:
    files = len(run.manifest.files)
    done = qjump_mn("verify", run.path)
    last = f"identical: all {files} files of 2 trials"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, last)
    succeeds("bundle", run.path, "--out", tmp_path / "one.zip")
    done = qjump_mn("check", tmp_path / "one.zip", "--rerun", "--sample", "1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all is well")
    assert "jobs: those of the command\n" in done.stdout
    assert "seeds: all 2 are done\n" in done.stdout


def test_seeds_differ_and_what_changed_is_named(run: CommandDirectory, folder: Path) -> None:
    outputs = {(run.raw(f"mn/{seed}") / "output").read_bytes() for seed in (1, 2)}
    assert len(outputs) == 2
    (folder / "draw.py").write_text(SCRIPT.replace('"drawn"', '"got"'))
    other = made(folder, "--seed", "2", "draw.py", "3")
    text = succeeds("compare", run.path, other.path)
    assert "B's folder differs in 1 of 1 files, first in draw.py, which differs\n" in text
    assert "mn/2: B differs from A in 1 of " in text and ", first in raw/output: line 1 is " in text


def test_forged_output_and_exit_code_are_found(run: CommandDirectory, tmp_path: Path) -> None:
    forged = CommandDirectory(shutil.copytree(run.path, tmp_path / run.path.name))
    (forged.raw("mn/1") / "output").write_text("drawn 0.5\n")
    forged.finish("mn/1", run.manifest.trials["mn/1"])
    succeeds("bundle", forged.path, "--out", tmp_path / "two.zip")
    done = qjump_mn("check", tmp_path / "two.zip", "--rerun")
    assert done.returncode == 1
    assert "jobs: trials/mn/1/raw/output is not what the guest wrote\n" in done.stdout
    assert "mn/1 differs in 1 of " in done.stdout
    assert "and 'drawn 0.5' in the run\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "not all is well: see above"
