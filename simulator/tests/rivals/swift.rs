// SPDX-License-Identifier: GPL-2.0-or-later
//! Swift: the delay of flows that share a link is where the published target meets what their
//! windows make of it.

use qjump_sim::{Cable, Congestion, Swift, Transport, MS, US};

use crate::{between, dumbbell, endless, rates, transport, without_limit};

const CABLE: Cable = Cable { rate: 10_000_000_000, delay: US };
/// Time to send a packet of 1,500 bytes.
const FRAME: f64 = 1.2e6;
/// Of an ACK of 40 bytes, over three cables.
const ACK: f64 = 3.0 * (1e6 + 32_000.0);

/// Flow scaling that adds at most 100 us for windows of 0.1 packet, and nothing from 100 packets on
/// (Equation 1).
const OF: Swift = Swift {
    base: 25 * US,
    scaling: 100 * US,
    scaling_least: 100,
    scaling_most: 100,
    increase: 100,
    decrease: 800,
    most_decrease: 500,
};

fn target(window: f64) -> f64 {
    let root = |w: f64| 1.0 / w.sqrt();
    let alpha = 100e6 / (root(0.1) - root(100.0));
    25e6 + (alpha * (root(window) - root(100.0))).clamp(0.0, 100e6)
}

/// Where N windows fill a round trip of just the target: N · window · frame = target(window).
fn round_trip(flows: u32) -> f64 {
    let (mut low, mut high) = (0.01, 1_000.0);
    for _ in 0..100 {
        let window = f64::sqrt(low * high);
        let short = f64::from(flows) * window * FRAME < target(window);
        *(if short { &mut low } else { &mut high }) = window;
    }
    target(low)
}

/// One flow to a hundred, the last with windows below a packet: the round trip is within 4 % of the
/// fixed point and what all windows add in one; the link is full, or 88 % where each flow sends now
/// and then, and flows get the same within 15 %, then within 40 %.
#[test]
fn the_delay_is_where_target_and_windows_meet() {
    for flows in [1, 4, 20, 100] {
        let scheme = without_limit(transport(Congestion::Swift(OF)));
        let workload = endless(flows, 200 * MS, 10 * MS);
        let (outcomes, _) =
            between(&dumbbell(flows, CABLE, CABLE), &scheme, &workload, [50 * MS, 200 * MS]);
        let (rates, latency) = rates(&outcomes);
        let (got, expected) = (latency + ACK, round_trip(flows));
        let added = 0.1 * f64::from(flows) * FRAME;
        assert!(
            (got - expected).abs() < 0.04 * expected + added,
            "{flows} flows: {got} ps, not {expected}"
        );
        let total: f64 = rates.iter().sum();
        let (least, apart) = if flows == 100 { (0.88e10, 0.4) } else { (0.98e10, 0.15) };
        assert!(total > least, "{flows} flows: {total} bit/s");
        let fair = total / f64::from(flows);
        assert!(
            rates.iter().all(|rate| (rate / fair - 1.0).abs() < apart),
            "{flows} flows: {rates:?}"
        );
        assert_eq!(outcomes[1].counters.timeouts, 0);
    }
}

/// What a receiver waits with its ACK is no delay of the network, though it is a thousand times the
/// target. Where windows are below two packets, as with 50 flows, who has sent one waits for it all
/// the same.
#[test]
fn delayed_acks_are_no_delay() {
    for flows in [1, 4, 50] {
        let transport = Transport {
            delayed_ack: Some(40 * MS),
            ..transport(Congestion::Swift(Swift::default()))
        };
        let workload = endless(flows, 400 * MS, 10 * MS);
        let (outcomes, _) = between(
            &dumbbell(flows, CABLE, CABLE),
            &without_limit(transport),
            &workload,
            [100 * MS, 400 * MS],
        );
        let (rates, _) = rates(&outcomes);
        let total: f64 = rates.iter().sum();
        assert!(total > if flows == 50 { 0.8e10 } else { 0.97e10 }, "{flows} flows: {total} bit/s");
        let fair = total / f64::from(flows);
        assert!(
            flows > 4 || rates.iter().all(|&rate| rate > fair / 2.0),
            "{flows} flows: {rates:?}"
        );
    }
}
