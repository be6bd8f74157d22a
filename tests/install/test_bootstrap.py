"""bootstrap: what it installs, what it says, and what it starts; with apt-get and id played by
scripts, all else real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qjump_mn.install import environment
from qjump_mn.toolbox.machines import LockedFile, MachineLock
from tests.support import checkouts
from tests.support.processes import execute

# Every program that bootstrap calls; what is not in the folder on PATH is not on the machine.
PROGRAMS = "sh dirname readlink id sed grep mkdir flock head tail sleep mount unshare gpg mmdebstrap shellcheck gcc make rsync cat date touch env uname wc".split()
PLAYED = ("id", "mmdebstrap", "gpg", "shellcheck", "gcc", "make", "rsync")

if (
    not os.access("/usr/bin/python3", os.X_OK)
    or not Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists()
):
    pytest.skip("not a machine that bootstrap has prepared", allow_module_level=True)


class Machine:
    """A checkout, a cache, and a PATH of which every program is known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = checkouts.copy(folder / "a check-out")
        self.cache = checkouts.warm_cache(folder / "cache")
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in PROGRAMS:
            found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
            if found and name not in PLAYED:
                (self.programs / name).symlink_to(found)
        for name in ("mmdebstrap", "gpg", "shellcheck", "gcc", "make", "rsync"):
            self.play(name, "")
        self.play("id", "echo 0")

    def play(self, name: str, script: str) -> None:
        """Put a program of this name on the machine."""
        program = self.programs / name
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def lack(self, name: str) -> None:
        """Take a program off the machine; apt-get, when it is asked to, puts it back and writes
        down how it was called."""
        (self.programs / name).unlink()
        self.play(
            "apt-get",
            f"""echo "$* [$DEBIAN_FRONTEND] $(umask)" >>'{self.folder}/apt'
            case $1 in install) echo Setting up; echo '#!/bin/sh' >'{self.programs}/{name}'; {shutil.which("chmod")} 755 '{self.programs}/{name}' ;; esac""",
        )

    def start(
        self,
        *arguments: str,
        program: str | Path | None = None,
        cwd: Path = Path("/"),
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Start bootstrap as a user would: with Ctrl-C heeded, even if the tests themselves run in
        some shell's background."""
        return subprocess.Popen(
            ["/usr/bin/env", "--default-signal=INT", program or self.checkout / "bootstrap", *arguments],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={"PATH": str(self.programs), "HOME": str(self.folder), "QJUMP_MN_CACHE": str(self.cache), **variables},
        )  # fmt: skip

    def run(
        self,
        *arguments: str,
        program: str | Path | None = None,
        cwd: Path = Path("/"),
        **variables: str,
    ) -> tuple[int, str, str]:
        """Run it to its end: exit code, output, messages."""
        process = self.start(*arguments, program=program, cwd=cwd, **variables)
        output, messages = process.communicate(timeout=120)
        return process.returncode, output, messages

    def apt_calls(self) -> list[str]:
        """How apt-get was called."""
        calls = self.folder / "apt"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    # The launcher of the machine that the tests run on is not theirs to change.
    source = made.checkout / "qjump_mn" / "install/environment.py"
    source.write_text(
        source.read_text().replace(
            '"/usr/local/bin/qjump-mn"', repr(str(tmp_path / "local" / "qjump-mn"))
        )
    )
    return made


def test_help_is_printed_and_nothing_done(machine: Machine) -> None:
    code, output, _ = machine.run("--help")
    assert code == 0
    assert output.startswith("usage: ./bootstrap")
    assert not (machine.folder / "local").exists()


def test_an_option_where_the_experiment_belongs_is_a_usage_error(machine: Machine) -> None:
    code, _, messages = machine.run("--preset", "smoke", "fig3a")
    assert code == 2
    assert "there is no option --preset before the name" in messages


def test_with_everything_there_it_only_starts_the_command(machine: Machine, tmp_path: Path) -> None:
    code, output, messages = machine.run(
        "fig3a", "--out", "two words", "-s", "link.rate=100Mbit", cwd=tmp_path
    )
    assert (code, messages) == (0, "")
    assert checkouts.said(output)["argv"] == [
        "fig3a",
        "--out",
        "two words",
        "-s",
        "link.rate=100Mbit",
    ]
    assert str(checkouts.said(output)["cwd"]) == str(tmp_path)


@pytest.mark.parametrize("called", ["link", "relative"])
def test_it_finds_its_checkout_however_it_is_called(machine: Machine, called: str) -> None:
    if called == "link":
        link = machine.folder / "elsewhere"
        link.symlink_to(machine.checkout / "bootstrap")
        code, output, _ = machine.run("list", program=link)
    else:
        code, output, _ = machine.run("list", program="../a check-out/bootstrap", cwd=machine.cache)
    assert code == 0
    assert checkouts.said(output)["path"][0] == str(machine.checkout)


def without_pip(machine: Machine) -> None:
    """Put the system's Python in the place of one that has no pip until apt-get installs it."""
    python, installed = machine.folder / "python3", machine.folder / "installed"
    python.write_text(
        f"#!/bin/sh\ncase $* in *'import ensurepip'* | *'import pip'*) test -e '{installed}' ;; "
        '*) exec /usr/bin/python3 "$@" ;; esac\n'
    )
    python.chmod(0o755)
    script = machine.checkout / "bootstrap"
    script.write_text(script.read_text().replace("/usr/bin/python3 ", f"'{python}' "))
    machine.play(
        "apt-get",
        f"echo \"$*\" >>'{machine.folder}/apt'; case $1 in install) : >'{installed}' ;; esac",
    )


def test_a_python_without_pip_gets_it(machine: Machine) -> None:
    without_pip(machine)
    code, output, messages = machine.run("list")
    assert (code, checkouts.said(output)["argv"]) == (0, ["list"])
    assert "installs python3-venv" in messages
    assert [call.split()[-1] for call in machine.apt_calls()] == ["update", "python3-venv"]


@pytest.mark.parametrize("where", [".", ".."])
def test_with_a_folder_of_wheels_no_pip_is_missing(machine: Machine, where: str) -> None:
    without_pip(machine)
    wheels = machine.checkout / where / "qjump-mn-wheels"
    wheels.mkdir()
    (wheels / "pip-26.3-py3-none-any.whl").touch()
    code, _, messages = machine.run("list")
    assert (code, messages, machine.apt_calls()) == (0, "", [])


@pytest.mark.parametrize(
    "where", ["named", "in the checkout", "beside the checkout", "taken before", "nowhere"]
)
def test_with_a_machine_file_nothing_of_a_mirror_is_missing(machine: Machine, where: str) -> None:
    name = "0" * 64
    (machine.checkout / "qjump_mn/toolbox").mkdir(exist_ok=True)
    files = {
        os.uname().machine: LockedFile(sha256=name, size_bytes=7),
        "other": LockedFile(sha256="1", size_bytes=8),
    }
    lock = MachineLock(files=files, made_of={}, image="")
    path = machine.checkout / "qjump_mn/toolbox/machine.lock"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(lock, order="sorted"), indent=1))
    (machine.checkout / "qjump-mn-machine-other.tar.xz").write_bytes(b"12345678")
    machine.lack("mmdebstrap")
    if where == "nowhere":
        assert "installs mmdebstrap" in machine.run("fig3a")[2]
        return
    named = "https://somewhere/machine" if where == "named" else ""
    match where:
        case "in the checkout":
            (machine.checkout / "qjump-mn-machine-1.tar.xz").write_bytes(b"1234567")
        case "beside the checkout":
            (machine.checkout.parent / "qjump-mn-machine.tar.xz").write_bytes(b"1234567")
        case "taken before":
            (machine.cache / "machine" / name).mkdir(parents=True)
    code, output, messages = machine.run("fig3a", QJUMP_MN_MACHINE=named)
    assert (code, messages, machine.apt_calls()) == (0, "", [])
    assert checkouts.said(output)["argv"] == ["fig3a"]
    assert "mmdebstrap" in machine.run("test", QJUMP_MN_MACHINE=named)[2]  # tests build everything


def test_where_nothing_can_be_built_nothing_is_installed_for_it(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    machine.play("uname", "echo aarch64")
    assert machine.run("fig3a")[0] == 0 and not machine.apt_calls()


def test_what_is_missing_is_installed_without_a_question(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    code, output, messages = machine.run("fig3a")
    assert code == 0, messages
    assert "installs mmdebstrap (about a minute)" in messages
    assert "first time" not in messages  # the environment is there
    update, install = machine.apt_calls()
    assert update == "update [noninteractive] 0022"
    assert install.startswith(
        "install -y --no-install-recommends -o DPkg::Lock::Timeout=600 mmdebstrap [noninteractive]"
    )
    assert checkouts.said(output)["argv"] == ["fig3a"]
    machine.run("fig3a")
    assert len(machine.apt_calls()) == 2  # nothing more to do


def test_the_tests_want_shellcheck_too(machine: Machine) -> None:
    machine.lack("shellcheck")
    machine.run("fig3a")
    assert machine.apt_calls() == []
    machine.run("test", "--version")
    assert " shellcheck [" in machine.apt_calls()[1]


@pytest.mark.parametrize("offered", [True, False], ids=["Debian", "Ubuntu"])
def test_tests_get_a_browser_where_apt_has_one(machine: Machine, offered: bool) -> None:
    """Ubuntu's is a snap: the tests of pages skip there, and nothing is missing."""
    machine.lack("shellcheck")
    machine.play("apt-cache", f"exit {0 if offered else 100}")
    code, _, _ = machine.run("test", "--version")
    assert code == 0
    assert (" shellcheck chromium [" in machine.apt_calls()[1]) is offered


def play_sudo(machine: Machine) -> Path:
    """Be an ordinary user with a sudo, which writes down how it was called and makes its command
    root's; the file that it writes to."""
    machine.play("id", f"[ -e '{machine.folder}/is-root' ] && echo 0 || echo 1000")
    touch, rm = f"'{machine.programs}/touch'", shutil.which("rm")
    machine.play(
        "sudo",
        f"""echo "$*" >>'{machine.folder}/sudo'
        {touch} '{machine.folder}/is-root'
        "$@"; code=$?
        {rm} '{machine.folder}/is-root'
        exit $code""",
    )
    return machine.folder / "sudo"


def test_neither_root_nor_sudo_is_one_sentence(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    machine.play("id", "echo 1000")
    code, _, messages = machine.run("fig3a", "--preset", "smoke")
    assert code == 3
    assert messages == (
        "bootstrap: installing mmdebstrap needs root, and this machine has no sudo: run  "
        f"{machine.checkout}/bootstrap  as root, or get a machine file (docs/machine.md)\n"
    )
    assert machine.apt_calls() == []


def test_an_ordinary_user_calls_sudo_for_packages_only(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    calls = play_sudo(machine)
    code, output, messages = machine.run("fig3a", "-s", "a b", QJUMP_MN_MIRROR="https://mirror/a b")
    assert code == 0, messages
    assert messages.startswith("bootstrap: installing mmdebstrap needs root: calls sudo\n")
    (call,) = calls.read_text().splitlines()
    assert call.startswith("env ") and call.endswith(f" {machine.checkout}/bootstrap --prepare")
    assert f"QJUMP_MN_CACHE={machine.cache}" in call
    assert "QJUMP_MN_MIRROR=https://mirror/a b" in call
    assert [line.split()[0] for line in machine.apt_calls()] == ["update", "install"]
    assert checkouts.said(output)["argv"] == ["fig3a", "-s", "a b"]


def test_where_nothing_is_missing_sudo_is_not_called(machine: Machine) -> None:
    calls = play_sudo(machine)
    assert machine.run("fig3a")[0] == 0 and not calls.exists()


def test_the_tests_run_as_root_by_sudo(machine: Machine) -> None:
    calls = play_sudo(machine)
    machine.lack("shellcheck")
    (machine.checkout / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\ntestpaths = ['tests']\n"
    )
    (machine.checkout / "tests").mkdir()
    (machine.checkout / "tests/test_stub.py").write_text("def test_fails(): assert False\n")
    code, output, messages = machine.run("test", "-q", CI="true")
    assert code == 1 and "1 failed" in output
    assert "bootstrap: running the tests needs root: calls sudo\n" in messages
    (call,) = calls.read_text().splitlines()
    assert " CI=true " in call and call.endswith("/bootstrap test -q")


def test_a_sudo_that_refuses_is_one_sentence(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    machine.play("id", "echo 1000")
    machine.play("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    code, _, messages = machine.run("fig3a")
    assert code == 3 and messages.splitlines()[1:] == [
        "sudo: a password is required",
        f"bootstrap: sudo did not allow it: run  {machine.checkout}/bootstrap  as root",
    ]


def test_a_run_that_needs_the_machine_has_root_build_it(machine: Machine) -> None:
    """Bootstrap tells the command that there is a sudo; toolbox/make_tree.py then calls this."""
    calls = play_sudo(machine)
    code, output, messages = machine.run("--by-sudo", "machine", "build", "--newest")
    assert code == 0, messages
    assert messages == "bootstrap: building the virtual machine needs root: calls sudo\n"
    assert checkouts.said(output)["argv"] == ["machine", "build", "--newest"]
    assert calls.read_text().endswith("/bootstrap machine build --newest\n")


def test_alone_it_builds_the_machine_before_doctor(machine: Machine) -> None:
    machine.play("uname", "echo x86_64")
    _, output, messages = machine.run()
    assert json.loads(messages)["argv"] == ["machine", "build"]
    assert json.loads(output)["argv"] == ["doctor"]


def test_another_distribution_is_told_what_to_install(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    (machine.programs / "apt-get").unlink()
    code, _, messages = machine.run("fig3a")
    assert code == 3
    assert "neither Debian nor Ubuntu" in messages


def test_when_apt_fails_its_error_and_its_log_are_named(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    machine.play(
        "apt-get",
        "echo Reading lists; echo 'E: Unable to locate package mmdebstrap'; [ $1 = update ] || "
        "exit 100",
    )
    code, output, messages = machine.run("fig3a")
    assert (code, output) == (3, "")
    log = machine.cache / "apt.log"
    assert messages.splitlines()[-2:] == [
        "E: Unable to locate package mmdebstrap",
        f"bootstrap: apt-get could not install mmdebstrap; all it said is in {log}",
    ]
    assert "Reading lists" in log.read_text()


def test_it_waits_for_whoever_holds_the_package_lists(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    apt = machine.programs / "apt-get"
    apt.rename(machine.programs / "free-apt-get")
    tried = machine.folder / "tried"
    machine.play(
        "apt-get",
        f"[ -e '{tried}' ] && exec free-apt-get \"$@\"; : >'{tried}'; echo 'E: Could not get lock "
        "/x'; exit 100",
    )
    code, _, messages = machine.run("fig3a")
    assert code == 0, messages
    assert "waits for another program that uses apt" in messages


def test_a_dpkg_that_was_interrupted_is_mended(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    apt = machine.programs / "apt-get"
    apt.rename(machine.programs / "mended-apt-get")
    mended = machine.folder / "mended"
    refusal = (
        "echo \"E: dpkg was interrupted, you must manually run 'dpkg --configure -a'\"; exit 100"
    )
    machine.play(
        "apt-get",
        f"[ $1 = update ] || [ -e '{mended}' ] || {{ {refusal}; }}; exec mended-apt-get \"$@\"",
    )
    machine.play("dpkg", f"[ \"$*\" = '--configure -a' ] && : >'{mended}'")
    code, _, messages = machine.run("fig3a")
    assert code == 0, messages
    assert mended.exists()


def test_two_at_once_install_once(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    apt = machine.programs / "apt-get"
    apt.rename(machine.programs / "real-apt-get")
    go = machine.folder / "go"
    machine.play("apt-get", f"until [ -e '{go}' ]; do sleep .02; done; exec real-apt-get \"$@\"")
    first, second = machine.start("fig3a"), machine.start("fig3a")
    waiting = next(
        process for process in (first, second) if _says(process, "waits for another bootstrap")
    )
    assert waiting
    go.touch()
    for process in (first, second):
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert len(machine.apt_calls()) == 2


def test_interrupted_while_apt_works_it_ends_with_130(machine: Machine) -> None:
    machine.lack("mmdebstrap")
    began = machine.folder / "began"
    machine.play("apt-get", f": >'{began}'; exec sleep 60")  # exec: a vforking dash loses a SIGINT
    process = machine.start("fig3a")
    while process.poll() is None and not began.exists():
        pass
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
    process.communicate(timeout=20)
    assert process.returncode == 130


def _says(process: subprocess.Popen[str], sentence: str) -> bool:
    """Whether the process says so before it says that it reads the package lists, which only one of
    two does."""
    assert process.stderr
    for line in process.stderr:
        if sentence in line:
            return True
        if "reads the package lists" in line:
            return False
    return False


@pytest.mark.parametrize("lacking", [True, False])
def test_a_cache_that_cannot_be_written_is_one_sentence(machine: Machine, lacking: bool) -> None:
    if lacking:
        machine.lack("mmdebstrap")
    code, _, messages = machine.run("fig3a", QJUMP_MN_CACHE="/proc/cache")
    assert code == 3
    assert "QJUMP_MN_CACHE" in messages
    assert "Traceback" not in messages


def test_a_colon_in_the_path_is_refused(tmp_path: Path) -> None:
    checkout = checkouts.copy(tmp_path / "a:b")
    done = execute([checkout / "bootstrap", "list"])
    assert done.returncode == 3
    assert "has a colon in its path" in done.stderr


@pytest.mark.slow
def test_environment_is_made_once_and_again_after_interrupts(machine: Machine) -> None:
    (machine.checkout / "requirements.lock").write_text(checkouts.small_lock())
    machine.cache = machine.folder / "empty cache"
    online = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_", "REQUESTS_"))
    }

    def tree() -> list[Path]:
        return sorted(
            (machine.cache / "environment").glob("*.tmp-*/lib/python3*/site-packages/pip")
        )

    stopped = machine.start("list", program=None, cwd=Path("/"), **online)
    while stopped.poll() is None and not tree():
        pass
    os.killpg(stopped.pid, signal.SIGINT)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert not tree()

    interrupted = machine.start("list", program=None, cwd=Path("/"), **online)
    while interrupted.poll() is None and not tree():
        pass
    interrupted.kill()
    interrupted.communicate()
    assert tree()

    both = [
        machine.start("list", program=None, cwd=Path("/"), **online),
        machine.start("list", program=None, cwd=Path("/"), **online),
    ]
    told = [process.communicate(timeout=180) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    environments = [path for path in (machine.cache / "environment").iterdir() if path.is_dir()]
    assert len(environments) == 1
    assert {str(checkouts.said(output)["prefix"]) for output, _ in told} == {str(environments[0])}
    assert sum("waiting for another qjump-mn" in messages for _, messages in told) == 1
    scripts = {path.name for path in (environments[0] / "bin").iterdir()}
    assert all(name.startswith("python") for name in scripts)


def test_the_lock_names_no_host_and_fits_this_python() -> None:
    lock = environment.LOCK.read_text()
    assert "://" not in lock
    assert "--index" not in lock
    named = "msgspec typer rich numpy pyarrow matplotlib jinja2 pytest mypy ruff"
    for requirement in named.split():
        assert f"\n{requirement}==" in lock
    assert sys.version_info >= environment.OLDEST
