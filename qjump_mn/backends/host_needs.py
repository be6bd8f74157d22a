"""What a plan needs of this machine, to be run on its own kernel: looked at before anything is made."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.executor.steps import Run, Start
from qjump_mn.links import registry
from qjump_mn.model.plan import Plan
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import MODULES, bring_up
from qjump_mn.toolbox import build

DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"
"""Where apt puts Mininet, which no index of Python packages has."""

OURS = ("sch_qjump", "sch_qjump2015", "sch_wire")
"""Modules that no distribution has."""

PACKAGES = {
    "ethtool": "ethtool",
    "ovs-vsctl": "openvswitch-switch",
    "iperf3": "iperf3",
    "memcached": "memcached",
    "ip": "iproute2",
    "memcaslap": "libmemcached-tools",
    "mnexec": "mininet",
    "modprobe": "kmod",
    "ping": "iputils-ping",
    "ptpd": "ptpd",
    "ptp4l": "linuxptp",
    "sysctl": "procps",
    "tc": "iproute2",
}
"""Debian's and Ubuntu's packages of programs."""


class AptsMininet(MetaPathFinder):
    """Finds Mininet, which is pure Python, where apt has put it, and nothing else of the system's packages:
    their versions are not the environment's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """For ``mininet`` alone; its modules are found by its own path."""
        return PathFinder.find_spec(fullname, [DEBIAN_PACKAGES]) if fullname == "mininet" else None


FINDER = AptsMininet()


def find_mininet() -> str:
    """Make Mininet importable; why that cannot be, or empty."""
    if FINDER not in sys.meta_path:
        sys.meta_path.append(FINDER)
    try:
        importlib.import_module("mininet.net")
    except ImportError as error:
        return f"Mininet cannot be used here ({error}): apt-get install mininet, or use --backend guest"
    return ""


def check(plan: Plan) -> None:
    """Raise :class:`MachineError` for what this machine lacks."""
    if os.geteuid():
        raise MachineError(
            "the host backend makes namespaces and loads modules: run it with sudo, or use --backend guest"
        )
    if why := find_mininet():
        raise MachineError(why)
    if lacking := missing(_programs(plan)):
        how = f"{_installed(lacking)}, or use --backend guest"
        raise MachineError(f"this machine lacks {_listed(lacking)}: {how}")
    if lacking := missing_modules(_modules(plan)):
        raise MachineError(f"this machine lacks {_listed(lacking)}: {_loaded(lacking, plan)}")


def missing(programs: Iterable[str]) -> list[str]:
    """Programs, and libraries by their paths, that are not there."""
    return [name for name in programs if not (Path(name).exists() if name[0] == "/" else shutil.which(name))]


def missing_modules(names: Iterable[str]) -> list[str]:
    """Modules that cannot be loaded, and plugins of tc for ours that tc does not find."""
    lacking = [f"the kernel module {name}" for name in names if not _succeeds("modprobe", "-nq", name)]
    for name in names:
        if name in OURS and "Unknown qdisc" in _said("tc", "qdisc", "add", name.removeprefix("sch_"), "help"):
            lacking.append(f"tc's plugin for {name.removeprefix('sch_')}")
    return lacking


def _programs(plan: Plan) -> dict[str, None]:
    """Every program that a step names, in order."""
    names: dict[str, None] = dict.fromkeys(("ovs-vsctl", "mnexec", "modprobe", "tc", "ethtool"))
    for trial in plan.trials():
        for step in (*bring_up(trial.network.skeleton()), *trial_steps(trial)):
            if isinstance(step, Run | Start):
                names |= dict.fromkeys(_named(step.argv))
    return names


def _named(argv: Sequence[str]) -> Iterator[str]:
    """The programs of a command line, as in ``env A=B program`` and ``qjau -p 6 -- program``; and what is
    preloaded."""
    words = list(argv)
    while words:
        name = words.pop(0)
        yield name
        if name == "env":
            while words and "=" in words[0]:
                variable, _, value = words.pop(0).partition("=")
                if variable == "LD_PRELOAD":
                    yield from value.split(":")
        elif name == "qjau" and "--" in words:
            words = words[words.index("--") + 1 :]
        else:
            return


def _modules(plan: Plan) -> dict[str, None]:
    names = dict.fromkeys(MODULES)
    for arm in plan.arms_run:
        names |= dict.fromkeys(registry.of(arm.network.model).modules)
        if arm.qjump is not None and arm.qjump.qdisc:
            names[f"sch_{arm.qjump.qdisc}"] = None
    return names


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _installed(names: Sequence[str]) -> str:
    """How programs are installed: ours with make, others with apt."""
    folders = {name: folder for name in names if (folder := _folder(name))}
    packages = sorted({PACKAGES.get(name, name) for name in names if name not in folders})
    commands = [f"apt-get install {' '.join(packages)}"] if packages else []
    commands += [f"make -C {folder} install PREFIX=/usr" for folder in dict.fromkeys(folders.values())]
    return "; ".join(commands)


def _folder(name: str) -> str:
    """The folder of native/ that makes this program or library; empty where none does."""
    native = build.folder("native")
    for makefile in sorted(native.glob("*/Makefile")):
        named = re.escape(Path(name).name)
        if re.search(rf"/{named}\s|^PROGRAM = {named}$", makefile.read_text(), re.MULTILINE):
            return os.path.relpath(makefile.parent)
    return ""


def _loaded(lacking: Sequence[str], plan: Plan) -> str:
    """How modules come here, and what does without."""
    qdiscs = [name.removeprefix("sch_") for name in OURS]
    if not any(name.rpartition(" ")[2] in (*OURS, *qdiscs) for name in lacking):
        return "install the package of this kernel's modules, or use --backend guest"
    without = ["link.model=tbf", *_limits(plan)]
    return (
        "`qjump-mn machine package .` makes the Debian packages that have them: apt-get install "
        f"./qjump-dkms_*.deb ./qjump-tc_*.deb; without them use -s {' -s '.join(without)}, or --backend guest"
    )


def _limits(plan: Plan) -> list[str]:
    """The settings by which tc's own parts limit hosts."""
    limited = (arm.scheme.name for arm in plan.arms_run if arm.qjump is not None and arm.qjump.qdisc)
    return [f"schemes.{name}.limiter=tbf" for name in dict.fromkeys(limited)]


def _succeeds(*argv: str) -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    return False


def _said(*argv: str) -> str:
    with suppress(FileNotFoundError):
        return subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    return ""
