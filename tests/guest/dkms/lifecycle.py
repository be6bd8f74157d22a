"""Runs in a guest that holds a whole Debian: install, use, a new kernel, reinstall, upgrade and
remove the package; see test_dkms.py.

Arguments and packages lie in /root/dkms. Nothing is judged here: results.json says what every step
printed and left.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

RELEASE = os.uname().release
MODULES = Path("/usr/lib/modules")
PACKAGES = Path("/root/dkms")
# Mounted over, or ours and dpkg's own account of what it did.
NOT_LOOKED_AT = ("/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/var/log", "/var/lib/dpkg")


def command(line: str) -> dict[str, Any]:
    """Run a shell command; its exit code and all that it printed."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        line, shell=True, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    return {"code": done.returncode, "said": done.stdout}


def files() -> set[str]:
    """Every name on the disk but in NOT_LOOKED_AT."""
    found: set[str] = set()
    for base, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(base, name) not in NOT_LOOKED_AT]
        found.update(os.path.join(base, name) for name in (*folders, *names))
    return found


def loaded() -> list[str]:
    """Which of our modules the kernel has."""
    names = ("sch_qjump", "sch_qjump2015", "sch_wire")
    return [name for name in names if Path("/sys/module", name).exists()]


def left(before: set[str]) -> dict[str, Any]:
    """What there is of ours and of DKMS: new files, its tree, loaded modules, dpkg's opinion."""
    new = sorted(files() - before)
    return {
        "new": new, "gone": sorted(before - files()), "loaded": loaded(), "dkms": command("dkms status")["said"],
        "dpkg": command("dpkg-query -W -f '${Status} ${Version}' qjump-dkms")["said"],
        "verify": command("dpkg --verify qjump-dkms qjump-tc"),
    }  # fmt: skip


def uses() -> dict[str, Any]:
    """Use qjump on lo, where it stays, and the others on a device that goes again."""
    found = {
        "modprobe": command("modprobe sch_qjump"),
        "qjump": command("tc qdisc add dev lo root handle 6: qjump epoch 10ms level 7 1500"),
        "shown": command("tc -j qdisc show dev lo root"),
        "file": command("modinfo -F filename sch_qjump")["said"],
        "alone": loaded(),
        "wire": command("ip link add d0 type dummy && tc qdisc add dev d0 root handle 5: wire rate 10mbit"),
        "2015": command("tc qdisc add dev d0 parent 5:1 qjump2015 epoch 10ms level 7 1500"),
        "shown wire": command("tc -j qdisc show dev d0 root"),
        "loaded": loaded(),
    }  # fmt: skip
    command("ip link del d0")
    return found


def settle() -> None:
    """What a running Debian has and this guest has not: udev's link, the time, lists of the modules
    that are there."""
    os.symlink("/proc/self/fd", "/dev/fd")
    # The guest's clock starts at a fixed day, before the package's files were made: make would take
    # their times for errors.
    (path,) = PACKAGES.glob("qjump-dkms_0.1_*")
    package = subprocess.check_output(["dpkg-deb", "--fsys-tarfile", path])
    with tarfile.open(fileobj=io.BytesIO(package)) as unpacked:
        command(f"date -s @{max(member.mtime for member in unpacked)}")
    for kernel in MODULES.iterdir():
        if Path(kernel, "modules.dep").exists():  # it does not where only headers are
            command(f"depmod {kernel.name}")


def main() -> None:
    settle()
    newer = next(path for path in MODULES.iterdir() if path.name != RELEASE)
    os.rename(newer, "/root/newer")
    # Somebody's own kernel without a single module: its lists are empty, and stay his.
    built_in = MODULES / "6.0.0-own"
    built_in.mkdir()
    for name in ("order", "builtin", "dep", "alias"):
        Path(built_in, f"modules.{name}").touch()
    results: dict[str, Any] = {"release": RELEASE, "newer": newer.name}

    def step(name: str, do: Any, *arguments: Any) -> None:
        print(f"qjump-mn: {name}", file=console, flush=True)
        results[name] = do(*arguments)

    with open("/dev/console", "w") as console:
        before = files()
        step("install", command, "dpkg -i /root/dkms/*_0.1_*.deb")
        step("installed", left, before)
        step("use", uses)
        os.rename("/root/newer", newer)
        before |= {str(newer), *(str(path) for path in newer.rglob("*"))}
        # As the maintainer script of linux-headers does it.
        hooks = f"run-parts --exit-on-error --arg={newer.name} /etc/kernel/header_postinst.d"
        step("new kernel", command, hooks)
        step("with the new kernel", left, before)
        step("reinstall", command, "dpkg -i /root/dkms/*_0.1_*.deb")
        step("reinstalled", left, before)
        command("tc qdisc del dev lo root; rmmod sch_qjump")
        step("upgrade", command, "dpkg -i /root/dkms/*_0.2_*.deb")
        step("upgraded", left, before)
        step("use again", uses)
        command("tc qdisc del dev lo root")
        step("remove", command, "dpkg -r qjump-dkms qjump-tc")
        step("removed", left, before)
        step("purge", command, "dpkg -P qjump-dkms qjump-tc")
        step("purged", left, before)
    Path("results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
