"""What the environment is made of: an index, or a folder of wheels beside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pip
import pytest

from qjump_mn.errors import MachineError
from qjump_mn.install import environment, installation
from tests.support import checkouts
from tests.support.processes import execute


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a space, whose lock names one small package; the cache is empty."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    (folder / "requirements.lock").write_text(checkouts.small_lock())
    monkeypatch.setattr(environment, "LOCK", folder / "requirements.lock")
    monkeypatch.setattr(environment, "CHECKOUT", folder)
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python of its own that has no pip."""
    venv.create(tmp_path / "bare", symlinks=False, with_pip=False)
    return tmp_path / "bare/bin/python3"


def download(lock: Path, folder: Path) -> None:
    """As docs/machine.md says."""
    argv = [sys.executable, "-m", "pip", "download", "--require-hashes", "--no-deps"]
    argv += ["--only-binary=:all:", "-r", str(lock), "-d", str(folder)]
    subprocess.run(argv, check=True, capture_output=True)


def installed(made: Path) -> list[str]:
    argv = [str(made / "bin/python"), "-I", "-m", "pip", "list", "--format=freeze"]
    packages = execute(argv, check=True).stdout
    names = [line.partition("=")[0] for line in packages.splitlines()]
    return [name for name in names if name != "setuptools"]  # Python 3.11's venv has it


@pytest.mark.slow
@pytest.mark.parametrize("where", ["a checkout", "."])
@pytest.mark.parametrize("has_ensurepip", [True, False])
def test_environment_is_made_of_a_folder_of_wheels_alone(
    where: str, has_ensurepip: bool, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / where / installation.WHEELS
    download(environment.LOCK, wheels)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    if not has_ensurepip:
        monkeypatch.setattr(installation, "find_spec", lambda name: None)
    said: list[str] = []
    made = environment.build(said.append)
    assert installed(made) == ["msgspec", "pip"] and not (made / "downloads").exists()
    assert f"takes the wheels from {wheels.resolve()}" in said

    for path in wheels.glob("msgspec-*"):
        path.unlink()
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "empty"))
    with pytest.raises(
        MachineError, match=r"could not be made \(ERROR: No matching distribution found for m"
    ):
        environment.build()


@pytest.mark.slow
def test_pip_takes_wheels_from_where_its_variables_say(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    download(environment.LOCK, tmp_path / "elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "elsewhere"))
    assert installed(environment.build()) == ["msgspec", "pip"]


@pytest.mark.slow
@pytest.mark.parametrize("has_ensurepip", [True, False])
def test_environment_is_made_of_the_index(
    has_ensurepip: bool, checkout: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ensurepip:
        monkeypatch.setattr(installation, "find_spec", lambda name: None)
        monkeypatch.setattr(sys, "executable", str(bare))
        theirs = next(bare.parents[1].glob("lib/python3*/site-packages"))
        shutil.copytree(Path(pip.__file__).parent, theirs / "pip")
    assert installed(environment.build()) == ["msgspec", "pip"]


def test_changed_pip_among_the_wheels_never_runs(checkout: Path) -> None:
    wheels = checkout / installation.WHEELS
    wheels.mkdir()
    (wheels / "pip-26.3-py3-none-any.whl").write_bytes(b"changed")
    assert installation._pip_among(wheels, environment.LOCK) is None


def test_python_without_any_pip_is_one_sentence(bare: Path) -> None:
    with pytest.raises(
        MachineError, match=r"has neither ensurepip nor pip: install Debian's python3-venv, or p"
    ):
        installation._pip_of(str(bare))


def test_killed_pip_leaves_no_environment(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies in the middle of pip; the next one makes the environment anew."""
    code = (
        "import os\nfrom pathlib import Path\nfrom qjump_mn.install import environment, "
        f"installation\nenvironment.LOCK = Path({str(environment.LOCK)!r})\nenvironment.CHECKOUT = "
        "environment.LOCK.parent\ndef die(argv, output, lock, downloads):\n    (downloads.parent "
        "/ 'bin').mkdir()\n    os.kill(os.getpid(), 9)\ninstallation._logged = "
        "die\nenvironment.build()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(installation.__file__).parents[2], check=False
    )
    kind = Path(os.environ["QJUMP_MN_CACHE"], "environment")
    assert done.returncode == -9 and [path for path in kind.iterdir() if path.is_dir()]
    assert environment.find() is None

    def fill(argv: list[str], output: object, lock: int, downloads: Path) -> int:
        (downloads.parent / "bin").mkdir(exist_ok=True)
        (downloads.parent / "bin/python").symlink_to(sys.executable)
        return 0

    monkeypatch.setattr(installation, "_logged", fill)
    monkeypatch.setattr(installation, "_commands", lambda *_: [["venv"]])
    made = environment.build()
    assert environment.find() == made
    assert [path for path in kind.iterdir() if path.is_dir()] == [made], (
        "the first one's folder is gone"
    )
