"""Which checkout and commit a run is of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import qjump_mn
from qjump_mn.install import provenance
from qjump_mn.install.provenance import Git


def repository(folder: Path) -> str:
    """A repository with one file; its commit."""
    folder.mkdir()
    (folder / "requirements.lock").write_text("")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    return subprocess.check_output(["git", "-C", folder, "rev-parse", "HEAD"], text=True).strip()


def test_a_checkout_has_its_commit_and_says_what_was_changed(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    commit = repository(folder)
    assert provenance.git(folder) == Git(commit, False)
    (folder / "new").write_text("")
    assert provenance.git(folder) == Git(commit, True)
    told = provenance.describe(Git(commit, True), folder)
    assert told == f"qjump-mn {qjump_mn.__version__}, {folder}, commit {commit[:10]}, changed"


def test_a_copy_in_somebodys_repository_has_no_commit(tmp_path: Path) -> None:
    """Its commit would be of another project."""
    repository(tmp_path / "theirs")
    copy = tmp_path / "theirs/qjump-mn"
    copy.mkdir()
    (copy / "requirements.lock").write_text("")
    assert provenance.git(copy) == Git("", False)
    assert provenance.describe(Git("", False), copy).endswith(f"{copy}, a copy without git")
    shutil.rmtree(tmp_path / "theirs/.git")
    assert provenance.git(copy) == Git("", False)


def test_an_installed_package_says_where_it_is(tmp_path: Path) -> None:
    told = provenance.describe(provenance.git(tmp_path), tmp_path)
    assert told == f"qjump-mn {qjump_mn.__version__}, installed in {tmp_path}"
