"""What kmod-patches/series adds to the kernel and to iproute2, at work in a guest: the selftest,
ynl by the specification, and the cases for tdc with the tc that is built of the series."""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from upstream import kernel

from qjump_mn.toolbox import Tree
from qjump_mn.toolbox.cpio import Node
from tests.guest import trees
from tests.guest.checks import EXPECTED_LOG, QDISC, Guest
from tests.guest.patched import AUTHOR, SOURCES
from tests.guest.vm import Job, Setup, prepare, run
from tests.guest.vm.modules import MODULES

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

SELFTEST_FILES = ("tools/testing/selftests/net/lib/py", "tools/net/ynl/pyynl")
LICENCE = "# SPDX-License-Identifier: GPL-2.0"  # ynl wants one in the first line
YAML = """import json
class SafeLoader: pass
def load(stream, Loader=None): return json.loads(stream.read().partition("\\n")[2])
"""
AS_JSON = "import json, sys, yaml; json.dump(yaml.safe_load(open('tc.yaml')), open('tc.json', 'w'))"


def archive(tools: Tree, source: Path, tc: Path, folder: Path) -> bytes:
    """What the guest needs of both trees. It has no PyYAML, so that there the specification is
    JSON."""
    made = kernel.series(source, SOURCES, AUTHOR).patches
    texts = {name: text for patch in made for name, text in patch.files.items()}
    (folder / "tc.yaml").write_text(texts[kernel.SPEC])
    tools.run(["python3", "-c", AS_JSON], folder)
    texts = {name: texts[name] for name in (kernel.SELFTEST, kernel.CASES)}
    texts |= {kernel.SPEC: f"{LICENCE}\n{(folder / 'tc.json').read_text()}", "python/yaml.py": YAML}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name in SELFTEST_FILES:
            kept = lambda entry: None if "__pycache__" in entry.name else entry  # noqa: E731
            tar.add(source / name, name, filter=kept)
        tar.add(tc / "source/tc/tc", "bin/tc")
    return packed.getvalue()


@pytest.fixture(scope="module")
def guest(tools: Tree, source: Path, tc: Path, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    folder, checks = tmp_path_factory.mktemp("guest"), QDISC / "checks"
    packed = archive(tools, source, tc, tmp_path_factory.mktemp("archive"))
    trees.toolbox()
    image = prepare(print, extra={"opt/series.tar": Node.file(packed)})
    names = ("rig.py", "series_tools.py", "tdc_cases.py")
    files = {name: (checks / name).read_text() for name in names}
    plan = {"checks": [["series_tools", "qjump.json"]], "data": {}, "others": MODULES}
    files |= {"plan.json": json.dumps(plan), "qjump.json": kernel.cases(SOURCES)}
    job = Job(script=(QDISC / "runner.py").read_text(), files=files, virtual_deadline_s=900)
    run(image, Setup(), job, folder)
    return Guest.read("6.12", folder)


@pytest.fixture(scope="module")
def values(guest: Guest) -> dict[str, Any]:
    return guest.values("series_tools")


def test_the_selftest_passes(values: dict[str, Any]) -> None:
    code, tap = values["selftest"]
    assert code == 0, tap
    assert len(re.findall(r"^ok \d+ ", tap, re.M)) == 8 and "not ok" not in tap, tap


def test_ynl_makes_and_reads_a_qdisc(values: dict[str, Any]) -> None:
    options, stats = values["ynl"]["options"], values["ynl"]["stats"]
    given = {"epoch": 1_000_000, "slack": 5_000_000_000, "overhead": 0}
    assert given.items() <= options.items()
    assert [level["budget"] for level in options["level"]] == [0, 0, 0, 9000, 0, 0, 0, 1550]
    assert [level["limit"] for level in options["level"]] == [1000] * 3 + [10] + [1000] * 4
    assert [level["index"] for level in stats["level"]] == list(range(8))
    names = "index packets bytes drops oversize throttled qlen backlog"
    assert set(stats["level"][0]) == set(names.split())


def test_the_cases_pass_with_the_tc_of_the_series(values: dict[str, Any], guest: Guest) -> None:
    said, errors = values["cases"]
    assert errors == ""
    outcome = json.loads(said)["cases"]
    assert {one: words for one, words in outcome.items() if words} == {}
    assert list(outcome) == [case["id"] for case in json.loads(kernel.cases(SOURCES))]
    assert set(guest.results["log"]) <= EXPECTED_LOG
