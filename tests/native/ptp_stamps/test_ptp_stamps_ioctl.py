"""native/ptp-stamps on this host: what a program is told that asks a device for its time stamps.
What ptpd does with it: tests/guest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "native" / "ptp-stamps"
TX_SOFTWARE, RX_SOFTWARE, SOFTWARE = 1 << 1, 1 << 3, 1 << 4  # include/uapi/linux/net_tstamp.h

# Prints what the loopback offers, its index, and the error for a device that does not exist.
PROBE = """
import ctypes, errno, fcntl, socket, struct
SIOCETHTOOL, GET_TS_INFO, GET_LINK, SIOCGIFINDEX = 0x8946, 0x41, 0x0A, 0x8933
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def ethtool(device, command):
    data = ctypes.create_string_buffer(struct.pack("I", command), 44)
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP16x", device, ctypes.addressof(data)))
    return struct.unpack_from("II", data.raw)[1]
print(ethtool(b"lo", GET_TS_INFO), ethtool(b"lo", GET_LINK), struct.unpack_from("16si", fcntl.ioctl(s, SIOCGIFINDEX, struct.pack("16s16x", b"lo")))[1])
try: ethtool(b"none", GET_TS_INFO)
except OSError as error: print(errno.errorcode[error.errno])
"""


CALLER = r"""
int main(void) {
  struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };
  struct ifreq wanted = { .ifr_name = "lo", .ifr_data = (void *)&info };
  int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = -1;
  int got = ioctl(fd, SIOCETHTOOL, &wanted), size = ioctl(fd, FIONREAD, &bytes), none = ioctl(-1, SIOCETHTOOL, NULL);
  printf("%d %d %d %d %u\n", got, size, none, bytes, info.so_timestamping & 2);
  return 0; }
"""


def probe(**environment: str) -> list[str]:
    argv, env = [sys.executable, "-c", PROBE], os.environ | environment
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = sorted(SOURCE.rglob("*"))
    made = tmp_path_factory.mktemp("ptp-stamps")
    argv = ["make", "-C", str(SOURCE), f"BUILD={made}"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(SOURCE.rglob("*")) == before, "an out-of-tree build leaves the sources alone"
    yield made


def test_only_the_times_of_sending_are_withheld(folder: Path) -> None:
    plain, withheld = probe(), probe(LD_PRELOAD=str(folder / "libptpstamps.so"))
    assert int(plain[0]) & TX_SOFTWARE, "the loopback offers them"
    assert int(withheld[0]) == int(plain[0]) & ~TX_SOFTWARE
    assert int(withheld[0]) & (RX_SOFTWARE | SOFTWARE) == RX_SOFTWARE | SOFTWARE
    assert withheld[1:] == plain[1:] == ["1", "1", "ENODEV"]


def test_it_installs_where_the_guest_looks(folder: Path, tmp_path: Path) -> None:
    places = f"BUILD={folder} DESTDIR={tmp_path} PREFIX=/usr"
    subprocess.run(["make", "-s", "-C", SOURCE, "install", *places.split()], check=True)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [tmp_path / "usr/lib/qjump-mn/libptpstamps.so"]


@pytest.mark.parametrize("sanitizer", ["address", "undefined"])
def test_sanitizers_find_nothing(sanitizer: str, tmp_path: Path) -> None:
    """The library in a program of its own that makes the same calls."""
    caller = tmp_path / "caller.c"
    names = ("linux/ethtool", "linux/sockios", "net/if", "stdio", "sys/ioctl", "sys/socket")
    caller.write_text("".join(f"#include <{name}.h>\n" for name in names) + CALLER)
    program = tmp_path / "caller"
    options = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-g", "-o"]
    subprocess.run(["gcc", *options, program, caller, SOURCE / "ptp-stamps.c"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 0 -1 0 0\n", "")
