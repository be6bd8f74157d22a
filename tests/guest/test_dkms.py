"""The Debian package: reproducible; and its whole life in a guest that holds a Debian of its own, for Linux
6.1 and 6.12.

The guest boots from an initramfs of the suite's own tree with dkms, compiler and headers of two kernels, and
the first of them runs. In Debian 13 the headers of the second come with its image, in 12 alone. Four builds
by DKMS, or six, each of which compiles two modules at the guest's pace, are what takes the time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.guest import Image, Job, Setup, run
from qjump_mn.toolbox import cpio, debian, overlay, selection
from qjump_mn.toolbox.cpio import Node
from tests.guest import trees
from tests.guest.checks import kernel_image

pytestmark = [pytest.mark.guest, pytest.mark.timeout(3600)]

SOURCE = Path(__file__).parents[2] / "kmod-patches"
# Their locks ask for what a machine has that the package is installed on, and for the headers of another
# kernel, which comes later.
KERNELS = ("6.12", "6.1")
# As much as the tree twice, for it is unpacked into memory, and a compiler.
MEMORY_MB = 3072
NOT_IN_GUEST = (
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "build",
    "var/cache/apt",
    "var/lib/apt/lists",
    "etc/dpkg/dpkg.cfg.d",
)


def bumped(folder: Path) -> Path:
    """The sources as version 0.2."""
    shutil.copytree(SOURCE, folder)
    conf, changelog = folder / "dkms.conf", folder / "debian/changelog"
    conf.write_text(conf.read_text().replace('"0.1"', '"0.2"'))
    changelog.write_text(changelog.read_text().replace("(0.1)", "(0.2)"))
    return folder


@pytest.fixture(scope="module")
def package() -> Path:
    trees.needed(debian.tree)
    return debian.package(print)


@pytest.fixture(scope="module")
def newer(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newer")
    return debian.package_of(bumped(folder / "source"), folder / "package")


def test_another_build_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source, copy_function=shutil.copyfile)
    umask = os.umask(0o077)
    try:
        again = debian.package_of(source, tmp_path / "package")
    finally:
        os.umask(umask)
    assert again.name == package.name
    assert cache.hash_of_file(again) == cache.hash_of_file(package)


def contents(package: Path) -> list[str]:
    listed = subprocess.run(
        debian.tree().program("usr/bin/dpkg-deb", "--fsys-tarfile", str(package)),
        capture_output=True,
        check=True,
    ).stdout
    names = (
        subprocess.run(["tar", "-t"], input=listed, capture_output=True, check=True).stdout.decode().split()
    )
    return [name.removeprefix("./") for name in names if not name.endswith("/")]


def test_it_holds_what_dkms_and_tc_need_and_no_more(package: Path) -> None:
    plugins = {f"usr/lib/x86_64-linux-gnu/tc/q_{name}.so" for name in ("qjump", "wire")}
    sources = {
        str(path.relative_to(SOURCE)) for path in (*SOURCE.glob("*.[ch]"), *SOURCE.glob("include/*.h"))
    } | {"Kbuild", "Makefile", "dkms.conf"}
    manuals = {f"usr/share/man/man8/{path.name}.gz" for path in SOURCE.glob("tc/*.8")}
    documents = {"usr/share/doc/qjump-dkms/changelog.gz", "usr/share/doc/qjump-dkms/copyright"}
    assert (
        set(contents(package))
        == plugins | {f"usr/src/qjump-0.1/{name}" for name in sources} | manuals | documents
    )


def test_the_changelog_has_the_version_that_dkms_is_told() -> None:
    changelog = re.match(r"qjump \((.*?)\)", (SOURCE / "debian/changelog").read_text())
    conf = re.search(r'^PACKAGE_VERSION="(.*)"$', (SOURCE / "dkms.conf").read_text(), re.M)
    assert changelog and conf and changelog[1] == conf[1]


# --- the life of the package ------------------------------------------------------------------------------------------


@dataclass
class Life:
    """What every step printed and left; `kernel` is our name of it, 6.12 or 6.1."""

    kernel: str
    steps: dict[str, Any]
    manuals: list[str]

    @property
    def release(self) -> str:
        return str(self.steps["release"])

    @property
    def newer(self) -> str:
        return str(self.steps["newer"])

    @property
    def rebuilt(self) -> list[str]:
        """The kernels that DKMS builds for when there are two. It is told by its configuration
        (autoinstall_all_kernels) to build for all that have headers in Debian 13; in 12 for the running one
        and the newest that is installed: here that is the same."""
        return [self.release, self.newer] if self.kernel == "6.12" else [self.release]


class Debian(toolbox.Tree):
    """A tree whose plain kernel runs. The cloud kernel, which comes with its headers in Debian 13, has no
    /dev/port, which the agent needs."""

    @cached_property
    def kernel_release(self) -> str:
        return next(
            path.name for path in (self.root / "usr/lib/modules").iterdir() if "cloud" not in path.name
        )


def everything(tree: toolbox.Tree) -> Iterator[tuple[str, Node]]:
    """The tree as the guest sees it: without the kernel modules that it has no use for. Each kernel keeps
    some, as DKMS takes one without any for removed, and removes its lists."""
    top = f"usr/lib/modules/{tree.kernel_release}/"
    used = {name.removeprefix(top).removesuffix(".ko") for name in selection.modules(tree)}
    for base, folders, names in os.walk(tree.root):
        inside = Path(base).relative_to(tree.root)
        folders[:] = [name for name in folders if str(inside / name) not in NOT_IN_GUEST]
        for name in (*folders, *names):
            full = str(inside / name)
            module = re.fullmatch(r"usr/lib/modules/[^/]+/(.*)\.ko(\.xz)?", full)
            if not module or module[1] in used:
                node = selection.node_of(Path(base, name))
                if node:
                    yield full, node


def guest_image(image: Image, kernel: str, packages: list[Path], initrd: Path) -> Image:
    tree = Debian(toolbox.made(f"dkms-{kernel}", print).root)
    nodes = dict(everything(tree)) | {name: Node.folder() for name in NOT_IN_GUEST}
    nodes |= overlay.first_programs()
    nodes |= {f"root/dkms/{path.name}": Node.file(path) for path in packages}
    with initrd.open("wb") as file:
        file.writelines(cpio.archive(nodes))
    sha256 = image.sha256 | {"kernel": cache.hash_of_file(tree.kernel), "initrd": cache.hash_of_file(initrd)}
    return msgspec.structs.replace(image, kernel=tree.kernel, initrd=initrd, sha256=sha256)


@pytest.fixture(scope="module", params=KERNELS)
def life(
    request: pytest.FixtureRequest,
    package: Path,
    newer: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Life:
    if "slow" not in request.config.option.markexpr:
        pytest.skip(
            "the life of the package is for `pytest -m slow`: it takes up to a quarter of an hour per kernel"
        )
    folder, qemu = tmp_path_factory.mktemp("life"), kernel_image("6.12")
    job = Job(script=(Path(__file__).parent / "dkms/lifecycle.py").read_text(), virtual_deadline_s=3600)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            machine = guest_image(qemu, request.param, [package, newer], Path(scratch, "initrd"))
        except MachineError as error:
            pytest.skip(str(error))
        result = run(
            machine, job, folder, setup=Setup(), memory_mb=MEMORY_MB, wall_deadline_s=3000, progress=print
        )
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    manuals = [f"/usr/share/man/man8/{path.name}.gz" for path in SOURCE.glob("tc/*.8")]
    return Life(request.param, json.loads((folder / "results.json").read_text()), manuals)


def check_installed(life: Life, after: str, version: str, releases: list[str]) -> None:
    """The package is whole, DKMS has the modules for exactly these kernels, and they lie where modprobe
    looks."""
    state = life.steps[after]
    assert state["dpkg"] == f"install ok installed {version}"
    assert state["verify"] == {"code": 0, "said": ""}
    assert sorted(state["dkms"].splitlines()) == sorted(
        f"qjump/{version}, {release}, x86_64: installed" for release in releases
    )
    modules = [
        re.sub(r"\.xz$", "", name)
        for name in state["new"]
        if name.startswith("/usr/lib/modules/") and ".ko" in name
    ]
    assert modules == sorted(
        f"/usr/lib/modules/{release}/updates/dkms/{name}.ko"
        for release in releases
        for name in ("sch_qjump", "sch_wire")
    )
    assert set(life.manuals) <= set(state["new"])
    assert f"/usr/src/qjump-{version}/dkms.conf" in state["new"]
    assert [
        name for name in state["new"] if re.search(r"/qjump[-/]0\.\d", name) and version not in name
    ] == []


def check_used(life: Life, when: str) -> None:
    use = life.steps[when]
    assert use["modprobe"] == use["wire"] == {"code": 0, "said": ""}
    assert use["qjump"]["code"] == 0 and use["qjump"]["said"].startswith("Warning: "), (
        "lo's largest frame is above 1500 bytes"
    )
    assert use["file"].startswith(f"/lib/modules/{life.release}/updates/dkms/sch_qjump.ko")
    (qjump,), (wire,) = (json.loads(use[shown]["said"]) for shown in ("shown", "shown wire"))
    assert (qjump["kind"], qjump["options"]["epoch_ns"], qjump["options"]["budgets"]) == (
        "qjump",
        10_000_000,
        [0] * 7 + [1500],
    )
    assert (wire["kind"], wire["options"]["rate_bps"]) == ("wire", 10_000_000)
    assert (use["without wire"], use["loaded"]) == (["sch_qjump"], ["sch_qjump", "sch_wire"]), (
        "tc loads a qdisc's module by its name"
    )


@pytest.mark.slow
def test_dpkg_builds_the_modules_for_the_running_kernel(life: Life) -> None:
    assert life.release.startswith(f"{life.kernel}.")
    assert life.steps["install"]["code"] == 0, life.steps["install"]["said"]
    check_installed(life, "installed", "0.1", [life.release])


@pytest.mark.slow
def test_modules_and_plugins_work(life: Life) -> None:
    check_used(life, "use")
    check_used(life, "use again")


@pytest.mark.slow
def test_a_new_kernel_gets_the_modules_with_its_headers(life: Life) -> None:
    assert life.steps["new kernel"]["code"] == 0, life.steps["new kernel"]["said"]
    check_installed(life, "with the new kernel", "0.1", [life.release, life.newer])
    # What test_nothing_is_left is about: DKMS 3.0 runs depmod for a kernel that is not there.
    assert (f"/usr/lib/modules/{life.newer}/modules.dep" in life.steps["with the new kernel"]["new"]) == (
        life.kernel == "6.1"
    )


@pytest.mark.slow
def test_reinstalling_builds_again_and_tells_of_what_is_in_use(life: Life) -> None:
    said = life.steps["reinstall"]["said"]
    assert life.steps["reinstall"]["code"] == 0, said
    assert "sch_qjump is in use and stays loaded" in said
    assert "sch_wire is in use" not in said
    assert life.steps["reinstalled"]["loaded"] == ["sch_qjump"]
    check_installed(life, "reinstalled", "0.1", life.rebuilt)


@pytest.mark.slow
def test_an_upgrade_leaves_nothing_of_the_old_version(life: Life) -> None:
    assert life.steps["upgrade"]["code"] == 0, life.steps["upgrade"]["said"]
    assert life.steps["upgraded"]["loaded"] == []
    check_installed(life, "upgraded", "0.2", life.rebuilt)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "after"), [("remove", "removed"), ("purge", "purged")])
def test_nothing_is_left(life: Life, command: str, after: str) -> None:
    state = life.steps[after]
    assert life.steps[command]["code"] == 0, life.steps[command]["said"]
    assert (state["new"], state["gone"], state["loaded"], state["dkms"]) == ([], [], [], "")
