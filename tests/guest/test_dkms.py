"""The Debian packages: reproducible; and their whole life in a guest that holds a Debian of its
own, for Linux 6.1 and 6.12.

The guest boots from an initramfs of the suite's own tree with dkms, compiler and headers of two
kernels, and the first of them runs. In Debian 13 the headers of the second come with its image, in
12 alone. Four builds by DKMS, or six, each of which compiles three modules at the guest's pace, are
what takes the time.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import cpio, debian, selection
from qjump_mn.toolbox.cpio import Node
from tests.guest import trees
from tests.guest.vm import Image, Job, Setup, first_programs, modules, of_files, run

pytestmark = [pytest.mark.guest, pytest.mark.timeout(3600)]

SOURCE = Path(__file__).parents[2] / "kmod-patches"
# Their locks ask for what a machine has that the package is installed on, and for the headers of
# another kernel, which comes later.
KERNELS = ("6.12", "6.1")
# As much as the tree twice, for it is unpacked into memory, and a compiler.
MEMORY_MB = 3072
NOT_IN_GUEST = (
    "proc sys dev run tmp build var/cache/apt var/lib/apt/lists etc/dpkg/dpkg.cfg.d".split()
)


def bumped(folder: Path) -> Path:
    """The sources as version 0.2."""
    shutil.copytree(SOURCE, folder)
    conf, changelog = folder / "dkms.conf", folder / "debian/changelog"
    conf.write_text(conf.read_text().replace('"0.1"', '"0.2"'))
    changelog.write_text(changelog.read_text().replace("(0.1)", "(0.2)"))
    return folder


@pytest.fixture(scope="module")
def packages() -> list[Path]:
    trees.needed(debian.tree)
    return debian.packages(print)


@pytest.fixture(scope="module")
def newer(packages: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("newer")
    return debian.packages_of(bumped(folder / "source"), folder / "package")


@pytest.mark.nightly
def test_another_build_gives_the_same_bytes(packages: list[Path], tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source, copy_function=shutil.copyfile)
    umask = os.umask(0o077)
    try:
        again = debian.packages_of(source, tmp_path / "package")
    finally:
        os.umask(umask)
    hashes = [
        {path.name: cache.hash_of_file(path) for path in built} for built in (again, packages)
    ]
    assert hashes[0] == hashes[1]


def check_contents(package: Path, name: str, wanted: set[str]) -> None:
    """The package holds these files and its documents, and no more."""
    argv = debian.tree().program("usr/bin/dpkg-deb", "--fsys-tarfile", str(package))
    packed = io.BytesIO(subprocess.check_output(argv))
    with tarfile.open(fileobj=packed) as tar:
        files = {member.name.removeprefix("./") for member in tar if not member.isdir()}
    documents = {f"usr/share/doc/{name}/{file}" for file in ("changelog.gz", "copyright")}
    assert files == wanted | documents


def test_dkms_package_holds_what_dkms_needs_and_no_more(packages: list[Path]) -> None:
    paths = (*SOURCE.glob("*.[ch]"), *SOURCE.glob("include/*.h"))
    sources = {str(path.relative_to(SOURCE)) for path in paths} | {
        "Kbuild",
        "Makefile",
        "dkms.conf",
    }
    assert packages[0].name == "qjump-dkms_0.1_all.deb"
    wanted = {f"usr/src/qjump-0.1/{name}" for name in sources}
    check_contents(packages[0], "qjump-dkms", wanted)


def test_tc_package_holds_what_tc_needs_and_no_more(packages: list[Path]) -> None:
    names = ("qjump", "qjump2015", "wire")
    plugins = {f"usr/lib/x86_64-linux-gnu/tc/q_{name}.so" for name in names}
    manuals = {f"usr/share/man/man8/{path.name}.gz" for path in SOURCE.glob("tc/*.8")}
    assert packages[1].name == "qjump-tc_0.1_amd64.deb"
    check_contents(packages[1], "qjump-tc", plugins | manuals)


def test_the_plugins_ask_for_the_versions_of_tc_that_they_were_tested_with(
    packages: list[Path],
) -> None:
    """What tc's functions are says the comment of plugin.h."""
    text = (SOURCE / "tc/plugin.h").read_text()
    ((least, major, minor),) = re.findall(r"iproute2 (\d+\.\d+) to (\d+)\.(\d+)", text)
    asked = debian.tree().output("usr/bin/dpkg-deb", "--field", str(packages[1]), "Depends").strip()
    wanted = {f"iproute2 (>= {least})", f"iproute2 (<< {major}.{int(minor) + 1})"}
    assert wanted <= set(asked.split(", ")), asked


@pytest.mark.parametrize(
    ("release", "is_built"),
    [
        ("5.10.0-30-amd64", False), ("6.0.0", False), ("6.1.0-56-amd64", True),
        ("6.12.117+deb13-amd64", True), ("7.3.4+deb13-amd64", True), ("10.0.1", True),
    ],
)  # fmt: skip
def test_dkms_builds_for_the_kernels_that_the_modules_are_for(release: str, is_built: bool) -> None:
    """As DKMS does it: by bash's `=~`."""
    script = '. "$1"; [[ $2 =~ $BUILD_EXCLUSIVE_KERNEL ]]'
    argv = ["bash", "-c", script, "bash", str(SOURCE / "dkms.conf"), release]
    assert (subprocess.run(argv).returncode == 0) == is_built


@pytest.mark.nightly
def test_the_configurations_that_dkms_asks_for_are_those_of_debian() -> None:
    conf = (SOURCE / "dkms.conf").read_text()
    (names,) = re.findall(r'^BUILD_EXCLUSIVE_CONFIG="(.*)"$', conf, re.M)
    kernel = trees.kernel_tree("7")
    (config,) = (kernel.root / "usr/src").glob("linux-headers-*-amd64/.config")
    lines = config.read_text().splitlines()
    assert all(f"{name}=y" in lines or f"{name}=m" in lines for name in names.split())


@pytest.mark.root
@pytest.mark.parametrize(("byte", "is_told"), [("001", True), ("000", False), (None, False)])
def test_an_installation_tells_of_secure_boot(byte: str | None, is_told: bool) -> None:
    """The script of the package, in a mount namespace with firmware of its own."""
    variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    steps = ["mount -t tmpfs none /sys/firmware", "mkdir -p /sys/firmware/efi/efivars"]
    if byte:
        steps.append(f"printf '\\006\\000\\000\\000\\{byte}' > {variable}")
    steps.append(f"sh {SOURCE}/debian/qjump-dkms.postinst configure")
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-e", "-c", "; ".join(steps)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert ("mokutil --import /var/lib/dkms/mok.pub" in done.stdout) == is_told
    assert bool(done.stdout) == is_told


def test_no_script_of_the_packages_touches_a_kernels_files() -> None:
    scripts = [path for name in ("postinst", "prerm") for path in SOURCE.glob(f"debian/*.{name}")]
    assert len(scripts) == 2
    assert not any("/lib/modules" in path.read_text() for path in scripts)


def test_the_changelog_has_the_version_that_dkms_is_told() -> None:
    changelog = re.match(r"qjump \((.*?)\)", (SOURCE / "debian/changelog").read_text())
    conf = re.search(r'^PACKAGE_VERSION="(.*)"$', (SOURCE / "dkms.conf").read_text(), re.M)
    assert changelog and conf and changelog[1] == conf[1]


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
        (autoinstall_all_kernels) to build for all that have headers in Debian 13; in 12 for the
        running one and the newest that is installed: here that is the same."""
        return [self.release, self.newer] if self.kernel == "6.12" else [self.release]


class Debian(toolbox.Tree):
    """A tree whose plain kernel runs. The cloud kernel, which comes with its headers in Debian 13,
    has no /dev/port, which the agent needs."""

    @cached_property
    def kernel_release(self) -> str:
        names = (path.name for path in (self.root / "usr/lib/modules").iterdir())
        return next(name for name in names if "cloud" not in name)


def everything(tree: toolbox.Tree) -> Iterator[tuple[str, Node]]:
    """The tree as the guest sees it: without the kernel modules that it has no use for. Each kernel
    keeps some, as DKMS takes one without any for removed, and removes its lists."""
    top = f"usr/lib/modules/{tree.kernel_release}/"
    used = {name.removeprefix(top).removesuffix(".ko") for name in modules.of_debian(tree)}
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


def guest_image(kernel: str, packages: list[Path], initrd: Path) -> Image:
    tree = Debian(toolbox.made(f"dkms-{kernel}", print).root)
    nodes = dict(everything(tree)) | {name: Node.folder() for name in NOT_IN_GUEST}
    nodes |= first_programs()
    nodes |= {f"root/dkms/{path.name}": Node.file(path) for path in packages}
    with initrd.open("wb") as file:
        file.writelines(cpio.archive(nodes))
    return of_files(tree.kernel, initrd, tree.kernel_release)


@pytest.fixture(scope="module", params=KERNELS)
def life(
    request: pytest.FixtureRequest,
    packages: list[Path],
    newer: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Life:
    if "slow" not in request.config.option.markexpr:
        pytest.skip(
            "the life of the package is for `pytest -m slow`: a quarter of an hour a kernel"
        )
    trees.toolbox()
    folder = tmp_path_factory.mktemp("life")
    script = (Path(__file__).parent / "dkms/lifecycle.py").read_text()
    job = Job(script=script, virtual_deadline_s=3600)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            machine = guest_image(request.param, [*packages, *newer], Path(scratch, "initrd"))
        except MachineError as error:
            pytest.skip(str(error))
        result = run(machine, Setup(), job, folder, memory_mb=MEMORY_MB, wall_deadline_s=3000)
    assert (result.exit_code, (folder / "stderr").read_text()) == (0, "")
    manuals = [f"/usr/share/man/man8/{path.name}.gz" for path in SOURCE.glob("tc/*.8")]
    return Life(request.param, json.loads((folder / "results.json").read_text()), manuals)


def check_installed(life: Life, after: str, version: str, releases: list[str]) -> None:
    """The package is whole, DKMS has the modules for exactly these kernels, and they lie where
    modprobe looks."""
    state = life.steps[after]
    assert state["dpkg"] == f"install ok installed {version}"
    assert state["verify"] == {"code": 0, "said": ""}
    assert sorted(state["dkms"].splitlines()) == sorted(
        f"qjump/{version}, {release}, x86_64: installed" for release in releases
    )
    new = state["new"]
    built = [name for name in new if name.startswith("/usr/lib/modules/") and ".ko" in name]
    assert [name.removesuffix(".xz") for name in built] == sorted(
        f"/usr/lib/modules/{release}/updates/dkms/{name}.ko"
        for release in releases
        for name in ("sch_qjump", "sch_qjump2015", "sch_wire")
    )
    assert set(life.manuals) <= set(new)
    assert f"/usr/src/qjump-{version}/dkms.conf" in new
    versions = [name for name in new if re.search(r"/qjump[-/]0\.\d", name)]
    assert [name for name in versions if version not in name] == []


def check_used(life: Life, when: str) -> None:
    use = life.steps[when]
    assert use["modprobe"] == use["wire"] == use["2015"] == {"code": 0, "said": ""}
    # The largest frame of lo is above 1500 bytes.
    assert use["qjump"]["code"] == 0 and use["qjump"]["said"].startswith("Warning: ")
    assert use["file"].startswith(f"/lib/modules/{life.release}/updates/dkms/sch_qjump.ko")
    (qjump,), (wire,) = (json.loads(use[shown]["said"]) for shown in ("shown", "shown wire"))
    assert qjump["kind"] == "qjump" and qjump["options"]["epoch_ns"] == 10_000_000
    assert qjump["options"]["budgets"] == [0] * 7 + [1500]
    assert (wire["kind"], wire["options"]["rate_bps"]) == ("wire", 10_000_000)
    # tc loads a qdisc's module by its name.
    assert use["alone"] == ["sch_qjump"]
    assert use["loaded"] == ["sch_qjump", "sch_qjump2015", "sch_wire"]


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
    # DKMS 3.0 runs depmod for a kernel that is not there.
    dep = f"/usr/lib/modules/{life.newer}/modules.dep"
    assert (dep in life.steps["with the new kernel"]["new"]) == (life.kernel == "6.1")


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
    assert (state["gone"], state["loaded"], state["dkms"]) == ([], [], "")
    # DKMS 3.0 makes lists of modules for a kernel that is not there. They are not ours to remove.
    of_dkms = f"/usr/lib/modules/{life.newer}/modules." if life.kernel == "6.1" else "nothing"
    assert [name for name in state["new"] if not name.startswith(of_dkms)] == []
