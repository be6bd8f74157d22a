"""What others' services run: workflows, the container, the development container. Each command is
one that there is, each file that is named is there; the steps of the first workflow are carried out
here."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from qjump_mn import cache
from qjump_mn.install import environment
from tests.support.processes import execute

ROOT = environment.CHECKOUT
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"actions/[a-z-]+@v\d+")
OURS = ("./bootstrap", "qjump-mn", "python3")


def workflow(path: Path) -> dict[Any, Any]:
    made: dict[Any, Any] = yaml.safe_load(path.read_text())
    return made


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in workflow(path)["jobs"].values():
        assert job["timeout-minutes"] and job["runs-on"]
        yield from job["steps"]


def commands(path: Path) -> list[str]:
    return [step["run"] for step in steps(path) if "run" in step]


def words(command: str) -> list[str]:
    """Of a command of ours, without variables."""
    split = shlex.split(command)
    while "=" in split[0]:
        split.pop(0)
    return split


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_asks_for_what_there_is(path: Path) -> None:
    made = workflow(path)
    assert made["permissions"] == {"contents": "read"}
    assert made[True], "yaml reads `on` as true"
    assert all(PINNED.fullmatch(step["uses"]) for step in steps(path) if "uses" in step)
    for command in commands(path):
        program, *arguments = words(command)
        assert program in OURS
        files = [word for word in arguments if "/" in word and not word.startswith("-")]
        assert all((ROOT / file).is_file() for file in files), command


def test_one_runs_on_what_debian_has_now_and_when_is_written() -> None:
    scheduled = {
        path.stem: workflow(path)[True].get("schedule")
        for path in WORKFLOWS
        if path.stem == "newest"
    }
    assert re.fullmatch(r"\d+ \d+ \* \* \d", scheduled["newest"][0]["cron"])
    path = ROOT / ".github/workflows/newest.yml"
    assert commands(path)[0] == "./bootstrap machine build --newest"
    assert "push" not in workflow(path)[True]


@pytest.mark.guest
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="sudo's part is root's")
def test_the_steps_of_the_first_workflow_end_well(tmp_path: Path) -> None:
    """In a clone, with this machine's cache in the place of the workflow's, and without the
    documents' site, which test_site.py makes."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    clone, programs = tmp_path / "clone", tmp_path / "bin"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    (clone / "cache").symlink_to(cache.roots()[0])
    # The launcher of the machine that the tests run on is not theirs to change.
    launcher = clone / "qjump_mn/install/environment.py"
    launcher.write_text(
        launcher.read_text().replace(str(environment.LAUNCHER), str(tmp_path / "launcher"))
    )
    programs.mkdir()
    (programs / "qjump-mn").symlink_to(clone / "bootstrap")
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    first = next(path for path in WORKFLOWS if path.stem == "smoke")
    for command in commands(first):
        if "bench/site.py" in command:
            continue
        argv = ["bash", "-e", "-o", "pipefail", "-c", command]  # as the runner does
        done = execute(argv, cwd=clone, env=variables)
        assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = (
        step["with"]["path"].split() for step in steps(first) if "upload" in step.get("uses", "")
    )
    there = [name for name in kept if (clone / name).exists()]
    assert there == ["results/last/report.html", "run.qjump.zip"]


def test_the_containers_files_are_there() -> None:
    made = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    file = (ROOT / ".devcontainer" / made["build"]["dockerfile"]).resolve()
    assert file == ROOT / "Containerfile"
    assert (ROOT / ".devcontainer" / made["build"]["context"]).resolve() == ROOT
    text = file.read_text()
    assert f"--create-home {made['remoteUser']}" in text
    assert (ROOT / made["postCreateCommand"].split()[0]).is_file()
    last = re.findall(r"^USER (\w+)$", text, re.M)[-1]
    assert last == made["remoteUser"] != "root"
    # What is built elsewhere is not copied into it, but for the two files that it is made of.
    ignored = (ROOT / ".containerignore").read_text().split()
    assert {".git", "results", "**/target"} <= set(ignored)
    assert not any("qjump-mn-machine" in line or "wheels" in line for line in ignored)
