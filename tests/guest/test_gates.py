"""What stops the clock of taprio's gates, so that nothing is sent any more: on kernels before Linux
7 whatever is added to its interface, even beside it. So a scheme's gates come after all that a
trial adds there (`qjump_mn.steps.apply_arm`), for the host backend may run on one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qjump_mn.guest import Image, Job, Setup
from tests.guest import vm
from tests.guest.checks import kernel_image
from tests.guest.laboratory import run_well

pytestmark = pytest.mark.guest

CYCLE = "base-time 0 sched-entry S 01 10000000 sched-entry S 02 10000000 clockid CLOCK_TAI"
"""Two classes take turns, 10 ms each."""

TWO_CLASSES = f"""
import json, subprocess, time
def sh(line):
    return subprocess.run(line, shell=True, capture_output=True, text=True)
def must(line):
    done = sh(line)
    assert not done.returncode, done
def answered():
    "Of ten pings of each class: by this TOS their priority is 0, and 6."
    answers = []
    for tos in (0, 16):
        said = sh(f"ping -Q {{tos}} -q -c 10 -i 0.023 -W 1 10.0.0.2").stdout
        answers.append(int(said.partition(" packets transmitted, ")[2].split()[0]))
    return answers
must("ip netns add far")
must("ip link add name near numtxqueues 2 type veth peer name there")
must("ip link set there netns far")
must("ip -n far addr add 10.0.0.2/24 dev there && ip -n far link set there up")
must("ip addr add 10.0.0.1/24 dev near && ip link set near up")
for end, other in (("", "-n far"), ("-n far", "")):
    device, address, of = ("there", "10.0.0.2", "near") if other else ("near", "10.0.0.1", "there")
    (link,) = json.loads(sh(f"ip {{other}} -j link show {{device}}").stdout)
    must(f"ip {{end}} neigh add {{address}} lladdr {{link['address']}} dev {{of}}")
must("tc qdisc add dev near root handle 100: taprio num_tc 2 map 0 0 0 0 0 0 1 1 0 0 0 0 0 0 0 0 "
     "queues 1@0 1@1 {CYCLE}")
found = {{"gates": answered()}}
must("tc qdisc add dev near clsact")
found["clsact"] = answered()
must("tc qdisc change dev near root handle 100: taprio {CYCLE}")
found["changed"] = answered()
must("tc qdisc add dev near parent 100:1 handle 30: pfifo limit 100")
found["child"] = answered()
must("tc qdisc change dev near root handle 100: taprio {CYCLE}")
found["changed again"] = answered()
open("answered.json", "w").write(json.dumps(found))
"""


def answered(out: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = json.loads((out / "answered.json").read_text())
    return found


def test_what_is_added_to_an_interface_leaves_its_gates_moving(
    image: Image, booted: Setup, tmp_path: Path
) -> None:
    run_well(image, booted, Job(script=TWO_CLASSES), tmp_path)
    assert all(pings == [10, 10] for pings in answered(tmp_path).values()), answered(tmp_path)


@pytest.mark.nightly
def test_on_linux_6_12_it_stops_them(tmp_path: Path) -> None:
    ended = vm.run(kernel_image("6.12"), Setup(), Job(script=TWO_CLASSES), tmp_path)
    assert ended.exit_code == 0, (tmp_path / "stderr").read_text()
    for moving in ("gates", "changed", "changed again"):
        assert answered(tmp_path)[moving] == [10, 10], moving
    # Of the part of the cycle in which the clock stands still there may be room left for one ping.
    for stopped in ("clsact", "child"):
        assert sum(answered(tmp_path)[stopped]) <= 1, stopped


NEVER_FITS = """
import json, os, socket, subprocess, time
def must(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert not done.returncode, (line, done)
def arrived(most):
    "Datagrams of 60 that were sent as one packet, and then of ten more, with gates that know of ``most``."
    must("tc qdisc replace dev near root handle 1: pfifo")
    must("tc qdisc replace dev near root handle 100: taprio num_tc 2 map 0 0 0 0 0 0 1 1 0 0 0 0 0 0 0 0 "
         f"queues 1@0 1@1 base-time 0 {most} sched-entry S 01 WINDOW sched-entry S 02 WINDOW clockid CLOCK_TAI")
    time.sleep(0.01)  # until the first cycle all gates are open
    found = []
    for batch in (60, *[1] * 10):
        sender.sendmsg([bytes(100 * batch)], [(socket.IPPROTO_UDP, 103, (100).to_bytes(2, "little"))])
    try:
        while True:
            found.append(len(receiver.recv(2000)))
    except TimeoutError:
        return found
must("ip netns add far")
must("ip link add name near numtxqueues 2 type veth peer name there netns far")
must("ip -n far addr add 10.0.0.2/24 dev there && ip -n far link set there up")
must("ip addr add 10.0.0.1/24 dev near && ip link set near up && ping -c 1 10.0.0.2")
here = os.open("/proc/self/ns/net", os.O_RDONLY)
os.setns(os.open("/run/netns/far", os.O_RDONLY), os.CLONE_NEWNET)
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("10.0.0.2", 7))
receiver.settimeout(1)
os.setns(here, os.CLONE_NEWNET)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(("10.0.0.2", 7))
open("arrived.json", "w").write(json.dumps([arrived(""), arrived("max-sdu 1500 1500")]))
"""


@pytest.mark.parametrize("of_a_packet, stuck", [("its bytes", True), ("its headers too", False)])
def test_what_fits_a_window_only_without_its_headers_is_never_sent(
    image: Image, booted: Setup, tmp_path: Path, of_a_packet: str, stuck: bool
) -> None:
    """60 datagrams of 100 bytes are a packet of 6,042 before they are segmented, and 8,520
    afterwards: at 10 Gb/s 4.8 and 6.8 us. Linux compares the first with the window and waits for
    the second; so nothing is sent any more (hence ``max-sdu`` in schemes/taprio.toml, which makes
    it segment what is larger)."""
    window_ns = 6_000 if stuck else 7_500
    script = NEVER_FITS.replace("WINDOW", str(window_ns))
    run_well(image, booted, Job(script=script), tmp_path)
    plain, segmented = json.loads((tmp_path / "arrived.json").read_text())
    assert plain == ([] if stuck else [100] * 70)
    assert segmented == [100] * 70
