// SPDX-License-Identifier: GPL-2.0-or-later
//! Levels by weight and by the clock, on links.

use qjump_sim::apps::{App, AppResult, Datagrams};
use qjump_sim::{
    Bytes, Cable, FlowSpec, Flows, Gap, Limit, Ps, Queue, Scenario, Scheme, Source, TimeAware,
    Topology, Tree, Wfq, Workload, MS, S, US,
};

const GBIT: u64 = 1_000_000_000;

/// Hosts on one switch, the last of them `z`; cables without delay.
fn star(names: &[&str], rate: u64) -> Topology {
    let cable = Cable { rate, delay: 0 };
    let tree = names
        .iter()
        .fold(Tree::new().switch("s"), |tree, name| tree.host(name).cable(name, "s", cable));
    tree.build().unwrap()
}

fn scheme(queue: Queue) -> Scheme {
    Scheme { queue, host_queue: Some(Queue::DropTail(Limit::None)), ..Scheme::tcp() }
}

/// Three hosts fill a link of 1 Gb/s at weights 8, 4 and 1 (Aequitas' of three levels), with
/// packets of different sizes: each gets its share to within its largest packet and one of the
/// others, whatever it offers.
#[test]
fn sources_share_a_link_by_weight() {
    let sources = (0..).zip([1_500, 300, 1_000]).map(|(src, bytes)| {
        let gap = u64::from(bytes) * 8_000 * 10 / 9;
        Source {
            src,
            dst: 3,
            level: src as u8,
            first: 0,
            gap: Gap::Every(gap),
            bytes: Bytes::Fixed(bytes),
            count: S / gap,
        }
    });
    let queue = Queue::Wfq(Wfq { limit: 150_000, weights: [8, 4, 1, 1, 1, 1, 1, 1] });
    let workload = Workload::of_sources(sources.collect());
    let topology = star(&["a", "b", "c", "z"], GBIT);
    let outcome =
        Scenario { stop: Some(130 * MS), ..Scenario::new(topology, scheme(queue), workload) }
            .run()
            .unwrap();
    let got: Vec<u64> = outcome.sources.iter().map(|source| source.bytes).collect();
    // 130 ms of 1 Gb/s are 16.25 MB; the first packets come after 12 us, at most.
    for (got, share) in got.iter().zip([8.0, 4.0, 1.0]) {
        let expected = 16_250_000.0 * share / 13.0;
        assert!((*got as f64 - expected).abs() < 3.0 * 1_500.0, "{got} {expected}");
    }
    assert!(outcome.counters.full.datagrams > 0);
}

/// A cycle of 100 us: 20 us of level 0 alone, 80 of all others. At 1 Gb/s a packet of 1,500 bytes
/// takes 12 us; six begin in 80 us, for a seventh would end 4 us behind them: that is the guard
/// band. Two urgent ones of 1,000 bytes fit the first 20 us, the third, of 8 us as they, does not.
#[test]
fn gates_open_and_close_to_the_picosecond() {
    let gates = TimeAware::new(1 << 20, 0, &[(20 * US, 0x01), (80 * US, 0xfe)]).unwrap();
    let app = |src, level, bytes, first, count| {
        App::Datagrams(Datagrams { src, dst: 2, level, first, gap: Gap::Every(1), bytes, count })
    };
    // All are in the switch at 15 us, but that they come one after the other: 12 and 8 us each.
    let workload = Workload::of_apps(vec![app(0, 7, 1_500, 0, 9), app(1, 0, 1_000, 3 * US, 4)]);
    let topology = star(&["a", "b", "z"], GBIT);
    let outcome = Scenario::new(topology, scheme(Queue::TimeAware(gates)), workload).run().unwrap();
    let ends: Vec<Vec<Ps>> = outcome
        .apps
        .iter()
        .map(|result| match result {
            AppResult::Datagrams(latencies) => latencies
                .starts
                .iter()
                .zip(&latencies.times)
                .map(|(start, time)| start + time.unwrap())
                .collect(),
            _ => unreachable!(),
        })
        .collect();
    // From 20 us on 12 us each: 32 to 92 us, then from 120 us on.
    let bulk = [32, 44, 56, 68, 80, 92, 132, 144, 156].map(|us| us * US);
    // The first comes at 11 us and would end at 19: it goes at once. The others have to wait for
    // 100 us: two of 8 us, and then no third.
    let urgent = [19, 108, 116, 208].map(|us| us * US);
    assert_eq!(ends, [bulk.to_vec(), urgent.to_vec()]);
    assert_eq!(outcome.end, 208 * US);
}

/// A level whose gate is never open for as long as a packet takes does not get that packet.
#[test]
fn what_is_longer_than_its_gate_is_open_is_dropped() {
    let gates = TimeAware::new(1 << 20, 5 * US, &[(10 * US, 0x01), (90 * US, 0xfe)]).unwrap();
    let source = |bytes| Source {
        src: 0,
        dst: 1,
        level: 0,
        first: 0,
        gap: Gap::Every(50 * US),
        bytes: Bytes::Fixed(bytes),
        count: 10,
    };
    let workload = Workload::of_sources(vec![source(1_250), source(1_251)]);
    let topology = star(&["a", "z"], GBIT);
    let outcome = Scenario::new(topology, scheme(Queue::TimeAware(gates)), workload).run().unwrap();
    let delivered: Vec<u64> = outcome.sources.iter().map(|source| source.delivered).collect();
    assert_eq!((delivered, outcome.counters.full.datagrams), (vec![10, 0], 10));
}

/// TCP sends it until the end of time.
#[test]
fn a_flow_that_never_gets_through_ends_with_time() {
    let gates = TimeAware::new(1 << 20, 5 * US, &[(10 * US, 0xff), (90 * US, 0)]).unwrap();
    let workload =
        Workload::of_flows(Flows::List(vec![FlowSpec { start: 0, src: 0, dst: 1, packets: 20 }]));
    let topology = star(&["a", "z"], GBIT);
    let outcome = Scenario::new(topology, scheme(Queue::TimeAware(gates)), workload).run().unwrap();
    let day = 86_400 * S;
    assert_eq!(
        (outcome.flows[0].finish, outcome.end / day, outcome.counters.delivered.data),
        (None, 106, 0)
    );
}

/// A flow alone, its ACKs on links of their own: what it takes is what it takes in a queue in the
/// order of arrival.
#[test]
fn a_flow_alone_is_served_in_order() {
    let finish = |queue| {
        let workload = Workload::of_flows(Flows::List(vec![FlowSpec {
            start: 0,
            src: 0,
            dst: 1,
            packets: 2_000,
        }]));
        let topology = star(&["a", "z"], 10 * GBIT);
        Scenario::new(topology, scheme(queue), workload).run().unwrap().flows[0].finish.unwrap()
    };
    let fifo = finish(Queue::DropTail(Limit::Bytes(1_500_000)));
    assert_eq!(finish(Queue::Wfq(Wfq { limit: 1_500_000, weights: [3; 8] })), fifo);
    assert_eq!(
        finish(Queue::TimeAware(TimeAware::new(1_500_000, 0, &[(US, 0xff)]).unwrap())),
        fifo
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let said = |queue| {
        let workload = Workload::of_flows(Flows::List(Vec::new()));
        let scenario = Scenario::new(star(&["a", "z"], GBIT), scheme(queue), workload);
        scenario.run().unwrap_err().to_string()
    };
    let wfq = Queue::Wfq(Wfq { limit: 15_000, weights: [1, 2, 0, 1, 1, 1, 1, 1] });
    assert_eq!(said(wfq), "queue: level 2's weight of 0 must be between 1 and 1048576");
    let gates = Queue::TimeAware(TimeAware::new(1_499, 0, &[(US, 0xff)]).unwrap());
    assert_eq!(said(gates), "queue: its limit of 1499 bytes is less than a packet of 1500");
}
