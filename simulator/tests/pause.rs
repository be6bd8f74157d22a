// SPDX-License-Identifier: GPL-2.0-or-later
//! 802.3x flow control: its times, its losses or none, and who waits with those who are meant.

use proptest::prelude::*;
use qjump_sim::{
    Bytes, Cable, Congestion, End, FlowSpec, Flows, Gap, Homa, LeafSpine, Limit, Marking, Pause,
    PortResult, Priority, Ps, Queue, Scenario, Scheme, Simulation, Source, Threshold, Topology,
    Transport, Tree, Workload, MS, NS, S, US,
};

const GBIT: u64 = 1_000_000_000;

fn scheme(queue: Queue, pause: Option<Pause>) -> Scheme {
    Scheme { queue, pause, ..Scheme::tcp() }
}

fn datagrams(src: u32, dst: u32, first: Ps, gap: Ps, count: u64) -> Source {
    Source { src, dst, level: 0, first, gap: Gap::Every(gap), bytes: Bytes::Fixed(1_500), count }
}

fn port(simulation: &Simulation, from: End, to: End) -> PortResult {
    *simulation.ports().iter().find(|port| port.from == from && port.to == to).unwrap()
}

/// A sender at 10 Gb/s, a receiver at 1 Gb/s, 1 us of cable each. Packets reach the switch from 2.2
/// us on, 1.2 us apart; the third, at 4.6 us, reaches xoff. The pause frame takes 51.2 ns and comes
/// at 5.6512 us, while the fifth packet is being sent. The switch sends a packet every 12 us from
/// 2.2 us on; so it holds one packet at 50.2 us and none at 62.2 us. When the fifth comes, at 7.0
/// us, 600 bytes of the first have left.
#[test]
fn pauses_begin_and_end_to_the_picosecond() {
    let cable = |rate| Cable { rate, delay: US };
    let tree = Tree::new().switch("s").host("a").host("b").cable("a", "s", cable(10 * GBIT)).cable(
        "b",
        "s",
        cable(GBIT),
    );
    let topology = tree.build().unwrap();
    let workload = Workload::of_sources(vec![datagrams(0, 1, 0, 0, 6)]);
    let run = |xon| {
        let pause = Pause { xoff: 4_500, xon, buffer: 7_500, per_level: false };
        let scheme = scheme(Queue::DropTail(Limit::None), Some(pause));
        let mut simulation = Simulation::watching(&topology, &scheme, &workload, 1).unwrap();
        simulation.run();
        let outcome = simulation.outcome();
        assert_eq!((outcome.counters.delivered.datagrams, outcome.counters.pauses), (6, 1));
        let sender = port(&simulation, End::Host(0), End::Switch(0));
        let receiver = port(&simulation, End::Switch(0), End::Host(1));
        assert_eq!((sender.longest, receiver.longest), (9_000, 6_900));
        (sender.paused, outcome.end)
    };
    // The sixth packet comes before the fifth has left; the last departs at 74.2 us.
    assert_eq!(run(1_500), (51_251_200 - 5_651_200, 75_200_000));
    // It begins at 63.2512 us, comes at 65.4512 us and takes 13 us more.
    assert_eq!(run(0), (63_251_200 - 5_651_200, 78_451_200));
}

/// Where no pause comes, a link with departures does as one without. Delays are such that no two
/// packets come at the same time: in what order those are taken may differ.
#[test]
fn without_pauses_nothing_is_different() {
    let cable = |delay| Cable { rate: 10 * GBIT, delay };
    let mut tree = Tree::new().switch("s").switch("t").cable("s", "t", cable(200_003));
    for (host, delay) in [
        ("a", 2_700_001),
        ("b", 2_710_027),
        ("c", 2_720_311),
        ("d", 2_731_009),
        ("e", 2_744_447),
        ("f", 2_757_773),
    ] {
        let switch = if host < "d" { "s" } else { "t" };
        tree = tree.host(host).cable(host, switch, cable(delay));
    }
    let topology = tree.build().unwrap();
    let flow = |src: u32| FlowSpec {
        start: u64::from(src) * 777_777,
        src,
        dst: (src + 1 + src % 4) % 6,
        packets: 300,
    };
    let workload = Workload::of_flows(Flows::List((0..6).map(flow).collect()));
    let never = Pause { xoff: u64::MAX - 1, xon: 0, buffer: u64::MAX, per_level: false };
    let queues = [
        Queue::DropTail(Limit::Bytes(30_000)),
        Queue::DropTail(Limit::Packets(20)),
        Queue::Marking(Marking { limit: 60_000, threshold: 10_000 }),
        Queue::Threshold(Threshold { limit: Limit::None, threshold: Limit::Bytes(20_000) }),
        Queue::Priority(Priority { limit: 30_000 }),
    ];
    for queue in queues {
        let run = |pause| {
            let scheme = Scheme { queue, pause, ..Scheme::dctcp() };
            let scenario = Scenario::new(topology.clone(), scheme, workload.clone());
            let mut outcome = scenario.run().unwrap();
            outcome.counters.events = 0;
            outcome
        };
        assert_eq!(run(None), run(Some(never)), "{queue:?}");
    }
}

fn cable() -> impl Strategy<Value = Cable> {
    (1u64..20, 0u64..5_000).prop_map(|(gb, ns)| Cable { rate: gb * GBIT, delay: ns * NS })
}

fn flows() -> impl Strategy<Value = Vec<(u64, u32, u32, u32)>> {
    prop::collection::vec((0u64..50, 0u32..12, 0u32..12, 1u32..150), 2..30)
}

/// Everything is delivered, and nothing hangs.
fn lossless(
    topology: &Topology,
    cables: &[Cable],
    flows: &[(u64, u32, u32, u32)],
    incast: bool,
    xoff: u64,
    xon: u64,
    queue: Queue,
) {
    let hosts = topology.hosts();
    let flows = flows.iter().map(|&(us, src, dst, packets)| {
        let dst = if incast { 0 } else { dst % hosts };
        let src = src % hosts;
        FlowSpec {
            start: us * US,
            src: if src == dst { (src + 1) % hosts } else { src },
            dst,
            packets,
        }
    });
    let headroom = cables
        .iter()
        .map(|c| Pause::headroom(c.delay, qjump_sim::ps_per_byte(c.rate).unwrap(), 1_500))
        .max();
    let pause = Pause { xoff, xon: xon % xoff, buffer: xoff + headroom.unwrap(), per_level: false };
    let mut scheme = scheme(queue, Some(pause));
    scheme.transport.max_rto = 10 * MS;
    let workload = Workload::of_flows(Flows::List(flows.collect()));
    let mut simulation = Simulation::new(topology, &scheme, &workload, 1).unwrap();
    simulation.run_until(100 * S);
    let outcome = simulation.outcome();
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
    assert_eq!(outcome.counters.full.total(), 0, "{:?}", outcome.counters);
    assert_eq!(outcome.counters.sent, outcome.counters.delivered);
    assert!(simulation.is_clean());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_in_a_leaf_spine(
        size in (1u32..4, 2u32..5, 1u32..4), edge in cable(), uplink in cable(), flows in flows(),
        incast: bool,
        xoff in 1u64..30_000, xon: u64, priority: bool,
    ) {
        let (racks, hosts_per_rack, spines) = size;
        let fabric = LeafSpine { racks, hosts_per_rack, spines, edge, uplink };
        let topology = Topology::leaf_spine(&fabric).unwrap();
        let queue = if priority {
            Queue::Priority(Priority { limit: u64::MAX })
        } else {
            Queue::DropTail(Limit::None)
        };
        lossless(&topology, &[edge, uplink], &flows, incast, xoff, xon, queue);
    }

    #[test]
    fn nothing_is_lost_in_a_tree(
        cables in prop::collection::vec(cable(), 18),
        parents in prop::collection::vec(0usize..100, 18), flows in flows(),
        incast: bool, xoff in 1u64..30_000, xon: u64,
    ) {
        let switch = |i: usize| format!("s{i}");
        let mut tree = (0..6).fold(Tree::new(), |tree, i| tree.switch(&switch(i)));
        for i in 1..6 {
            tree = tree.cable(&switch(i), &switch(parents[i] % i), cables[i]);
        }
        for i in 6..18 {
            let host = format!("h{i}");
            tree = tree.host(&host).cable(&host, &switch(parents[i] % 6), cables[i]);
        }
        let queue = Queue::DropTail(Limit::None);
        lossless(&tree.build().unwrap(), &cables, &flows, incast, xoff, xon, queue);
    }
}

/// ACKs that wait in hosts' own queues came into no switch: a host that neither sends nor receives
/// is not paused for them, whatever its number. Homa's grants wait behind data there.
#[test]
fn what_hosts_say_pauses_nobody() {
    let cable = Cable { rate: 10 * GBIT, delay: US };
    let mut tree = Tree::new().switch("x").switch("z").cable("x", "z", cable);
    for (host, switch) in [("h0", "z"), ("h1", "x"), ("h2", "x"), ("h3", "x")] {
        tree = tree.host(host).cable(host, switch, cable);
    }
    let congestion = Congestion::Homa(Homa { scheduled: 6 });
    let transport = Transport {
        delayed_ack: None,
        handshake: None,
        initial_rto: None,
        initial_window: 12,
        max_window: 1_000,
        ..Transport::linux(congestion)
    };
    let pause = Pause { xoff: 400, xon: 40, buffer: 400_000, per_level: false };
    let scheme = Scheme { transport, ..scheme(Queue::DropTail(Limit::None), Some(pause)) };
    let flow = |src, dst| FlowSpec { start: 0, src, dst, packets: 2_000 };
    let workload = Workload::of_flows(Flows::List(vec![flow(1, 2), flow(2, 1)]));
    let mut simulation =
        Simulation::watching(&tree.build().unwrap(), &scheme, &workload, 1).unwrap();
    simulation.run_until(2 * MS);
    let paused = [0, 1, 2, 3].map(|host| {
        let ports = simulation.ports();
        ports.iter().find(|port| port.from == End::Host(host)).unwrap().paused
    });
    assert!(paused[0] == 0 && paused[3] == 0 && paused[1] > 0 && paused[2] > 0, "{paused:?}");
}
