"""Measure pings and senders on the links of mininet-qos, in Figure 3a's network. Print a Markdown
table.

    python bench/mininet_qos.py [--write]

`--write` replaces the table in mininet-qos/README.md, with which
tests/guest/test_mininet_networks.py compares. The jobs of tests/guest/mininet_jobs run in the
guest, with Debian's Mininet and Open vSwitch, and the package as pip would install it.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from qjump_mn.guest import Image, Job, Setup, prepare, run
from qjump_mn.steps import openvswitch

ROOT = Path(__file__).parent.parent
PACKAGE, JOBS = ROOT / "mininet-qos", ROOT / "tests/guest/mininet_jobs"
README = PACKAGE / "README.md"
MARKS = "mininet_qos"
Results = dict[str, Any]


def main() -> None:
    """Measure, print and, if asked, write."""
    image = prepare(print)
    with tempfile.TemporaryDirectory() as scratch:
        text = table(measured("figure3a", image, Path(scratch)))
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(README, MARKS, text)


def measured(job: str, image: Image, out: Path) -> Results:
    """Return what a job of ``JOBS`` leaves in ``out``, from a guest that has only booted."""
    with tempfile.TemporaryDirectory() as scratch:
        package = modules(wheel(Path(scratch)))
    files = {
        "stage.py": (JOBS / "stage.py").read_text(),
        "package.json": json.dumps(package),
        "lines.py": lines(),
        "openvswitch.json": msgspec.json.encode(openvswitch.start()).decode(),
    }
    script = (JOBS / f"{job}.py").read_text()
    result = run(
        image,
        Setup(),
        Job(script=script, files=files, virtual_deadline_s=1000),
        out,
        progress=print,
    )
    assert result.exit_code == 0, (out / "stderr").read_text()
    results: Results = json.loads((out / "results.json").read_text())
    return results


def wheel(folder: Path) -> Path:
    """Build the package's wheel in ``folder`` without a network."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    subprocess.run(
        [*pip, "wheel", *options, str(PACKAGE)], check=True, capture_output=True, text=True
    )
    (built,) = folder.glob("*.whl")
    return built


def modules(built: Path) -> dict[str, str]:
    """Return a wheel's modules by path, without its description, which has this table."""
    with zipfile.ZipFile(built) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name).decode() for name in names}


def lines() -> str:
    """Return the README's first Python box: Figure 3a's network."""
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found, f"{README} has no Python"
    return found[1]


def table(results: Results) -> str:
    """Return the table, with a row for each kind of link; round trips in ms, senders in Mb/s."""
    rows = [
        "| links, 10 Mb/s | idle | urgent beside TCP, median | its maximum | other, median "
        "| three senders, Mb/s (each wants 9.6) |",
        "|---|---|---|---|---|---|",
    ]
    for name, shows in results.items():
        times = [
            statistics.median(shows["idle"]),
            statistics.median(shows["urgent"]),
            max(shows["urgent"]),
            statistics.median(shows["other"]),
        ]
        cells = [
            *(f"{ms:.2f} ms" for ms in times),
            ", ".join(f"{mbps:.1f}" for mbps in shows["offered"]),
        ]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
