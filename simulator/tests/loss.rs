// SPDX-License-Identifier: GPL-2.0-or-later
//! Cables that lose packets at random: how many, and what Reno makes of it.

use qjump_sim::apps::{App, AppResult, Bulk};
use qjump_sim::{
    Cable, Congestion, FlowSpec, Flows, Limit, Loss, Outcome, ParallelRun, Ps, Queue, Scheme,
    Simulation, Transport, Tree, Workload, MS, S, US,
};

const EDGE: Cable = Cable { rate: 1_000_000_000, delay: US };
const TRUNK: Cable = Cable { rate: 1_000_000_000, delay: 10 * MS };
const ROUND_TRIP: f64 = 20.05e-3;

/// Two hosts and the cable between their switches, which loses so many millionths.
fn tree(share: u32) -> Tree {
    Tree::new()
        .switch("x")
        .switch("y")
        .host("a")
        .host("b")
        .cable("a", "x", EDGE)
        .cable("x", "y", TRUNK)
        .cable("b", "y", EDGE)
        .loss(Loss { one: "y".to_owned(), other: "x".to_owned(), share })
}

fn scheme() -> Scheme {
    let transport = Transport {
        delayed_ack: None,
        handshake: None,
        max_window: 8_000,
        ..Transport::linux(Congestion::Reno)
    };
    Scheme { transport, queue: Queue::DropTail(Limit::None), ..Scheme::tcp() }
}

/// An endless flow.
fn endless(share: u32, until: Ps) -> Outcome {
    let bulk = Bulk { src: 0, dst: 1, level: 0, start: 0, until, window: None, interval: S };
    let workload = Workload::of_apps(vec![App::Bulk(bulk)]);
    let topology = tree(share).build().unwrap();
    let mut simulation = Simulation::new(&topology, &scheme(), &workload, 1).unwrap();
    simulation.run_until(until);
    simulation.outcome()
}

/// Reno's rate in packets a second: sqrt(3/2p) a round trip (Mathis et al., CCR 27(3), 1997), and
/// with timeouts as in PFTK (Padhye et al., SIGCOMM 1998, equation 29 with b = 1), which count more
/// than here, because selective acknowledgements avoid most of them. Both are within 15 % of what
/// they describe at small p.
#[test]
fn renos_rate_is_that_of_the_formulas() {
    for (share, p) in [(10_000, 0.01_f64), (1_000, 0.001)] {
        let until = 400 * S;
        let outcome = endless(share, until);
        let AppResult::Bulk(bulk) = &outcome.apps[0] else { unreachable!() };
        let rate = bulk.bytes as f64 / 1_500.0 / 400.0;
        let mathis = (1.5 / p).sqrt() / ROUND_TRIP;
        let timeout = (1.0_f64).min(3.0 * (3.0 * p / 8.0).sqrt()) * p * (1.0 + 32.0 * p * p);
        let pftk = 1.0 / (ROUND_TRIP * (2.0 * p / 3.0).sqrt() + (0.2 + ROUND_TRIP) * timeout);
        assert!(
            rate > 0.85 * pftk && rate < 1.15 * mathis,
            "p = {p}: {rate} packets a second, {mathis} by Mathis et al., {pftk} by PFTK"
        );
    }
}

/// Data and ACKs are lost with the given probability, within four standard deviations, and counted.
#[test]
fn the_share_is_as_given() {
    let c = endless(10_000, 400 * S).counters;
    for (lost, sent) in [(c.failed.data, c.sent.data), (c.failed.acks, c.sent.acks)] {
        let (mean, sent) = (0.01 * sent as f64, sent as f64);
        assert!((lost as f64 - mean).abs() < 4.0 * mean.sqrt(), "{lost} of {sent}");
    }
    assert!(c.retransmitted >= c.failed.data);
}

/// A run in two parts loses the same packets, and every packet is accounted for.
#[test]
fn parts_lose_the_same() {
    let flow = |src| FlowSpec { start: 0, src, dst: 1 - src, packets: 2_000 };
    let workload = Workload::of_flows(Flows::List(vec![flow(0), flow(1)]));
    let topology = tree(5_000).build().unwrap();
    let mut whole = Simulation::new(&topology, &scheme(), &workload, 3).unwrap();
    whole.run();
    let mut parts = ParallelRun::new(&topology, &scheme(), &workload, 3, 2).unwrap();
    while parts.run_some(Ps::MAX, 1_000_000, 1) {}
    let (whole, parts) = (whole.outcome(), parts.outcome());
    let c = &whole.counters;
    assert!(c.failed.data > 5);
    assert_eq!(c.sent.total(), c.delivered.total() + c.failed.total());
    assert_eq!((c.failed, c.sent), (parts.counters.failed, parts.counters.sent));
}

#[test]
fn impossible_losses_are_refused() {
    let refused = |one: &str, other: &str, share| {
        let loss = Loss { one: one.to_owned(), other: other.to_owned(), share };
        tree(10).loss(loss).build().unwrap_err().to_string()
    };
    assert_eq!(refused("a", "x", 1_000_000), "loss a--x: its share must be below 1");
    assert_eq!(refused("a", "y", 1), "loss a--y: there is no such cable");
    assert_eq!(refused("x", "y", 1), "loss x--y: the cable has a loss already");
}
