// SPDX-License-Identifier: GPL-2.0-or-later
//! Aequitas: as many flows of a level miss their target as its rises and falls balance.

use qjump_sim::{
    Aequitas, Bytes, Cable, FlowSpec, Flows, Gap, LeafSpine, Limiter, Outcome, Priority, Ps, Queue,
    Rng, Scenario, Scheme, Source, Topology, Wfq, Workload, MS, NS, S,
};

const CABLE: Cable = Cable { rate: 10_000_000_000, delay: 2_700_000 };
const SENDERS: u32 = 8;
const PACKETS: u32 = 8;
/// For each packet: 48 us for a flow that alone takes 21.7 us.
const TARGET: Ps = 6_000 * NS;
const UNTIL: Ps = 2 * S;

/// Flows to host 0 at a load of 0.7, all of which ask for level 0.
fn outcome(limiter: Limiter) -> Outcome {
    let topology = Topology::leaf_spine(&LeafSpine {
        racks: 1,
        hosts_per_rack: 1 + SENDERS,
        spines: 0,
        edge: CABLE,
        uplink: CABLE,
    })
    .unwrap();
    let scheme = Scheme {
        limiter,
        queue: Queue::Priority(Priority { limit: 225_000 }),
        levels: [100, 200, 300, 400, 500, 600, 700],
        ..Scheme::tcp()
    };
    let (mut rng, mut start) = (Rng::new(3, 0), 0);
    let mut flows = Vec::new();
    while start < UNTIL {
        start += rng.exponential(f64::from(PACKETS) * 1.2e6 / 0.7);
        flows.push(FlowSpec {
            start,
            src: 1 + rng.below(SENDERS.into()) as u32,
            dst: 0,
            packets: PACKETS,
        });
    }
    Scenario::new(topology, scheme, Workload::of_flows(Flows::List(flows))).run().unwrap()
}

/// How many ran on level 0 after the first 100 ms, and how many of these took too long.
fn missed(outcome: &Outcome) -> (f64, f64) {
    let admitted = outcome.flows.iter().filter(|flow| flow.level == 0 && flow.start > 100 * MS);
    let late = admitted
        .clone()
        .filter(|flow| flow.finish.unwrap() - flow.start > TARGET * Ps::from(PACKETS));
    (admitted.count() as f64, late.count() as f64)
}

/// Each sender's probability rises by alpha with the first flow in time after target / (1 − share),
/// 6 ms, and falls by beta for each packet of one that is late: in balance one flow is late for
/// every 8 rises, within 15 %. Without admission 10 times as many are late.
#[test]
fn as_many_are_late_as_rises_and_falls_balance() {
    let mut targets = [None; 8];
    targets[0] = Some(TARGET);
    let (admitted, late) =
        missed(&outcome(Limiter::Aequitas(Aequitas { targets, ..Aequitas::default() })));
    let (all, without) = missed(&outcome(Limiter::None));
    let (time, senders) = ((UNTIL - 100 * MS) as f64, f64::from(SENDERS));
    let rises = senders * time / ((TARGET * 1_000) as f64 + senders * time / admitted);
    let expected = rises / f64::from(PACKETS);
    println!("{late} of {admitted} late, {expected} expected; without {without} of {all}");
    assert!((late / expected - 1.0).abs() < 0.15, "{late} flows are late, not {expected}");
    assert!(admitted > 0.05 * all && admitted < 0.95 * all, "{admitted} of {all} are admitted");
    assert!(without > 10.0 * late, "{without} without admission, {late} with it");
}

/// Of Figure 9's scheme: two levels that always wait share a link as 8 to 4 within a packet in 100.
#[test]
fn the_schemes_levels_share_by_the_papers_weights() {
    let scheme = Scheme::aequitas();
    assert!(matches!(scheme.queue, Queue::Wfq(Wfq { weights: [8, 4, 1, ..], .. })));
    let rack = LeafSpine { racks: 1, hosts_per_rack: 3, spines: 0, edge: CABLE, uplink: CABLE };
    let source = |src: u32| Source {
        src,
        dst: 0,
        level: src as u8 - 1,
        first: 0,
        gap: Gap::Every(1_200 * NS),
        bytes: Bytes::Fixed(1_500),
        count: 10_000,
    };
    let workload = Workload {
        sources: vec![source(1), source(2)],
        ..Workload::of_flows(Flows::List(Vec::new()))
    };
    let topology = Topology::leaf_spine(&rack).unwrap();
    let outcome = Scenario { stop: Some(10 * MS), ..Scenario::new(topology, scheme, workload) }
        .run()
        .unwrap();
    let [first, second] = [0, 1].map(|number| outcome.sources[number].delivered as f64);
    println!("{first} and {second} datagrams");
    assert!((first / second / 2.0 - 1.0).abs() < 0.01, "{first} and {second} datagrams");
}
