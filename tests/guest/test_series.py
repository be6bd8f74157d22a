"""kmod-patches/series: the patches apply to Debian's source of Linux 7.x and of iproute2, build
there, please checkpatch, and are read by the tools that they are for; in a guest, what they add
works.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from upstream import cover, iproute2, kernel, single, spec

from qjump_mn.toolbox import Tree
from tests.guest.patched import AUTHOR, SOURCES, applied, written

CHECKOUT = Path(__file__).resolve().parents[2]
HEADER = SOURCES / "include/pkt_sched_qjump.h"
STRICT = ["--strict", "--terse", "--no-summary"]
# tc is C of user space, and in iproute2's MAINTAINERS there are no files of single qdiscs.
NOT_FOR_TC = ["--no-tree", "--ignore", "PREFER_KERNEL_TYPES,FILE_PATH_CHANGES"]


@pytest.fixture(scope="module")
def patched(
    source: Path, patches: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A copy of the kernel's tree with the series in it."""
    folder = tmp_path_factory.mktemp("patched")
    subprocess.run(["cp", "-a", str(source), str(folder / "source")], check=True)
    applied(patches, folder / "source")
    yield folder
    shutil.rmtree(folder)


def test_the_same_sources_and_tree_give_the_same_bytes(
    source: Path, patches: list[Path], tmp_path: Path
) -> None:
    again = written(source, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in patches]
    assert [path.name[:4] for path in patches] == ["0000", "0001", "0002", "0003", "0004"]


def test_nothing_is_left_that_is_for_building_outside_of_a_tree(
    patches: list[Path], tc_patches: list[Path]
) -> None:
    text = "".join(path.read_text() for path in [*patches[1:], *tc_patches[1:]])
    words = "HAVE_ compat KERNEL_VERSION module_param qjump2015 split_gso docs/ fork NLA_U64"
    names = ("in every version", "type: u64", '"plugin.h"', "pkt_sched_qjump.h")
    assert [word for word in (*words.split(), *names) if word in text] == []


def test_the_module_of_the_series_is_that_of_the_checkout() -> None:
    """Line for line, but for local headers."""
    made = kernel.module(SOURCES)
    for old, new in kernel._OWN_NAMES.items():
        made = made.replace(new, old)
    mine = (SOURCES / "sch_qjump.c").read_text().splitlines()
    kept = {line for line in mine if not line.startswith('#include "')}
    assert kept - set(made.splitlines()) == set()
    assert len(mine) <= 500 and len(made.splitlines()) <= 570, "readable in one sitting"


def test_a_source_that_has_changed_is_refused(tmp_path: Path) -> None:
    shutil.copytree(SOURCES, tmp_path / "kmod-patches")
    path = tmp_path / "kmod-patches/sch_qjump.c"
    path.write_text(path.read_text().replace("#define QJUMP_MAX", "#define MAX"))
    changed = r"^sch_qjump\.c: 0 places match .* change the series with its source"
    with pytest.raises(single.TextError, match=changed):
        kernel.module(tmp_path / "kmod-patches")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["{empty}", "out"], 2, "is not a kernel or iproute2 source tree: give the directory that contains net/ or tc/"),
        (["{tree}", "out", "--author", "me"], 2, "'me' is not a valid author: give one as 'NAME <ADDRESS>'"),
        (["{tree}", "{full}", "--author", AUTHOR], 3, "holds patches already: name a new folder"),
        (["{hollow}", "out", "--author", AUTHOR], 3,
         "cannot be read (No such file or directory): the series is for another version of this tree"),
    ],
)  # fmt: skip
def test_bad_input_is_a_sentence(
    arguments: list[str], code: int, sentence: str, tc_source: Path, tmp_path: Path
) -> None:
    places = {name: tmp_path / name for name in ("empty", "full", "hollow")} | {"tree": tc_source}
    for name in ("empty", "full", "hollow/tc"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "full/0001-x.patch").touch()
    (tmp_path / "hollow/tc/tc_qdisc.c").touch()
    argv = [sys.executable, str(SOURCES / "series"), *(word.format(**places) for word in arguments)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_the_letter_has_the_figures_of_the_documents() -> None:
    """Each figure that the letter names is a cell of a table, and is in the letter."""
    module = kernel.module(SOURCES)
    letter = " ".join(cover.letter(CHECKOUT / "docs", module).split())
    compared = cover.rows((CHECKOUT / "docs/qdisc.md").read_text(), "what limits level 4")
    page = (CHECKOUT / "docs/qdisc-cost.md").read_text()
    costs = cover.rows(page, "a packet that leaves at once")
    own, tbf, htb = (compared[name] for name in ("qjump", "prio + tbf", "htb"))
    bucket, edt = (
        compared[f"{name}"] for name in ("prio + tbf, burst of a frame", "bpf times + prio, fq")
    )
    bare, prio, ets = (
        int(costs[f"{name}"][0]) for name in ("qjump_priorities", "prio8_level0", "ets8_level0")
    )
    device = re.search(r"^Linux 6\.12\S*: noqueue (\d+)", page, re.M)
    limited = int(costs["qjump_10ms_level0"][0])
    whole = int(device[1]) + limited if device else 0
    alternatives = ("prio + tbf", "HTB", "fq and departure times (EDT)", "a BPF qdisc")
    sentences = [
        f"What do {len(module.splitlines())} lines buy?",
        f"no more: {own[0]} at the root and {own[1]} below a busy HTB class",
        f"leaves at once, in {own[4]}, and TCP gets {own[5]} of a budget of four frames",
        f"one budget we saw {tbf[0]} at the root and {tbf[1]} below",
        f"With a burst of one frame we saw {bucket[0]} of full frames, and {bucket[3]} of small",
        f"one budget, takes {bucket[4]}.",
        f"The same bucket as tbf: {htb[0]} at the root",
        f"the root it does: {edt[0]}.",
        f"is gone: {edt[1]} below",
        f"no limit costs {bare} instructions, {bare / prio:.0%} of what prio with eight",
        f"does ({prio}) and {bare / ets:.0%} of ets ({ets});",
        *(costs[name][0] for name in ("prio8_tbf_level0", "htb_pfifo", "fq", "cake")),
        f"Of the {whole} instructions from pktgen into a dummy device at most {limited} are under",
        f"{costs['bpf_qdisc_level0'][2]} instructions.",  # Linux 7.x
        *(f"Why not {alternative}" for alternative in alternatives),
    ]  # fmt: skip
    assert [sentence for sentence in sentences if sentence not in letter] == []
    assert "{" not in letter


def test_a_figure_that_no_table_has_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cover.txt").write_text("Subject\n\nIt costs {no_qdisc, instructions}.\n")
    monkeypatch.setattr(cover, "TEXT", tmp_path / "cover.txt")
    unknown = "refers to 'no_qdisc, instructions', which is in no table"
    with pytest.raises(single.TextError, match=unknown):
        cover.letter(CHECKOUT / "docs", "")


def checkpatch(source: Path, patch: Path, *options: str) -> str:
    """What it says of a patch; its exit code tells findings, too."""
    script: list[str | Path] = ["perl", source / "scripts/checkpatch.pl", f"--root={source}"]
    argv = [*script, *STRICT, *options, patch]
    return subprocess.run(argv, cwd=source, capture_output=True, text=True).stdout


def test_checkpatch_is_silent(source: Path, patches: list[Path], tc_patches: list[Path]) -> None:
    assert [checkpatch(source, path) for path in patches[1:]] == [""] * 4
    assert [checkpatch(source, path, *NOT_FOR_TC) for path in tc_patches[1:]] == [""] * 3


def test_checkpatch_is_at_work(source: Path, patches: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.patch"
    text = patches[1].read_text()
    bad.write_text(re.sub(r"^\+\t(\w.*;)$", r"+        \1", text, count=1, flags=re.M))
    assert "ERROR" in checkpatch(source, bad)


@pytest.mark.slow
def test_it_builds_in_the_tree(tools: Tree, patched: Path) -> None:
    """With Debian's configuration, as a module. There is no vmlinux to look its symbols up in:
    Debian's kernel has them all."""
    script = """cd source
scripts/config --module NET_SCH_QJUMP
make -s olddefconfig
grep -x CONFIG_NET_SCH_QJUMP=m .config
make W=1 net/sched/sch_qjump.o 2>&1
echo undefined:
nm -u net/sched/sch_qjump.o
"""
    said, _, symbols = tools.run(["sh", "-e", "-c", script], patched).partition("undefined:")
    assert "CONFIG_NET_SCH_QJUMP=m" in said and "CC [M]  net/sched/sch_qjump.o" in said
    assert not re.search(r"sch_qjump\.c.*(warning|error)", said), said
    lines = (patched / "source/Module.symvers").read_text().splitlines()
    exported = {line.split("\t")[1] for line in lines}
    wanted = set(symbols.split()) - {"U", "__this_module"}  # modpost makes that
    assert len(wanted) > 20 and wanted <= exported, wanted - exported


@pytest.mark.nightly
def test_it_builds_as_allmodconfig_has_it(tools: Tree, patched: Path) -> None:
    script = "cd source; make -s allmodconfig; grep -x CONFIG_NET_SCH_QJUMP=m .config; make W=1 net/sched/sch_qjump.o 2>&1"
    said = tools.run(["sh", "-e", "-c", script], patched)
    assert "CONFIG_NET_SCH_QJUMP=m" in said
    assert not re.search(r"sch_qjump\.c.*(warning|error)", said), said


def test_ynl_reads_the_specification_by_its_schema(tools: Tree, patched: Path) -> None:
    script = """cd source/tools/net/ynl/pyynl
./cli.py --spec ../../../../Documentation/netlink/specs/tc.yaml --schema ../../../../Documentation/netlink/netlink-raw.yaml --validate
./cli.py --spec ../../../../Documentation/netlink/specs/tc.yaml --no-schema --list-ops
./ynl_gen_c.py --spec ../../../../Documentation/netlink/specs/tc.yaml --mode user --header
"""
    said = tools.run(["sh", "-e", "-c", script], patched)
    assert "newqdisc" in said
    for name in ("tc_qjump_attrs", "tc_qjump_level_attrs", "tc_qjump_level_stats_attrs"):
        assert f"struct {name} {{" in said


def test_the_schema_is_at_work(tools: Tree, source: Path, tmp_path: Path) -> None:
    text = spec.written((source / kernel.SPEC).read_text(), HEADER.read_text())
    (tmp_path / "tc.yaml").write_text(text.replace("name: qjump-attrs", "nom: qjump-attrs"))
    shutil.copytree(source / "tools/net/ynl/pyynl", tmp_path / "pyynl")
    shutil.copy(source / "Documentation/netlink/netlink-raw.yaml", tmp_path)
    script = "cd pyynl; ./cli.py --spec ../tc.yaml --schema ../netlink-raw.yaml --validate 2>&1 || echo refused"
    said = tools.run(["sh", "-c", script], tmp_path)
    assert "refused" in said and "nom" in said


def test_every_attribute_is_in_the_specification_with_its_number(source: Path) -> None:
    """A number of the kernel's is the place in the list, from 1."""
    header = HEADER.read_text()
    text = spec.written((source / kernel.SPEC).read_text(), header)
    for prefix, name in spec.SETS.items():
        names = re.findall(rf"^\t{prefix}([A-Z]+),", header, re.M)
        pattern = rf"    name: {name}\n.*?    attributes:\n(.*?)(?=^  -\n)"
        (listed,) = re.findall(pattern, text, re.M | re.S)
        found = re.findall(r"^        name: (\S+)$", listed, re.M)
        assert [one.upper() for one in found] == [one for one in names if one != "UNSPEC"], name


LIST_CASES = """import resource, runpy, sys
resource.setrlimit = lambda *_: None  # root of a container may not raise it
os.makedirs("plugins", exist_ok=True)
names = "TC IP ETHTOOL".split()  # are looked for, and to list cases nothing is run
open("tdc_config_local.py", "w").write(f"EXTRA_NAMES = {dict.fromkeys(names, '/bin/true')}")
sys.path.insert(0, ".")
sys.argv = ["tdc.py", "-l", "-f", "tc-tests/qdiscs/qjump.json"]
runpy.run_path("tdc.py", run_name="__main__")
"""


def test_tdc_reads_the_cases(tools: Tree, patched: Path) -> None:
    folder = "source/tools/testing/selftests/tc-testing"
    said = tools.run(["python3", "-c", f"import os; os.chdir({folder!r})\n{LIST_CASES}"], patched)
    ids = [case["id"] for case in json.loads(kernel.cases(SOURCES))]
    assert len(ids) > 50 and re.findall(r"^([0-9a-f]{4}):", said, re.M) == ids


def test_no_case_has_the_id_of_another(patched: Path) -> None:
    folder = patched / "source/tools/testing/selftests/tc-testing/tc-tests"
    files = [json.loads(path.read_text()) for path in folder.rglob("*.json")]
    ids = [case["id"] for cases in files for case in cases]
    mainline = json.loads((CHECKOUT / "contrib/tdc/mainline.json").read_text())
    ours = {case["id"] for case in json.loads(kernel.cases(SOURCES))}
    assert not {case["id"] for case in mainline} & set(ids)
    assert {one for one in ours if ids.count(one) != 1} == set()


@pytest.mark.slow
def test_iproute2_builds_with_it(tc: Path) -> None:
    assert not re.search(r"q_qjump.*(warning|error)", (tc / "said").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("epoch 1ms level 9 1550", '"9" is not a level; levels are 0 to 7, 7 is the most urgent'),
        (
            "epoch 5",
            'invalid value "5" for "epoch": give a number of s sec ms msec us usec ns nsec',
        ),
        ("colour blue", 'qjump has no option "colour"; see "qjump help"'),
        ("help", "Usage: ... qjump [ epoch TIME ] [ bytes SIZE ]"),
    ],
)
def test_tc_parses(tools: Tree, tc: Path, options: str, sentence: str) -> None:
    line = f"unshare --net source/tc/tc qdisc add dev lo root qjump {options} 2>&1 || true"
    assert sentence in tools.run(["sh", "-c", line], tc)


def test_the_manual_page_is_that_of_the_series() -> None:
    page = iproute2.page(SOURCES)
    assert "wire" not in re.sub(r"(?i)(on|of)\s+the wire", "", page)
    assert "qjump2015" not in page and "slack" in page
