"""Check that this machine has what a plan needs to run on its own kernel, before it runs."""

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
"""Where apt installs Mininet, which is not in any index of Python packages."""

OURS = ("sch_qjump", "sch_qjump2015", "sch_wire")
"""Our kernel modules, which no distribution has."""

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
"""The package of each program, in Debian and Ubuntu."""


class AptsMininet(MetaPathFinder):
    """Imports Mininet from where apt installs it, but no other system package.

    Mininet is pure Python. Other packages there may have other versions than the environment's.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """Find ``mininet`` itself; the package finds its modules by its own path."""
        return PathFinder.find_spec(fullname, [DEBIAN_PACKAGES]) if fullname == "mininet" else None


FINDER = AptsMininet()


def find_mininet() -> str:
    """Make Mininet importable; return a sentence if that fails, else an empty string."""
    if FINDER not in sys.meta_path:
        sys.meta_path.append(FINDER)
    try:
        importlib.import_module("mininet.net")
    except ImportError as error:
        advice = "run `apt-get install mininet`, or use --backend guest"
        return f"Mininet cannot be imported ({error}): {advice}"
    return ""


def check(plan: Plan) -> None:
    """Raise :class:`MachineError` for what this machine lacks."""
    if os.geteuid():
        raise MachineError(
            "the host backend creates namespaces and loads modules, which needs root: "
            "run it with sudo, or use --backend guest"
        )
    if problem := find_mininet():
        raise MachineError(problem)
    if lacking := missing(_programs(plan)):
        advice = f"{_install_commands(lacking)}, or use --backend guest"
        raise MachineError(f"this machine lacks {_listed(lacking)}: {advice}")
    if lacking := missing_modules(_modules(plan)):
        raise MachineError(
            f"this machine lacks {_listed(lacking)}: {_module_advice(lacking, plan)}"
        )


def missing(programs: Iterable[str]) -> list[str]:
    """Return the programs that are not installed, and the libraries (paths) that do not exist."""
    return [
        name
        for name in programs
        if not (Path(name).exists() if name[0] == "/" else shutil.which(name))
    ]


def missing_modules(names: Iterable[str]) -> list[str]:
    """Return phrases for modules that cannot be loaded, and for missing tc plugins of ours."""
    lacking = [
        f"the kernel module {name}" for name in names if not _succeeds("modprobe", "-nq", name)
    ]
    for qdisc in (name.removeprefix("sch_") for name in names if name in OURS):
        if "Unknown qdisc" in _stderr("tc", "qdisc", "add", qdisc, "help"):
            lacking.append(f"tc's plugin for {qdisc}")
    return lacking


def _programs(plan: Plan) -> dict[str, None]:
    """Return every program that a step runs, in order."""
    names: dict[str, None] = dict.fromkeys(("ovs-vsctl", "mnexec", "modprobe", "tc", "ethtool"))
    for trial in plan.trials():
        for step in (*bring_up(trial.network.skeleton()), *trial_steps(trial)):
            if isinstance(step, Run | Start):
                names |= dict.fromkeys(_programs_in(step.argv))
    return names


def _programs_in(argv: Sequence[str]) -> Iterator[str]:
    """Yield the programs and preloaded libraries of a command line.

    Such as ``env A=B program`` and ``qjau -p 6 -- program``.
    """
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
    for arm in plan.run.arms:
        names |= dict.fromkeys(registry.of(arm.network.model).modules)
        if arm.qjump is not None and arm.qjump.qdisc:
            names[f"sch_{arm.qjump.qdisc}"] = None
    return names


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _install_commands(names: Sequence[str]) -> str:
    """Return the commands that install programs: ours with make, others with apt."""
    folders = {name: folder for name in names if (folder := _folder(name))}
    packages = sorted({PACKAGES.get(name, name) for name in names if name not in folders})
    commands = [f"apt-get install {' '.join(packages)}"] if packages else []
    commands += [
        f"make -C {folder} install PREFIX=/usr" for folder in dict.fromkeys(folders.values())
    ]
    return "; ".join(commands)


def _folder(name: str) -> str:
    """Return the folder of native/ that builds a program or library; empty if none does."""
    pattern = re.escape(Path(name).name)
    for makefile in sorted(build.folder("native").glob("*/Makefile")):
        if re.search(rf"/{pattern}\s|^PROGRAM = {pattern}$", makefile.read_text(), re.MULTILINE):
            return os.path.relpath(makefile.parent)
    return ""


def _module_advice(lacking: Sequence[str], plan: Plan) -> str:
    """Return how to install missing modules, and how to run without them."""
    qdiscs = [name.removeprefix("sch_") for name in OURS]
    if not any(name.rpartition(" ")[2] in (*OURS, *qdiscs) for name in lacking):
        return "install the package of this kernel's modules, or use --backend guest"
    settings = ["link.model=tbf", *_stock_limiters(plan)]
    return (
        "build their Debian packages with `qjump-mn machine package .`, and install them with "
        "`apt-get install ./qjump-dkms_*.deb ./qjump-tc_*.deb`; to run without them use "
        f"-s {' -s '.join(settings)}, or --backend guest"
    )


def _stock_limiters(plan: Plan) -> list[str]:
    """Return the settings that make stock qdiscs limit the hosts."""
    limited = (
        arm.scheme.name for arm in plan.run.arms if arm.qjump is not None and arm.qjump.qdisc
    )
    return [f"schemes.{name}.limiter=tbf" for name in dict.fromkeys(limited)]


def _succeeds(*argv: str) -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    return False


def _stderr(*argv: str) -> str:
    with suppress(FileNotFoundError):
        return subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    return ""
