"""Run one of tests/guest/qdisc/checks in the guest, where code takes no time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qjump_mn.guest import Image, Job, Setup, run

CHECKS = Path(__file__).parent / "qdisc/checks"


def measured(image: Image, folder: Path, check: str = "edt_window") -> dict[str, Any]:
    """Boot the guest and run the check; return what it reported."""
    script, rig = ((CHECKS / name).read_text() for name in (f"{check}.py", "rig.py"))
    job = Job(script=script, files={"rig.py": rig}, virtual_deadline_s=1000)
    result = run(image, Setup(), job, folder)
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    values: dict[str, Any] = json.loads((folder / "stdout").read_text())
    return values
