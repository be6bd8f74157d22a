"""What the linters and the type checker say: nothing."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.processes import execute

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "argv", [("ruff", "check", "--quiet", "."), ("mypy",)], ids=lambda argv: argv[0]
)
def test_python(argv: tuple[str, ...]) -> None:
    done = execute([sys.executable, "-m", *argv], cwd=CHECKOUT)
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
    done = execute([shellcheck, *scripts])
    assert done.returncode == 0, done.stdout + done.stderr
