"""What compilers, sparse, checkpatch and troff say of the kernel modules, tc's plugins and their
manual pages: nothing.

On the headers of Linux 6.12, 6.1 and 7.x; needs the trees of the guest, and no guest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qjump_mn import cache, toolbox
from qjump_mn.toolbox import Tree
from qjump_mn.toolbox.build import Recipe
from tests.guest import trees
from tests.guest.checks import OTHERS_NIGHTLY
from tests.support import facts

pytestmark = pytest.mark.guest

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = CHECKOUT / "kmod-patches"
SOURCE_FILES = 7
"""So many files in C are modules'."""
COMPILERS = {"6.12": "gcc-14", "6.1": "gcc-12", "7": "gcc-14"}
# How make is told to check. Debian's headers of 7.3 lack scripts/checker-valid.sh, without which
# C=2 checks nothing; it would refuse Debian 13's sparse, 0.6.4, which knows no __typeof_unqual__
# and takes no strlen() of a literal for constant: MODULE_INFO() asserts one.
CHECKED = {
    "6.12": ["C=2"],
    "6.1": ["C=2"],
    "7": ["KBUILD_CHECKSRC=2", "CF=-D__typeof_unqual__=__typeof__ '-D_Static_assert(...)='"],
}
PAGES = sorted([*SOURCES.glob("tc/*.8"), *(CHECKOUT / "native").glob("*/*.1")])


@pytest.fixture(scope="module")
def style() -> Tree:
    return trees.needed(toolbox.style_tools)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The sources, where they may be built."""
    made = shutil.ignore_patterns("*.so", "*.o", "*.ko", ".*")
    return Path(shutil.copytree(SOURCES, tmp_path / SOURCES.name, ignore=made))


def read(kernel: str = "6.12", style: Tree | None = None, **_: object) -> list[str]:
    """All that the tools are, and read."""
    used = [trees.kernel_tree(kernel), *filter(None, [style])]
    paths = Recipe(SOURCES, "").sources()
    files = [f"{path.relative_to(SOURCES)} {cache.hash_of_file(path)}" for path in paths]
    return [*(tree.packages_sha256 for tree in used), *files]


of_the_sources = facts.of("style of the kernel modules", read)


def complaints(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.search(r"\b(warning|error)\b", line, re.I)]


def modules(kernel: str, folder: Path) -> str:
    """What the compiler and sparse say."""
    tree = trees.kernel_tree(kernel)
    assert tree.kernel_release.startswith(f"{kernel}.")
    kdir = f"KDIR=/usr/lib/modules/{tree.kernel_release}/build"
    argv = ["make", "--no-print-directory", kdir, "W=1", *CHECKED[kernel], "modules"]
    said = tree.run(argv, folder)
    assert said.count("  CHECK ") == SOURCE_FILES, said
    return said


@pytest.mark.parametrize("kernel", OTHERS_NIGHTLY)
@of_the_sources
def test_compiler_and_sparse_find_nothing(kernel: str, copy: Path) -> None:
    assert complaints(modules(kernel, copy)) == []


@pytest.mark.parametrize("kernel", OTHERS_NIGHTLY)
@of_the_sources
def test_sparse_is_at_work(kernel: str, copy: Path) -> None:
    wrong = "static __used u16 qjump_made_up(__be16 port)\n{\n\treturn port;\n}\n"
    (copy / "wire_link.c").write_text(f"{(copy / 'wire_link.c').read_text()}\n{wrong}")
    assert [line for line in complaints(modules(kernel, copy)) if "different base types" in line]


@pytest.mark.parametrize("kernel", OTHERS_NIGHTLY)
def test_the_plugins_compile_without_a_warning(kernel: str, copy: Path) -> None:
    argv = ["make", "-C", "tc", f"CC={COMPILERS[kernel]}", "CFLAGS=-O2 -Werror"]
    trees.kernel_tree(kernel).run(argv, copy)
    assert (copy / "tc/q_qjump.so").exists() and (copy / "tc/q_wire.so").exists()


def checkpatch(style: Tree, folder: Path) -> list[str]:
    """Its findings. Names of the kernel's own types are learnt from the kernel's headers; tc's side
    has the types of C."""
    tree = trees.kernel_tree("6.12")
    shutil.copytree(style.root / "scripts", folder / "scripts")
    headers = next((tree.root / "usr/src").glob("linux-headers-*-common"))
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.[ch]"))
    options = f"--no-tree --root=/usr/src/{headers.name} --strict --max-line-length=100 --terse --no-summary --ignore PREFER_KERNEL_TYPES -f"
    # Its exit code tells findings, too.
    line = f"perl scripts/checkpatch.pl {options} {' '.join(files)} || true"
    return tree.run(["sh", "-c", line], folder).splitlines()


@of_the_sources
def test_checkpatch_finds_nothing(style: Tree, copy: Path) -> None:
    assert checkpatch(style, copy) == []


def test_checkpatch_finds_nothing_in_the_patches_of_linux(style: Tree, tmp_path: Path) -> None:
    """But that nobody has signed them off, that there is a new file, and yield(): a task that keeps
    all others from running is to give way to them."""
    patches = sorted((CHECKOUT / "kernel").glob("*.patch"))
    assert len(patches) == 12
    shutil.copytree(style.root / "scripts", tmp_path / "scripts")
    for path in patches:
        shutil.copy(path, tmp_path)
    script = "perl scripts/checkpatch.pl --no-tree --no-signoff --terse --no-summary --ignore FILE_PATH_CHANGES,YIELD *.patch || true"
    assert trees.toolbox().run(["sh", "-c", script], tmp_path) == ""


@of_the_sources
def test_checkpatch_is_at_work(style: Tree, copy: Path) -> None:
    source = copy / "sch_qjump.c"
    text = source.read_text()
    source.write_text(re.sub(r"^\t(\w.*;)$", r"        \1", text, count=1, flags=re.M))
    assert any("sch_qjump.c" in line and "ERROR" in line for line in checkpatch(style, copy))


def troff(style: Tree, page: Path) -> str:
    """What troff says of a page, with every warning on."""
    groff = next((style.root / "usr/share/groff").glob("[0-9]*"))
    argv = style.program("usr/bin/troff", "-ww", "-z", "-mandoc", "-Tutf8", str(page))
    paths = {"GROFF_FONT_PATH": str(groff / "font"), "GROFF_TMAC_PATH": str(groff / "tmac")}
    done = subprocess.run(argv, env=os.environ | paths, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_manual_pages_are_clean(page: Path, style: Tree) -> None:
    assert troff(style, page) == ""


def test_troff_is_at_work(style: Tree, tmp_path: Path) -> None:
    (tmp_path / "bad.8").write_text((SOURCES / "tc/tc-wire.8").read_text() + ".made-up\n")
    assert "made-up" in troff(style, tmp_path / "bad.8")


@pytest.mark.parametrize(
    ("page", "source", "count"),
    [("tc-qjump.8", "qjump_parse.h", 10), ("tc-qjump2015.8", "q_qjump2015.c", 3)],
)
def test_the_manual_page_names_every_option(page: str, source: str, count: int) -> None:
    """Those that `help` tells."""
    text = (SOURCES / "tc" / page).read_text().replace("\\-", "-")
    code = (SOURCES / "tc" / source).read_text()
    (usage,) = re.findall(r'"Usage: \.\.\. qjump(?:2015)? (.*?)\);', code, re.S)
    options = set(re.findall(r"[a-z]{3,}", usage))
    assert len(options) == count
    named = {one for one in options if re.search(rf"^\.[BIR]+\S* .*\b{one}\b", text, re.M)}
    assert named == options
