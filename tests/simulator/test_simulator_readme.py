"""The examples of the simulator's Python package, as a type checker of its users sees them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.support.processes import execute

PYTHON = Path(__file__).resolve().parents[2] / "simulator" / "python"


def test_the_readmes_examples_have_types(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (PYTHON / "README.md").read_text(), re.DOTALL)
    assert examples
    (tmp_path / "examples.py").write_text("\n".join(examples))
    done = execute(
        [sys.executable, "-m", "mypy", "--strict", "examples.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(PYTHON / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
