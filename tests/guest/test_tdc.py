"""The cases of kmod-patches/tdc, in the format of the kernel's tc-testing: by tdc itself on Linux 6.12, and by a reader of ours on 6.12 and 6.1.

tdc comes out of Debian's package of the kernel's source, and only into the cache.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.guest import Job, Setup, run, toolbox
from tests.guest.test_qdisc import QDISC, SUITES, Guest, kernel_image

CASES = Path(__file__).parents[2] / "kmod-patches/tdc"
FILES = ["qjump.json", "wire.json"]
SOURCE = "linux-source-6.12"
PLACE = "tools/testing/selftests/tc-testing/"
PARTS = ["tdc.py", "tdc_config.py", "tdc_helper.py", "TdcPlugin.py", "TdcResults.py", "plugin-lib/nsPlugin.py"]
# Words of the two tc plugins that a case must have used.
OPTIONS = {
    "qjump.json": "epoch bytes level factor unlimited limit auto packets mode delay drop 2015 epochs rolling first-packet aligned base "
    "priomap overhead mpu",
    "wire.json": "rate limit classify pcp priority fifo overhead delay noorphan",
}


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CASES / name).read_text())
    return found


def runner() -> dict[str, str]:
    """tdc's files by their names in the job; from the cache, or unpacked now out of the package (150 MB, a minute)."""

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            root = Path(scratch, "root")
            argv = ["mmdebstrap", "--variant=extract", f"--include={SOURCE}", "trixie", str(root), *toolbox._mirrors("trixie")]
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode:
                raise MachineError(f"the package {SOURCE} cannot be had:\n{done.stderr[-2000:]}")
            with lzma.open(root / f"usr/src/{SOURCE}.tar.xz") as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
                for member in archive:
                    _, _, name = member.name.partition(f"/{PLACE}")
                    if name in PARTS:
                        data = archive.extractfile(member)
                        assert data is not None
                        (folder / name.replace("/", ":")).write_bytes(data.read())

    try:
        folder = cache.artefact("tdc", cache.hash_of(SOURCE, *PARTS), build, needs_bytes=2 << 30)
    except (MachineError, FileNotFoundError) as error:
        pytest.skip(str(error))
    return {f"tdc:{name}": (folder / name).read_text() for name in (part.replace("/", ":") for part in PARTS)}


def ran(kernel: str, check: str, files: dict[str, str], folder: Path) -> Guest:
    plan = {"checks": [[check, *FILES]], "modules": {}, "others": []}
    mine = [*(QDISC / "checks").glob("rig.py"), *(QDISC / "checks").glob("tdc_*.py"), *(CASES / name for name in FILES)]
    files |= {path.name: path.read_text() for path in mine} | {"plan.json": json.dumps(plan)}
    job = Job(script=(QDISC / "runner.py").read_text(), files=files, virtual_deadline_s=600)
    result = run(kernel_image(kernel), job, folder, setup=Setup())
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    return Guest(kernel, folder, json.loads((folder / "results.json").read_text()))


@pytest.mark.parametrize(("name", "least"), [("qjump.json", 40), ("wire.json", 15)])
def test_there_are_cases_for_every_option(name: str, least: int) -> None:
    words = {word for case in cases(name) for word in case["cmdUnderTest"].split()}
    assert len(cases(name)) >= least
    assert set(OPTIONS[name].split()) - {"pcp"} <= words


def test_ids_are_unique() -> None:
    ids = Counter(case["id"] for name in FILES for case in cases(name))
    assert set(ids.values()) == {1}
    assert all(re.fullmatch("[0-9a-f]{4}", one) for one in ids)


@pytest.mark.guest
def test_tdc_passes_every_case(tmp_path: Path) -> None:
    values = ran("6.12", "tdc_kernel", runner(), tmp_path).values("tdc_kernel")
    verdicts = re.findall(r"^(not ok|ok) \d+ ([0-9a-f]{4}) - .*?(# skipped.*)?$", values["tap"], re.M)
    assert list(re.findall(r"^not ok.*?(?=^ok|\Z)", values["tap"], re.M | re.S)) == [], values["words"]
    assert {one: verdict for verdict, one, skipped in verdicts if not skipped} == {case["id"]: "ok" for name in FILES for case in cases(name)}
    assert values["code"] == 0


@pytest.mark.guest
@pytest.mark.parametrize("kernel", SUITES)
def test_our_reader_passes_every_case_and_finds_nothing_left(kernel: str, tmp_path: Path) -> None:
    guest = ran(kernel, "tdc_cases", {}, tmp_path)
    wrong = {one: words for one, words in guest.values("tdc_cases")["cases"].items() if words}
    assert wrong == {}
    assert len(guest.values("tdc_cases")["cases"]) == sum(len(cases(name)) for name in FILES)
