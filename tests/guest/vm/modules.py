"""The kernel modules that a virtual machine may load: those of Debian's kernels, and ours."""

from __future__ import annotations

import lzma
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree, build
from qjump_mn.toolbox.build import Recipe
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.selection import dropped_in

# What a network may be built of, what reads the job, and what carries the result (built into 6.12,
# modules in 6.1). What these need comes by modules.dep and _SOFT.
MODULES = (
    "qemu_fw_cfg virtio_pci virtio_console openvswitch 8021q veth dummy ifb sch_htb sch_prio "
    "sch_netem sch_tbf sch_red sch_fq sch_fq_codel sch_codel sch_ingress sch_multiq cls_flower "
    "cls_matchall cls_u32 cls_fw cls_basic act_skbedit act_mirred act_police act_gact act_vlan "
    "tcp_dctcp tcp_bbr"
).split()

# What a scheme may use besides, as far as the kernel has it: Debian's have all but dualpi2 (Linux
# 6.17, not built), the debug kernel has none.
QDISCS = (
    "sch_cake sch_cbs sch_drr sch_dualpi2 sch_etf sch_ets sch_fq_pie sch_hfsc sch_mqprio sch_pie "
    "sch_plug sch_qfq sch_sfq sch_taprio"
).split()

# What modules.dep does not say, for it is asked for by an alias: openvswitch has its checksum from
# libcrc32c, until 6.14.
_SOFT = {"libcrc32c": "crc32c_generic"}

_LISTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo")
_BUILD = """
make --no-print-directory KDIR=/usr/lib/modules/{release}/build modules
strip --strip-debug *.ko
install -D -m 644 -t out/usr/lib/modules/{release}/updates *.ko
"""


def of_debian(kernel: Tree) -> dict[str, Node]:
    """The modules of a tree's kernel that are wanted, unpacked, and the lists that depmod reads, by
    their names relative to /."""
    source = kernel.root / "usr/lib/modules" / kernel.kernel_release
    needs: dict[str, list[str]] = {}
    for line in (source / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[path] = others.split()
    by_name = {_name(path): path for path in needs}
    builtin = {_name(path) for path in (source / "modules.builtin").read_text().split()}
    if absent := sorted({*MODULES} - by_name.keys() - builtin):
        raise MachineError(f"kernel {kernel.kernel_release} has no module {absent[0]}")
    wanted = [by_name[name] for name in (*MODULES, *QDISCS) if name in by_name]
    paths = {path for one in wanted for path in (one, *needs[one])}
    soft = [other for name, other in _SOFT.items() if by_name.get(name) in paths]
    paths.update(by_name[name] for name in soft if name in by_name)
    top = f"usr/lib/modules/{kernel.kernel_release}"
    # modprobe of packed modules would unpack them in the guest, at its pace.
    nodes = {f"{top}/{name}": Node.file(source / name) for name in _LISTS}
    for path in paths:
        nodes[f"{top}/{path.removesuffix('.xz')}"] = Node.file(_unpacked(source / path))
    return nodes


def ours(kernel: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """The modules of kmod-patches, for a tree's kernel, by their names relative to /. Raises
    MachineError with the compiler's words."""
    what = f"the kernel modules of kmod-patches for {kernel.kernel_release}"
    recipe = Recipe(build.folder("kmod-patches"), _BUILD.format(release=kernel.kernel_release))
    return dropped_in(build.built(kernel, what, recipe, progress))


def lists(tools: Tree, kernel: Tree, nodes: Mapping[str, Node]) -> dict[str, Node]:
    """What depmod writes (modules.dep.bin and its like) for the modules among the nodes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, node in nodes.items():
            data = node.content
            if path.startswith("usr/lib/modules/") and data is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data.read_bytes() if isinstance(data, Path) else data)
        (folder / "lib").symlink_to("usr/lib")
        loader, *rest = tools.program("usr/bin/kmod", "-b", name, kernel.kernel_release)
        done = subprocess.run([loader, "--argv0", "depmod", *rest], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made = sorted((folder / "usr/lib/modules").rglob("modules.*"))
        files = {str(path.relative_to(folder)): Node.file(path.read_bytes()) for path in made}
    return {path: node for path, node in files.items() if path not in nodes}


def _name(path: str) -> str:
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data
