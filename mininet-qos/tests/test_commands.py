"""The commands, word by word. With unittest, so that every Python runs this with nothing installed:
``python -m unittest discover -s tests``."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Callable

import mininet_qos
from mininet_qos import commands
from mininet_qos.commands import End, QosError


class Interfaces(unittest.TestCase):
    def test_a_pair_has_its_queues_on_both_ends_and_each_end_its_namespace(self) -> None:
        words = commands.veth(End("h1-eth0", "02:00:00:00:00:01", "4711"), End("s1-eth1"), 8)
        self.assertEqual(
            " ".join(words),
            "ip link add name h1-eth0 address 02:00:00:00:00:01 numtxqueues 8 numrxqueues 8 netns "
            "4711 type veth peer name s1-eth1 numtxqueues 8 numrxqueues 8",
        )

    def test_a_vlan_maps_every_priority_to_the_level_of_its_number(self) -> None:
        same = "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7"
        self.assertEqual(
            commands.vlan("h1-eth0", 2),
            [
                f"link add link h1-eth0 name h1-eth0.2 type vlan id 2 egress-qos-map {same} "
                f"ingress-qos-map {same}",
                "link set h1-eth0.2 up",
            ],
        )

    def test_a_vlan_has_the_maps_that_are_asked_for(self) -> None:
        first, _ = commands.vlan("h1-eth0", 4094, {6: 7, 0: 1}, {7: 6})
        self.assertTrue(first.endswith("id 4094 egress-qos-map 0:1 6:7 ingress-qos-map 7:6"), first)


class Links(unittest.TestCase):
    def test_a_wire(self) -> None:
        shaping = commands.wire("s1-eth1", 10_000_000, 152_200, 1_000_000)
        self.assertEqual(
            shaping.tc,
            (
                "qdisc add dev s1-eth1 root handle 5: wire rate 10000000bit limit 152200 classify "
                "pcp delay 1000000ns",
            ),
        )
        self.assertEqual(
            (shaping.ip, shaping.undo_tc, shaping.undo_ip),
            ((), ("qdisc del dev s1-eth1 root",), ()),
        )

    def test_tbf_sends_a_frame_when_the_wire_is_free_and_delivers_its_last_bit(
        self,
    ) -> None:
        shaping = commands.tbf("s1-eth1", 10_000_000, 152_200, 1_000_000)
        self.assertEqual(
            shaping.tc[0],
            "qdisc add dev s1-eth1 root handle 5: tbf rate 10000000bit burst 1530 limit 1217600 "
            "overhead 28 mpu 84",
        )
        self.assertEqual(list(shaping.tc[1:-3]), commands.priorities("s1-eth1", "5:1", 152_200))
        self.assertEqual(
            shaping.tc[-3:],
            (
                "qdisc add dev i-s1-eth1 root netem rate 10000000bit 16 limit 1000 delay 1000000ns",
                "qdisc add dev s1-eth1 ingress",
                "filter add dev s1-eth1 parent ffff: matchall action mirred egress redirect dev "
                "i-s1-eth1",
            ),
        )
        self.assertEqual(shaping.ip, ("link add name i-s1-eth1 type ifb", "link set i-s1-eth1 up"))
        self.assertEqual(
            shaping.undo_tc, ("qdisc del dev s1-eth1 root", "qdisc del dev s1-eth1 ingress")
        )
        self.assertEqual(shaping.undo_ip, ("link del i-s1-eth1",))

    def test_a_long_and_fast_link_holds_all_that_is_on_its_way(self) -> None:
        shaping = commands.tbf("s1-eth1", 10**9, 152_200, 50_000_000)
        # 50 ms of frames of 84 bytes at 1 Gb/s are 74,404.
        self.assertEqual(
            shaping.tc[-3],
            "qdisc add dev i-s1-eth1 root netem rate 1000000000bit 16 limit 148809 delay "
            "50000000ns",
        )

    def test_what_an_end_receives_passes_a_qdisc(self) -> None:
        shaping = commands.received(commands.wire("s1-eth1", 10**7), "s1-eth1", "netem loss 1%")
        self.assertEqual(
            shaping.tc[1:],
            (
                "qdisc add dev i-s1-eth1 root netem loss 1%",
                "qdisc add dev s1-eth1 clsact",
                "filter add dev s1-eth1 ingress matchall action mirred egress redirect dev "
                "i-s1-eth1",
            ),
        )
        self.assertEqual(
            shaping.undo_tc, ("qdisc del dev s1-eth1 root", "qdisc del dev s1-eth1 clsact")
        )
        self.assertEqual(shaping.undo_ip, ("link del i-s1-eth1",))

    def test_netem_holds_what_comes_late_and_lets_the_others_pass(self) -> None:
        self.assertEqual(
            commands.impaired(10**9, loss=0.5, reorder=1, later=50_000_000, seed=3),
            "netem limit 148809 delay 50000000ns reorder 99.0000000% loss 0.5000000% seed 3",
        )

    def test_a_tag_becomes_the_priority_of_what_leaves(self) -> None:
        lines = commands.tagged_priorities("s1-eth1")
        self.assertEqual(lines[0], "qdisc add dev s1-eth1 clsact")
        to = "filter add dev s1-eth1 egress pref 1 protocol 802.1q flower vlan_prio"
        self.assertEqual(
            lines[1:], [f"{to} {level} action skbedit priority {level}" for level in range(1, 8)]
        )

    def test_the_first_band_is_level_7s_and_each_has_its_buffer(self) -> None:
        lines = commands.priorities("s1-eth1", "10:1", 15_220)
        self.assertEqual(
            lines[0],
            "qdisc add dev s1-eth1 parent 10:1 handle 20: prio bands 8 priomap" + " 7" * 16,
        )
        self.assertEqual(
            lines[1:3] + lines[-2:],
            [
                "qdisc add dev s1-eth1 parent 20:8 handle 21: bfifo limit 15220",
                "filter add dev s1-eth1 parent 20: protocol 802.1q prio 1 flower vlan_prio 0 "
                "classid 20:8",
                "qdisc add dev s1-eth1 parent 20:1 handle 28: bfifo limit 15220",
                "filter add dev s1-eth1 parent 20: protocol 802.1q prio 8 flower vlan_prio 7 "
                "classid 20:1",
            ],
        )
        self.assertEqual(len(lines), 17)


class OpenVSwitch(unittest.TestCase):
    def test_a_port_has_eight_queues_of_which_level_7_takes_first(self) -> None:
        words = commands.ovs_qos({"s1-eth1": 10_000_000}, commands.owned("s1"))
        whole = " ".join(words)
        owner = "external_ids:owner=mininet-qos external_ids:switch=s1"
        self.assertTrue(whole.startswith("ovs-vsctl set port s1-eth1 qos=@qos-s1-eth1 -- "), whole)
        self.assertIn(
            "-- --id=@qos-s1-eth1 create qos type=linux-htb other-config:max-rate=10000000 "
            "queues=0=@q-s1-eth1-0,1=@q-s1-eth1-1,2=@q-s1-eth1-2,3=@q-s1-eth1-3,4=@q-s1-eth1-4,"
            f"5=@q-s1-eth1-5,6=@q-s1-eth1-6,7=@q-s1-eth1-7 {owner} --",
            whole,
        )
        for level in range(8):
            self.assertIn(
                f"-- --id=@q-s1-eth1-{level} create queue other-config:priority={7 - level} "
                f"other-config:max-rate=10000000 {owner}",
                whole,
            )

    def test_ports_of_several_rates_are_one_command(self) -> None:
        words = commands.ovs_qos({"s1-eth1": 10, "s1-eth2": 20}, commands.owned("s1"))
        self.assertEqual((words.count("set"), words.count("create")), (2, 2 * 9))
        self.assertEqual(words.count("other-config:max-rate=20"), 9)

    def test_queues_are_chosen_by_the_pcp_of_tagged_frames(self) -> None:
        rules = commands.ovs_flows()
        self.assertEqual(
            (rules[0], rules[6]),
            (
                "cookie=0x716f73,priority=100,vlan_tci=0x1000/0xf000,actions=set_queue:0,NORMAL",
                "cookie=0x716f73,priority=100,vlan_tci=0xd000/0xf000,actions=set_queue:6,NORMAL",
            ),
        )

    def test_queues_are_bounded_below_the_classes_that_open_vswitch_makes(self) -> None:
        self.assertEqual(
            commands.ovs_buffers("s1-eth1", 15_220)[6],
            "qdisc add dev s1-eth1 parent 1:7 handle 27: bfifo limit 15220",
        )

    def test_only_our_rows_are_looked_for_and_destroyed(self) -> None:
        find = "ovs-vsctl --bare --columns=_uuid find queue external_ids:owner=mininet-qos"
        self.assertEqual(" ".join(commands.ovs_rows("queue", commands.owned())), find)
        self.assertEqual(
            " ".join(commands.ovs_rows("queue", commands.owned("s1"))),
            f"{find} external_ids:switch=s1",
        )
        destroy = commands.ovs_destroy({"qos": ["a"], "queue": ["b", "c"]})
        self.assertEqual(
            " ".join(destroy), "ovs-vsctl -- destroy qos a -- destroy queue b -- destroy queue c"
        )


class Mistakes(unittest.TestCase):
    def refused(self, sentence: str, make: Callable[..., Any], *arguments: Any) -> None:
        with self.assertRaises(QosError) as caught:
            make(*arguments)
        self.assertEqual(str(caught.exception), sentence)

    def test_a_vlan_that_there_is_not(self) -> None:
        for number in (0, 4095, "2", 2.0):
            with self.subTest(number):
                self.refused(
                    f"vlan={number!r}: a VLAN's number is from 1 to 4094",
                    commands.vlan,
                    "h1-eth0",
                    number,
                )

    def test_a_level_that_there_is_not(self) -> None:
        for levels in ({}, {6: 8}, {-1: 0}, {8: 0}, {"6": 6}):
            with self.subTest(levels):
                self.refused(
                    f"egress={levels}: priorities and levels are from 0 to 7, as in {{0: 0, 6: 7}}",
                    commands.vlan,
                    "h1-eth0",
                    2,
                    levels,
                )

    def test_a_name_that_is_too_long_for_linux(self) -> None:
        self.assertEqual(commands.ifb("s10000-eth10"), "i-s10000-eth10")
        self.refused(
            "i-switch01-eth10 is longer than the 15 characters of an interface's name: give the "
            "node a shorter name",
            commands.ifb,
            "switch01-eth10",
        )
        self.assertEqual(commands.vlan_name("host01-eth10", 10), "host01-eth10.10")
        self.refused(
            "host01-eth10.100 is longer than the 15 characters of an interface's name: give the "
            "host a shorter name, or its VLAN a shorter number",
            commands.vlan_name,
            "host01-eth10",
            100,
        )


class Package(unittest.TestCase):
    def test_its_classes_are_listed_before_they_are_imported(self) -> None:
        self.assertLessEqual({"WireLink", "VLANHost", "PrioritySwitch"}, {*dir(mininet_qos)})

    def test_the_commands_need_no_mininet_and_the_classes_say_that_they_do(self) -> None:
        code = (
            "import sys; sys.modules['mininet'] = None\n"
            "import mininet_qos.commands\n"
            "try:\n    mininet_qos.WireLink\nexcept ImportError as error:\n    print(error)\n"
        )
        env = {"PYTHONPATH": str(Path(commands.__file__).parents[1])}
        text = subprocess.run(
            [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, check=True
        ).stdout.decode()
        self.assertEqual(
            text.strip(),
            "mininet_qos.WireLink needs Mininet, which pip does not have: apt install mininet, "
            "and use a Python that sees it (python3 -m venv --system-site-packages)",
        )


if __name__ == "__main__":
    unittest.main()
