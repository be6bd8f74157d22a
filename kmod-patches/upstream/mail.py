"""Write patches by `git format-patch`, from a temporary repository with the files they touch."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from upstream.single import TextError

_DATE = "2026-11-24T12:00:00+00:00"
"""The date of every patch unless $SOURCE_DATE_EPOCH is set: equal input gives equal bytes."""


@dataclass(frozen=True)
class Patch:
    """A patch: its message, and the complete new text of each file that it adds or changes."""

    message: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """Patches in order, with their cover letter, whose first line is its subject.

    All subjects begin with `prefix`.
    """

    prefix: str
    letter: str
    patches: Sequence[Patch]


def author_of(words: str) -> tuple[str, str]:
    """Return name and address. Raises TextError unless `words` is `NAME <ADDRESS>`."""
    match = re.fullmatch(r"\s*([^<>]+?)\s*<([^<>\s]+@[^<>\s]+)>\s*", words)
    if not match:
        raise TextError(
            f"{words!r} is not a valid author: give one as 'NAME <ADDRESS>', or set git's "
            "user.name and user.email"
        )
    return match[1], match[2]


def configured_author() -> str:
    """Return the author in git's configuration; ` <>` if there is none."""
    words = [
        subprocess.run(
            ["git", "config", f"user.{key}"], capture_output=True, text=True
        ).stdout.strip()
        for key in ("name", "email")
    ]
    return f"{words[0]} <{words[1]}>"


def written(series: Series, tree: Path, folder: Path, author: str) -> list[Path]:
    """Write the series into a folder without patches; return the files, cover letter first."""
    name, address = author_of(author)
    if folder.is_dir() and list(folder.glob("*.patch")):
        raise TextError(f"{folder} holds patches already: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        git = _Git(Path(scratch), name, address)
        touched = {
            path for patch in series.patches for path in patch.files if (tree / path).exists()
        }
        git.commit("before", {path: (tree / path).read_text() for path in touched})
        for patch in series.patches:
            git.commit(
                f"{patch.message.strip()}\n\nSigned-off-by: {name} <{address}>\n", patch.files
            )
        options = [
            "--zero-commit",
            "--no-signature",
            f"--subject-prefix={series.prefix}",
            f"--output-directory={folder.resolve()}",
        ]
        git.run(
            "format-patch",
            "--quiet",
            "--cover-letter",
            *options,
            "HEAD~" + str(len(series.patches)),
        )
    (cover,) = folder.glob("0000-*.patch")
    subject, _, text = series.letter.strip().partition("\n\n")
    filled = cover.read_text().replace("*** SUBJECT HERE ***", subject)
    cover.write_text(filled.replace("*** BLURB HERE ***", text))
    return sorted(folder.glob("*.patch"))


class _Git:
    """A repository with a given author and date, independent of the user's configuration."""

    def __init__(self, folder: Path, name: str, address: str) -> None:
        date = os.environ.get("SOURCE_DATE_EPOCH") or _DATE
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.environment |= {
                f"GIT_{role}_NAME": name,
                f"GIT_{role}_EMAIL": address,
                f"GIT_{role}_DATE": date,
            }
        self.run("init", "--quiet")

    def run(self, *words: str, text: str | None = None) -> None:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise TextError(f"git {words[0]} fails: {done.stderr.strip()}")

    def commit(self, message: str, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
            if text.startswith("#!"):
                (self.folder / name).chmod(0o755)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--file=-", text=message)
