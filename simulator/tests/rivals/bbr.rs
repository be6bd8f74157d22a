// SPDX-License-Identifier: GPL-2.0-or-later
//! BBR: the bottleneck's rate with what the path holds under way, and the looks for the least round
//! trip.

use qjump_sim::apps::AppResult;
use qjump_sim::{Cable, Congestion, FlowSpec, LeafSpine, Outcome, Ps, Transport, MS, S, US};

use crate::{between, delivered, dumbbell, endless, last_takes, rates, transport, without_limit};

const EDGE: Cable = Cable { rate: 10_000_000_000, delay: US };
const TRUNK: Cable = Cable { rate: 1_000_000_000, delay: 500 * US };
/// Of an empty path, in ps: a packet of 1,500 bytes and an ACK of 40 over both edges and the trunk.
const EMPTY: f64 = (2 * 500 + 4) as f64 * 1e6 + 2.0 * (1.2e6 + 32e3) + 12e6 + 0.32e6;
/// Packets that it holds without a queue.
const HELD: f64 = EMPTY / 12e6;

fn notes(outcome: &Outcome) -> &[u64] {
    match &outcome.apps[0] {
        AppResult::Bulk(bulk) => &bulk.delivered,
        _ => unreachable!("an endless flow"),
    }
}

/// From a second to ten: within 1 % of the rate; the mean queue is what phases of 5/4 and 3/4 make,
/// an eighth of what the path holds in a quarter of the time at most; never more than a quarter
/// waits. Startup has queued no more than its gain of 2.89 allows.
#[test]
fn a_flow_fills_the_bottleneck_without_a_queue() {
    let scheme = without_limit(transport(Congestion::Bbr));
    let topology = dumbbell(1, EDGE, TRUNK);
    let (outcomes, ports) = between(&topology, &scheme, &endless(1, 10 * S, 10 * MS), [S, 9 * S]);
    let (rates, latency) = rates(&outcomes);
    assert!(rates[0] > 0.99e9 && rates[0] <= 1.0e9, "{} bit/s", rates[0]);
    let waited = latency - (EMPTY - (2.0 * 32e3 + 0.32e6) - 502e6);
    let share = waited / EMPTY;
    assert!((0.0..0.25 / 4.0).contains(&share), "mean queue of {share} of what the path holds");
    let longest = ports.iter().map(|port| port.longest).max().unwrap() as f64 / 1_500.0;
    assert!(longest < 1.89 * HELD + 12.0, "{longest} packets in startup, the path holds {HELD}");
    assert_eq!(outcomes[1].counters.retransmitted, 0);
}

/// After ten seconds without a smaller round trip four packets are under way for 200 ms, then the
/// rate is as before.
#[test]
fn it_looks_for_the_least_round_trip() {
    let scheme = without_limit(transport(Congestion::Bbr));
    let (outcomes, _) =
        between(&dumbbell(1, EDGE, TRUNK), &scheme, &endless(1, 12 * S, 10 * MS), [S, 12 * S]);
    let packets: Vec<f64> =
        notes(&outcomes[1]).windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1_500.0).collect();
    let few = 4.0 * 10e9 / EMPTY;
    let slow = packets.iter().skip(100).filter(|&&n| n < 2.0 * few).count();
    assert!((18..=21).contains(&slow), "{slow} tens of milliseconds");
    let slow_at =
        packets.iter().enumerate().skip(100).filter(|(_, &n)| n < 2.0 * few).map(|(at, _)| at);
    let inner: Vec<usize> = slow_at.collect();
    let mean = inner[1..inner.len() - 1].iter().map(|&at| packets[at]).sum::<f64>()
        / (inner.len() - 2) as f64;
    assert!((mean / few - 1.0).abs() < 0.02, "{mean} packets in 10 ms, not {few}");
    assert!(*packets.last().unwrap() > 0.98 * 10e9 / 12e6);
}

/// A round trip of less than the 8 ns that time stamps tell apart.
#[test]
fn a_round_trip_may_seem_to_take_no_time() {
    let cable = Cable { rate: 400_000_000_000, delay: 0 };
    let small = Transport { data_bytes: 64, ..transport(Congestion::Bbr) };
    let (outcomes, _) = between(
        &dumbbell(1, cable, cable),
        &without_limit(small),
        &endless(1, MS, MS),
        [10 * US, MS],
    );
    let (rates, _) = rates(&outcomes);
    assert!(rates[0] > 300e9, "{} bit/s", rates[0]);
}

/// In Figure 9's fabric, where a round trip is 13 us.
#[test]
fn a_flow_of_a_datacentre() {
    let topology = qjump_sim::Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let scheme = without_limit(transport(Congestion::Bbr));
    let (outcomes, _) = between(&topology, &scheme, &endless(1, 100 * MS, MS), [20 * MS, 100 * MS]);
    let bytes = delivered(&outcomes[1])[0] - delivered(&outcomes[0])[0];
    assert!(bytes as f64 * 8.0 / 0.08 > 0.98e10, "{bytes} bytes in 80 ms");
}

/// A look takes 200 ms or a round trip, what leaves before it and what comes back after it are a
/// round trip more each, and the window and the rate are what they were: nothing else is lost in 25
/// s with two looks.
#[test]
fn a_look_costs_what_it_takes() {
    for (round_trip, looks) in [(10 * MS, 200 * MS), (100 * MS, 200 * MS), (400 * MS, 400 * MS)] {
        let trunk = Cable { rate: 100_000_000, delay: round_trip / 2 };
        let scheme = without_limit(transport(Congestion::Bbr));
        let from = 20 * round_trip;
        let (outcomes, _) = between(
            &dumbbell(1, EDGE, trunk),
            &scheme,
            &endless(1, 26 * S, 10 * MS),
            [from, 25 * S],
        );
        let lost = 1.0 - rates(&outcomes).0[0] / 1e8;
        let most = 2.0 * (looks + 2 * round_trip) as f64 / (25 * S - from) as f64;
        assert!(lost < most + 0.01, "{lost} of the rate at {round_trip} ps, not {most}");
    }
}

/// A connection that was idle for longer than a least round trip is remembered does not look for
/// it: what it sends first shows it.
#[test]
fn idleness_is_no_age() {
    let second = |gap: Ps| {
        let flow = |start| FlowSpec { start, src: 1, dst: 0, packets: 20_000 };
        let transport = Transport { connections: 1, ..transport(Congestion::Bbr) };
        last_takes(dumbbell(1, EDGE, EDGE), without_limit(transport), vec![flow(0), flow(gap)])
    };
    let (short, long) = (second(9 * S), second(11 * S));
    assert!(long < short + short / 20, "{long} ps, {short} after a shorter time");
}

/// With a round trip that the connection's setup has shown, the first window is paced: at 2.89
/// windows a round trip.
#[test]
fn the_first_window_is_paced() {
    let trunk = Cable { rate: 10_000_000_000, delay: 50 * MS };
    let took = |packets| {
        let transport = Transport { handshake: Some(S), ..transport(Congestion::Bbr) };
        let flow = FlowSpec { start: 0, src: 1, dst: 0, packets };
        last_takes(dumbbell(1, EDGE, trunk), without_limit(transport), vec![flow])
    };
    let (apart, expected) = ((took(10) - took(1)) as f64, 9.0 / 10.0 * 100e9 / 2.887);
    assert!((apart / expected - 1.0).abs() < 0.01, "{apart} ps for ten packets");
}
