"""Commands in the machine, as a user runs them: Mininet's mn, scripts, sessions."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.guest

NETWORK = """\
import argparse, sys
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo

words = argparse.ArgumentParser()
words.add_argument("--count", type=int)
words = words.parse_args()
topo = SingleSwitchTopo(2, lopts={"bw": 10, "delay": "2ms"})
net = Mininet(topo=topo, link=TCLink, controller=None)
net["s1"].failMode = "standalone"
net.start()
net.ping(timeout="2")
printed = net["h1"].cmd("ping -c", words.count, net["h2"].IP())
print(printed)
open("ping.txt", "w").write(printed)
net.stop()
sys.exit(3)
"""

SESSION = "nodes\nh1 ping -c 2 h2\npy h1.IP()\nexit\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/net.py").write_text(NETWORK)
    return tmp_path


def argv(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "qjump_mn.run", *words]


def mn(*words: str, typed: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `qjump-mn mn`; `typed` is its standard input."""
    done = subprocess.run(
        argv("mn", *words), input=typed, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def last(name: str) -> Path:
    return Path("results/last/trials/mn/1/raw", name)


def test_mininets_own_command_gives_the_same_bytes_again() -> None:
    first = mn("--test", "pingall")
    assert "*** Results: 0% dropped (2/2 received)" in first.stdout
    assert "s1-eth1 and 3 more have no rate" in first.stderr
    again = mn("--test", "pingall")
    assert again.stdout == first.stdout
    assert "identical to your run of" in again.stderr


def test_script_gets_its_words_and_its_files_and_code_come_back() -> None:
    done = mn("--seed", "1..2", "own/net.py", "--count", "3", code=3)
    assert "rtt min/avg/max/mdev = 8." in done.stdout
    assert "3 packets transmitted, 3 received" in last("files/ping.txt").read_text()
    assert "it wrote 1 file: results/mn-" in done.stderr
    assert sorted(path.name for path in Path("own").iterdir()) == ["net.py"]
    verified = subprocess.run(argv("verify"), capture_output=True, text=True)
    assert "identical: all" in verified.stdout, verified.stdout + verified.stderr
    assert "2 of 2 seeds run again" in verified.stdout


def test_tclink_is_a_wire_if_asked() -> None:
    done = mn("--link", "qjwire", "own/net.py", "--count", "3", code=3)
    assert "TCLink is WireLink of mininet-qos here" in done.stderr
    # Four times 2 ms, and 98 bytes with preamble and check sequence (12) at 10 Mb/s.
    average = re.search(r"mdev = [\d.]+/([\d.]+)/", done.stdout)
    assert average and abs(float(average[1]) - (8 + 4 * 8 * (98 + 12) / 1e4)) < 0.002
    assert re.search(r"h1-eth0 +10 Mb/s +\d+ +0 +up to [\d.]+ us", done.stderr)


@pytest.mark.parametrize("link", ["", "qjwire"])
def test_links_lose_other_frames_with_another_seed(link: str) -> None:
    lossy = NETWORK.replace('"delay": "2ms"', '"delay": "2ms", "jitter": "1ms", "loss": 20')
    Path("own/net.py").write_text(lossy)
    options = ("--link", link) if link else ()
    words = ("own/net.py", "--count", "30")
    first, again = (mn(*options, *words, code=3).stdout for _ in range(2))
    other = mn("--seed", "2", *options, *words, code=3).stdout
    replies = set(re.findall(r"icmp_seq=(\d+)", first))
    assert 5 < len(replies) < 30
    assert again == first
    assert set(re.findall(r"icmp_seq=(\d+)", other)) != replies


def test_session_is_a_function_of_its_lines() -> None:
    first = mn("--record", "typed", typed=SESSION)
    for text in ("available nodes are: \nc0 h1 h2 s1", "2 received, 0% packet loss", "10.0.0.1\n"):
        assert text in first.stdout
    again = mn("--replay", "typed")
    assert again.stdout == first.stdout
    assert "identical to your run of" in again.stderr


def test_plain_reads_get_their_lines() -> None:
    script = "sleep 1; echo asks; read one; sleep 1; read two; echo $two $one; cat"
    done = mn("--", "sh", "-c", script, typed="1\n2\n3\n")
    assert done.stdout == "asks\n1\n2\n2 1\n3\n3\n"
    assert json.loads(last("end.json").read_text())["time_ns"] < 3e9


def test_deadline_and_missing_program() -> None:
    late = mn("--deadline", "2s", "--", "sleep", "100", code=124)
    assert "was ended at its deadline after 2.00" in late.stderr
    assert mn("--", "nosuch", code=127).stdout == "nosuch: no such file or directory\n"


def test_deadline_ends_a_command_whatever_runs_in_the_background() -> None:
    for script in (
        "echo begins; setsid sleep 1000 & sleep 100",
        # More often than the runner looks at the clock.
        "while true; do echo line; sleep 0.0003; done",
    ):
        late = mn("--deadline", "2s", "--", "sh", "-c", script, code=124)
        assert "was ended at its deadline after 2.00" in late.stderr


def test_kernel_tells_what_tcp_does() -> None:
    events = "/sys/kernel/tracing/events/tcp/tcp_probe"
    script = f"""\
echo 1 > {events}/enable
iperf -s > /dev/null & iperf -c 127.0.0.1 -n 10K > /dev/null
grep -c 'tcp_probe: .* snd_cwnd=10 ' /sys/kernel/tracing/trace
"""
    assert int(mn("--", "sh", "-c", script).stdout) > 0


def test_share_of_a_processor_limits_nothing(here: Path) -> None:
    script = NETWORK.replace("controller=None", "controller=None, host=CPULimitedHost")
    script = f"from mininet.node import CPULimitedHost\n{script}"
    script = script.replace("net.start()", 'net["h1"].setCPUFrac(0.1)\nnet.start()')
    (here / "own/net.py").write_text(script)
    done = mn("own/net.py", "--count", "1", code=3)
    assert "CPULimitedHost is a Host here" in done.stderr


def test_added_packages_are_ready_to_use(here: Path) -> None:
    """requests needs a bundle of certificates, and frr a user with groups of its own."""
    (here / "own/get.py").write_text("import pwd, requests\nprint(pwd.getpwnam('frr').pw_name)\n")
    assert mn("--packages", "frr", "own/get.py").stdout == "frr\n"


def test_what_the_kernel_lacks_is_said() -> None:
    done = mn("--nat", "--switch", "lxbr", "--test", "none")
    probes = "iptables -t nat -S || echo nat; brctl addbr probe || echo bridge"
    lacks = mn("--", "sh", "-c", probes).stdout
    for text, part in (
        ("NAT translates no addresses: ", "nat"),
        ("LinuxBridge forwards nothing: ", "bridge"),
    ):
        assert (text in done.stderr) == (f"{part}\n" in lacks), done.stderr


class Person:
    """Somebody at a terminal."""

    def __init__(self, words: Sequence[str]) -> None:
        self.process_id, self.terminal = pty.fork()
        if self.process_id == 0:
            # Tests in the background of a shell ignore it, and so would what they start.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execv(sys.executable, argv("mn", *words))
        self.seen = b""

    def waits_for(self, text: str) -> str:
        """Read until the text appears; return all that was read."""
        until = time.monotonic() + 120
        while text.encode() not in self.seen:
            assert time.monotonic() < until, self.seen.decode(errors="replace")
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.terminal, 4096)
                except OSError:
                    break
        shown, _, self.seen = self.seen.partition(text.encode())
        return (shown + text.encode()).decode(errors="replace").replace("\r\n", "\n")

    def types(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def exit_code(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.process_id, 0)[1])


def test_person_types_and_interrupts() -> None:
    person = Person(["--record", "typed"])
    person.waits_for("mininet> ")
    person.types("h1 ping h2\n")
    person.waits_for("icmp_seq=3")
    person.types("\x03")
    statistics = person.waits_for("mininet> ")
    assert "0% packet loss" in statistics
    person.types("exit\n")
    person.waits_for("run: results/mn-")
    assert person.exit_code() == 0
    output = last("output").read_bytes()
    assert b"Interrupt" not in output and b"h1 ping h2\n" in output
    mn("--replay", "typed")
    assert last("output").read_bytes() == output


def test_termination_does_not_wait_for_a_person() -> None:
    person = Person(["--", "sh", "-c", "echo asks; read line"])
    person.waits_for("asks")
    os.kill(person.process_id, signal.SIGTERM)
    person.waits_for("everything that was started has been ended")
    assert person.exit_code() == 130


def test_killed_program_leaves_no_machine() -> None:
    process = subprocess.Popen(
        argv("mn", "--", "sleep", "100000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while not (children := machines(process.pid)):
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < until
        time.sleep(0.05)


def machines(parent: int) -> list[str]:
    """Return the machines that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            fields = path.with_name("stat").read_text().rpartition(")")[2].split()
            if b"host_files=" in path.read_bytes() and int(fields[1]) == parent:
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_pipe_that_nobody_reads_does_not_stop_the_command() -> None:
    words = " ".join(argv("mn", "--", "sh", "-c", "'seq 100000; echo end'"))
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    assert last("output").read_text().endswith("100000\nend\n")


def test_program_that_never_sleeps_loses_the_machine_but_not_what_it_printed() -> None:
    done = mn("--", "sh", "-c", "echo begins; sleep 1; while :; do :; done", code=5)
    assert done.stdout == "begins\n" == last("output").read_text()
    assert "a loop that waits must sleep" in done.stderr


TRACED = """\
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from mininet_qos import PrioritySwitch, WireLink

# 5 frames in each 10 ms: 500 frames/s.
ways = {"bw": 1000, "trace": "cell.trace"}
net = Mininet(SingleSwitchTopo(2, lopts=ways), switch=PrioritySwitch, link=WireLink, controller=None)
net.start()
net["h2"].cmd("iperf3 -s -D")
net["h1"].cmd("iperf3 -u -b 20M -t 4 -c", net["h2"].IP(), "&")
received = "cat /sys/class/net/h2-eth0/statistics/rx_packets"
first = int(net["h2"].cmd("sleep 1;", received))
print(int(net["h2"].cmd("sleep 2;", received)) - first)
net.stop()
"""


def test_link_follows_a_trace(tmp_path: Path) -> None:
    (tmp_path / "own/cell.trace").write_text("2\n4\n6\n8\n10\n")
    (tmp_path / "own/net.py").write_text(TRACED)
    assert int(mn("own/net.py").stdout) == pytest.approx(1000, abs=5)


def test_trace_that_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own/cell.trace").write_text("2\nfour\n")
    (tmp_path / "own/net.py").write_text(TRACED)
    done = mn("own/net.py", code=1)
    assert "WireLink: trace='cell.trace':2: 'four' is not a time in ms" in done.stderr + done.stdout
