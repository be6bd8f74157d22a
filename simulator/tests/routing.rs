// SPDX-License-Identifier: GPL-2.0-or-later
//! Adaptive routing and flowlets where paths differ.

use qjump_sim::apps::{App, Bulk};
use qjump_sim::{
    Bytes, Cable, End, Gap, Graph, Limit, Outcome, Ps, Queue, Routing, Scenario, Scheme,
    Simulation, Source, Topology, Transport, Tree, Workload, MS, US,
};

const GBIT: u64 = 1_000_000_000;
const EDGE: Cable = Cable { rate: 10 * GBIT, delay: US };

/// Eight senders on one leaf, eight receivers on the other, and a spine for each of these cables.
fn fabric(uplinks: &[Cable]) -> Topology {
    let mut tree = Tree::new().switch("l").switch("r");
    for (number, cable) in uplinks.iter().enumerate() {
        let spine = format!("s{number}");
        tree = tree.switch(&spine).cable("l", &spine, *cable).cable(&spine, "r", *cable);
    }
    for (leaf, letter) in [("l", 'a'), ("r", 'b')] {
        for number in 0..8 {
            let name = format!("{letter}{number}");
            tree = tree.host(&name).cable(&name, leaf, EDGE);
        }
    }
    Graph::new(tree).build().unwrap()
}

/// The share of datagrams that arrive if eight hosts offer this much together, in Mb/s.
fn delivered(topology: &Topology, routing: Routing, offered: u64) -> f64 {
    let gap = 1_500 * 8 * 8 * 1_000_000 / offered;
    let source = |src| Source {
        src,
        dst: 8 + src,
        level: 0,
        first: u64::from(src) * gap / 8,
        gap: Gap::Every(gap),
        bytes: Bytes::Fixed(1_500),
        count: 20_000,
    };
    let workload = Workload::of_sources((0..8).map(source).collect());
    let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(150)), routing, ..Scheme::tcp() };
    let outcome = Scenario::new(topology.clone(), scheme, workload).run().unwrap();
    let arrived: u64 = outcome.sources.iter().map(|source| source.delivered).sum();
    arrived as f64 / (8.0 * 20_000.0)
}

/// Three uplinks of 10 Gb/s and one of 2.5: least loaded, all 32.5 Gb/s can be used; in turn, each
/// gets a quarter, of which the slow one drops what exceeds its rate.
#[test]
fn the_least_loaded_link_uses_a_slow_one_too() {
    let cable = |rate| Cable { rate, delay: US };
    let topology = fabric(&[10, 10, 10, 0].map(|rate| cable((rate * GBIT).max(GBIT * 5 / 2))));
    assert!((delivered(&topology, Routing::Adaptive, 32_000) - 1.0).abs() < 1e-9);
    let (over, in_turn) = (
        delivered(&topology, Routing::Adaptive, 65_000),
        delivered(&topology, Routing::Spray, 32_000),
    );
    assert!((over - 32.5 / 65.0).abs() < 0.01, "{over}");
    assert!((in_turn - (3.0 * 8.0 + 2.5) / 32.0).abs() < 0.01, "{in_turn}");
}

fn bursts(routing: Routing) -> (Outcome, Vec<u64>) {
    let cable = |delay: Ps| Cable { rate: 10 * GBIT, delay };
    let topology = fabric(&[cable(10 * US), cable(20 * US)]);
    // A window of 8 packets is a burst a round trip, of 44 us or more. A packet out of order is
    // taken for lost.
    let tcp = Scheme::tcp();
    let transport =
        Transport { dupacks: Some(1), initial_window: 8, min_rto: 10 * MS, ..tcp.transport };
    let queue = Queue::DropTail(Limit::None);
    let scheme = Scheme { queue, routing, transport, ..tcp };
    let bulk = |src| {
        let (until, interval, window) = (20 * MS, MS, Some(8));
        App::Bulk(Bulk { src, dst: 8 + src, level: 0, start: 0, until, window, interval })
    };
    let workload = Workload::of_apps((0..8).map(bulk).collect());
    let mut simulation = Simulation::watching(&topology, &scheme, &workload, 1).unwrap();
    simulation.run();
    // Bytes at both uplinks: their longest queues.
    let up = |port: &&qjump_sim::PortResult| {
        port.from == End::Switch(0) && matches!(port.to, End::Switch(_))
    };
    let used = simulation.ports().iter().filter(up).map(|port| port.longest).collect();
    (simulation.outcome(), used)
}

/// Paths differ by 20 us. Flowlets with a longer gap use both and reorder nothing; packets in turn
/// do.
#[test]
fn flowlets_stay_in_order() {
    let (outcome, used) = bursts(Routing::Flowlets { gap: 25 * US });
    assert_eq!(outcome.counters.retransmitted, 0);
    assert!(used.len() == 2 && used.iter().all(|&bytes| bytes > 0), "{used:?}");
    assert!(bursts(Routing::Spray).0.counters.retransmitted > 0);
    assert!(bursts(Routing::Adaptive).0.counters.retransmitted > 0);
}
