// SPDX-License-Identifier: GPL-2.0-or-later
//! Deficit round robin on a link that several sources fill: each gets the same bytes, whatever it
//! offers and in packets of whatever size.

use qjump_sim::{
    Bytes, Cable, FlowSpec, Flows, Gap, LeafSpine, Limit, Queue, RoundRobin, Scenario, Scheme,
    Source, Topology, Tree, Workload, MS, S, US,
};

/// Three hosts send to a fourth for 100 ms by one link of 1 Gb/s, each more than a third of it;
/// what is delivered of each, in bytes.
fn delivered(queue: Queue) -> [u64; 3] {
    let cable = Cable { rate: 1_000_000_000, delay: US };
    let names = ["a", "b", "c", "d"];
    let tree = names
        .iter()
        .fold(Tree::new().switch("s"), |tree, name| tree.host(name).cable(name, "s", cable));
    let topology: Topology = tree.build().unwrap();
    // 600, 800 and 400 Mb/s of 1,500, 500 and 200 bytes.
    let traffic = [(1_500, 20_000_000), (500, 5_000_000), (200, 4_000_000)];
    let sources = (0..).zip(traffic).map(|(src, (bytes, gap))| Source {
        src,
        dst: 3,
        level: 7,
        first: 0,
        gap: Gap::Every(gap),
        bytes: Bytes::Fixed(bytes),
        count: S / gap,
    });
    let mut scheme = Scheme::tcp();
    scheme.queue = queue;
    let workload = Workload::of_sources(sources.collect());
    let outcome = Scenario { stop: Some(100 * MS), ..Scenario::new(topology, scheme, workload) }
        .run()
        .unwrap();
    let sorted: Vec<u64> = outcome.sources.iter().map(|source| source.bytes).collect();
    assert!(
        outcome.counters.full.datagrams + outcome.counters.pushed_out.datagrams > 0,
        "the link is full"
    );
    sorted.try_into().unwrap()
}

/// 100 ms of 1 Gb/s are 12.5 MB: a third each, within the quantum and twice the largest packet
/// (theorem 2 of Shreedhar and Varghese), and what came before all three waited.
#[test]
fn sources_share_a_link_alike() {
    let got = delivered(Queue::RoundRobin(RoundRobin { limit: 150_000, quantum: 1_500 }));
    let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
    // Three frames until all have begun.
    assert!(most - least <= 1_500 + 2 * 1_500 + 3 * 1_500, "{got:?}");
    assert!((12_490_000..=12_500_000).contains(&got.iter().sum::<u64>()), "{got:?}");
    // A full queue in the order of arrival has no room for the largest packets, as their times are
    // never the first after a departure.
    let fifo = delivered(Queue::DropTail(Limit::Bytes(150_000)));
    assert!(fifo[0] < least / 2 && fifo[1] > most * 3 / 2, "{fifo:?}");
}

/// A flow alone gets the whole link, in order: what it takes is what it takes in a queue in the
/// order of arrival.
#[test]
fn a_flow_alone_is_served_in_order() {
    let finish = |queue| {
        let mut scheme = Scheme::tcp();
        scheme.queue = queue;
        let workload = Workload::of_flows(Flows::List(vec![FlowSpec {
            start: 0,
            src: 0,
            dst: 143,
            packets: 2_000,
        }]));
        let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
        Scenario::new(topology, scheme, workload).run().unwrap().flows[0].finish.unwrap()
    };
    let limit = 1_500_000;
    let fifo = finish(Queue::DropTail(Limit::Bytes(limit)));
    assert_eq!(finish(Queue::RoundRobin(RoundRobin { limit, quantum: 1_500 })), fifo);
}

#[test]
fn a_quantum_of_nothing_is_refused() {
    let mut scheme = Scheme::tcp();
    scheme.trunk_queue = Some(Queue::RoundRobin(RoundRobin { limit: 150_000, quantum: 0 }));
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let workload = Workload::of_flows(Flows::List(Vec::new()));
    let error = Scenario::new(topology, scheme, workload).run().unwrap_err();
    assert_eq!(error.to_string(), "trunk_queue: the quantum must be above 0 bytes");
}
