"""The command in the system's path: which checkout it starts, and which it refuses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from qjump_mn.install import environment, launcher
from tests.support import checkouts
from tests.support.processes import execute

Started = subprocess.CompletedProcess[str]
NOBODY = 65534


class Installed:
    """A command that was installed from ``home``, and a cache for it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.command, self.home = folder / "local bin/qjump-mn", home
        self.cache = checkouts.warm_cache(folder / "cache")

    def start(
        self, cwd: Path | str, *words: str, user: int | None = None, **variables: str
    ) -> Started:
        """Call it as a user's shell would."""
        values = {"PATH": "/usr/bin:/bin", "QJUMP_MN_CACHE": str(self.cache), **variables}
        return execute([self.command, *words], cwd=cwd, env=values, user=user)

    def started(self, cwd: Path | str, **variables: str) -> str:
        """The checkout that it starts there."""
        done = self.start(cwd, "list", "a b", user=None, **variables)
        assert done.returncode == 0, done.stderr
        told = checkouts.said(done.stdout)
        assert told["argv"] == ["list", "a b"]
        return told["path"][0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    home = checkouts.copy(tmp_path / "it's a check-out")
    monkeypatch.setattr(environment, "CHECKOUT", home)
    command = Installed(tmp_path, home)
    environment.link(command.command)
    return command


def test_it_starts_the_checkout_that_installed_it(installed: Installed) -> None:
    assert installed.started("/") == str(installed.home)
    assert os.access(installed.command, os.X_OK)


@pytest.mark.parametrize("name", launcher.BREAKS_PYTHON)
def test_it_starts_whatever_python_is_told(installed: Installed, name: str) -> None:
    assert installed.started("/", **{name: "2"}) == str(installed.home)


@pytest.mark.parametrize("below", ["", "docs/deeper"])
def test_it_starts_the_checkout_around_it(installed: Installed, tmp_path: Path, below: str) -> None:
    other = checkouts.copy(tmp_path / "other")
    (other / below).mkdir(parents=True, exist_ok=True)
    assert installed.started(other / below) == str(other)


def test_a_checkout_that_is_gone_is_one_sentence(installed: Installed, tmp_path: Path) -> None:
    installed.home.rename(tmp_path / "moved")
    done = installed.start("/")
    told = f"qjump-mn: {installed.home} is gone: run the bootstrap of another checkout\n"
    assert (done.returncode, done.stderr) == (3, told)
    assert installed.started(tmp_path / "moved") == str(tmp_path / "moved")


def test_a_folder_that_is_gone_is_no_matter(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f"rmdir '{tmp_path}/gone'; exec \"$0\" list"
    done = execute(
        ["sh", "-c", script, installed.command],
        cwd=tmp_path / "gone",
        env={"PATH": "/usr/bin:/bin", "QJUMP_MN_CACHE": str(installed.cache)},
    )
    assert f'"{installed.home}/qjump_mn/run.py"' in done.stderr, (
        "the copy's own words, which want a folder"
    )


def test_a_python_that_is_gone_is_one_sentence(installed: Installed, tmp_path: Path) -> None:
    text = installed.command.read_text()
    line = next(line for line in text.splitlines() if line.startswith("python="))
    installed.command.write_text(text.replace(line, f"python={tmp_path}/uninstalled"))
    done = installed.start("/")
    assert done.returncode == 3
    assert "uninstalled is gone: run the bootstrap of a checkout again" in done.stderr


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("qjump_mn/run.py", "everybody", "can be written by every user"),
        ("qjump_mn/executor", "everybody", "can be written by every user"),
        ("qjump_mn/__pycache__/run.cpython-311.pyc", "group", "can be written by its group"),
        ("bootstrap", "owner", "belongs to another user"),
        (".", "everybody", "can be written by every user"),
        ("..", "everybody", "can be written by every user"),
        ("native/x/Makefile", "owner", "belongs to another user"),
    ],
)
def test_as_root_it_refuses_what_others_may_change(
    installed: Installed, tmp_path: Path, name: str, change: str, reason: str
) -> None:
    other = checkouts.copy(tmp_path / "theirs/other")
    path = other / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    if change == "owner":
        os.chown(path, NOBODY, NOBODY)
    else:
        path.chmod(path.stat().st_mode | (0o002 if change == "everybody" else 0o020))
        os.chown(path, 0, NOBODY)
    done = installed.start(other, "list")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"qjump-mn: as root, the checkout {other} is not run: ")
    assert f"{path.resolve()} {reason}; " in done.stderr
    assert not list(other.rglob("run.*.pyc")) or change == "group"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_under_sudo_the_callers_checkout_is_run_and_another_users_is_not(
    installed: Installed, tmp_path: Path
) -> None:
    other = checkouts.copy(tmp_path / "other")
    for path in (other, *other.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    assert installed.started(other, SUDO_UID=str(NOBODY)) == str(other)
    assert "belongs to another user" in installed.start(other, SUDO_UID="12345").stderr


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_ordinary_user_is_not_led_into_another_users_checkout(installed: Installed) -> None:
    """In a folder of their own making under /tmp, which is sticky; pytest's folders are root's
    alone."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        theirs = checkouts.copy(Path(folder, "theirs"))
        command = Path(folder, "qjump-mn")
        command.write_text(installed.command.read_text())
        command.chmod(0o755)
        installed.command = command
        for path in (theirs, *theirs.rglob("*")):
            os.chown(path, 12345, 12345)
        done = installed.start(theirs, "list", user=NOBODY)
        assert done.returncode == 3
        assert done.stderr.startswith(
            f"qjump-mn: the checkout {theirs} is not run: {theirs} belongs to another"
        )


def test_a_link_in_the_code_is_as_trusted_as_what_it_leads_to(tmp_path: Path) -> None:
    checkout = checkouts.copy(tmp_path / "checkout")
    target = tmp_path / "elsewhere.py"
    target.write_text("")
    (checkout / "qjump_mn/extra.py").symlink_to(target)
    assert launcher.distrust(str(checkout)) == ""
    target.chmod(0o666)
    assert launcher.distrust(str(checkout)) == f"{target} can be written by every user"
    target.unlink()
    assert launcher.distrust(str(checkout)) == ""
    (checkout / "qjump_mn/more").symlink_to(tmp_path)
    assert launcher.distrust(str(checkout)) == f"{checkout}/qjump_mn/more is a link to a folder"


def test_launcher_distrusts_a_code_folder_that_everybody_may_add_to(tmp_path: Path) -> None:
    """The sticky bit keeps others from replacing a file, not from adding a module that shadows
    one."""
    checkout = checkouts.copy(tmp_path / "checkout")
    for folder in (checkout, checkout / "qjump_mn"):
        folder.chmod(0o1777)
        assert launcher.distrust(str(checkout)) == f"{folder} can be written by every user"
        folder.chmod(0o755)
    assert launcher.distrust(str(checkout)) == ""


def test_last_checkout_has_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin/qjump-mn"
    for name in ("one", "two", "two"):
        if not (tmp_path / name).exists():
            checkouts.copy(tmp_path / name)
        monkeypatch.setattr(environment, "CHECKOUT", tmp_path / name)
        environment.link(command)
    assert f"launch('{tmp_path}/two', " in command.read_text()
    assert list(command.parent.iterdir()) == [command]
