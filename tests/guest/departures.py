"""What qjump-edt lets through in the guest, beside sch_qjump:
tests/guest/qdisc/checks/edt_window.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qjump_mn.guest import Image, Job, Setup, run

CHECKS = Path(__file__).parent / "qdisc/checks"


def measured(image: Image, folder: Path) -> dict[str, Any]:
    """Boot the guest and run the check."""
    script, rig = ((CHECKS / name).read_text() for name in ("edt_window.py", "rig.py"))
    job = Job(script=script, files={"rig.py": rig}, virtual_deadline_s=1000)
    result = run(image, Setup(), job, folder)
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    values: dict[str, Any] = json.loads((folder / "stdout").read_text())
    return values
