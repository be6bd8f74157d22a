"""The curated packages in a guest: each program starts there, and the machine's own files stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.guest import Image, Job, Setup
from qjump_mn.guest.images import with_archives
from qjump_mn.toolbox import added
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.packages import GoneError
from tests.guest.laboratory import run_well
from tests.support import newc

pytestmark = pytest.mark.guest

MAX_BYTES = 25 << 20
PROGRAMS = {
    "iperf --version": "iperf version 2.",
    "python -c 'import pexpect; print(pexpect.__version__)'": "4.",
    "nc -h": "OpenBSD netcat",
    "iptables-legacy -V": "iptables v1.",
    "which ls": "/usr/bin/ls",
    "ifconfig lo": "lo: flags",
    "curl --version": "curl 8.",
    "ovs-testcontroller --version": "ovs-testcontroller (Open vSwitch)",
    "wget --version": "GNU Wget",
    "traceroute --version": "Modern traceroute",
    "killall --version": "killall (PSmisc)",
    "brctl --version": "bridge-utils",
    "vconfig": "Warning: vconfig is deprecated",
    "telnet --help": "Usage: telnet",
    "find /etc/alternatives -name nc | xargs readlink": "/bin/nc.openbsd",
    "tar --version": "tar (GNU tar)",
    "gzip --version": "gzip 1.",
    "diff --version": "diff (GNU diffutils)",
    "pidof -s nothing; echo $?": "1",
    "readlink /bin": "usr/bin",
}
SCRIPT = """
import json, subprocess
from pathlib import Path
said = {}
for line in json.loads(Path(__file__).with_name("lines.json").read_text()):
    done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said[line] = done.stdout.decode()
Path("said.json").write_text(json.dumps(said))
"""


def test_curated_programs_start_in_the_guest(image: Image, tmp_path: Path) -> None:
    lock = locks.read(added.NAME)
    try:
        archive = added.archive(lock, print)
    except GoneError as error:
        pytest.skip(str(error))
    assert archive.stat().st_size < MAX_BYTES
    assert not {"bin", "sbin", "lib", "lib64"} & newc.read(archive).keys()
    larger = with_archives(image, [archive], print, added=[lock])
    assert larger.initrd.stat().st_size >= image.initrd.stat().st_size + archive.stat().st_size
    assert larger.sha256["initrd"] == cache.hash_of_file(larger.initrd)
    assert larger.identity != image.identity
    assert {f"{one.package.name}={one.package.version}" for one in lock.have} <= {*larger.packages}
    assert with_archives(image, [archive], print, added=[lock]) == larger
    job = Job(script=SCRIPT, files={"lines.json": json.dumps([*PROGRAMS])})
    run_well(larger, Setup(), job, tmp_path / "out")
    said = json.loads((tmp_path / "out/said.json").read_text())
    assert {line for line in PROGRAMS if PROGRAMS[line] not in said[line]} == set()
