"""README's command on a bare Debian 12, as in a container: root, and nothing installed, not even
sudo."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from qjump_mn.toolbox import checkout, mirrors
from tests.support.processes import execute

pytestmark = [pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(1800)]
SUITE = "bookworm"
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/apt/apt.conf.d", "/etc/apt/auth.conf.d")
"""What of this machine says how its network is reached."""
CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
CERTIFICATE = "srv/certificates.pem"
"""A copy of this machine's, where the package ca-certificates writes nothing."""
ENTER = """
mount --make-rprivate /
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""


class Bare:
    """A system in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def bootstrap(
        self, *words: str, columns: int = 80, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Call bootstrap as root, with a pipe for a terminal."""
        values = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "COLUMNS": str(columns),
            **{name: f"/{CERTIFICATE}" for name in CERTIFICATES if name in os.environ},
            **{name: os.environ[name] for name in ("PIP_INDEX_URL",) if name in os.environ},
        }
        settings = [f"{name}={value}" for name, value in (values | variables).items()]
        return execute(
            [
                *(*"unshare --mount --pid --fork --kill-child sh -e -c".split(), ENTER, "sh"),
                *("env", "-i", *settings, "/srv/qjump-mn/bootstrap", *words),
            ],
            env={**os.environ, "root": str(self.root)},
        )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    root = tmp_path_factory.mktemp("bare") / "root"
    lines = [line for line in mirrors.lines(SUITE) if f"{SUITE} main" in line]
    argv = ["mmdebstrap", "--quiet", "--variant=apt", SUITE, str(root), *lines]
    done = execute(argv)
    if done.returncode:
        pytest.skip(f"Debian 12 cannot be had: {done.stderr.strip().splitlines()[-1]}")
    for name in filter(None, map(os.environ.get, CERTIFICATES)):
        shutil.copyfile(name, root / CERTIFICATE)
    for name in NETWORK:
        path, target = Path(name), root / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        elif path.is_file():
            shutil.copyfile(path, target)
    checkout.copy(root / "srv/qjump-mn")
    yield Bare(root)
    shutil.rmtree(root)


def test_there_is_no_sudo_and_the_first_command_works(bare: Bare) -> None:
    assert not (bare.root / "usr/bin/sudo").exists()
    assert not (bare.root / "usr/bin/python3").exists()
    done = bare.bootstrap("list")
    assert done.returncode == 0, done.stdout + done.stderr
    first, *others = done.stderr.splitlines()
    assert first.startswith("bootstrap: first time on this machine: about ")
    assert all(line.startswith("bootstrap: ") for line in others)
    assert "fig3a" in done.stdout and "\x1b" not in done.stdout + done.stderr
    assert (bare.root / "usr/local/bin/qjump-mn").exists()


def test_an_ordinary_user_without_sudo_is_told_what_is_missing(bare: Bare) -> None:
    """Of the system that the first test left, with its environment."""
    shutil.rmtree(bare.root / "var/cache/qjump-mn/toolbox", ignore_errors=True)
    script = "exec setpriv --reuid 12345 --regid 12345 --clear-groups /srv/qjump-mn/bootstrap fig3a --out /tmp/out"
    (bare.root / "srv/as-user").write_text(f"#!/bin/sh\n{script}\n")
    (bare.root / "srv/as-user").chmod(0o755)
    inside = [*"unshare --mount sh -e -c".split(), ENTER, *"sh env -i PATH=/usr/bin:/bin".split()]
    values = ["HOME=/tmp/home"]
    done = execute([*inside, *values, "/srv/as-user"], env={**os.environ, "root": str(bare.root)})
    assert done.returncode == 3, done.stdout + done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "qjump-mn: the virtual machine must be built once by root: run  /srv/qjump-mn/bootstrap"
    )
