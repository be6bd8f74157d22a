"""What the linters and the type checker say: nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "argv", [("ruff", "check", "--quiet", "."), ("mypy",)], ids=lambda argv: argv[0]
)
def test_python(argv: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *argv], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_shell() -> None:
    shellcheck = shutil.which("shellcheck")
    if not shellcheck:
        pytest.skip("shellcheck is not installed; bootstrap test installs it")
    scripts = [
        CHECKOUT / "bootstrap",
        CHECKOUT / ".ci" / "run",
        *CHECKOUT.glob("qjump_mn/**/*.sh"),
        *CHECKOUT.glob("kmod-patches/**/*.sh"),
    ]
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
