// SPDX-License-Identifier: GPL-2.0-or-later
//! HPCC: its utilisation and queue, fairness and incasts, as its paper derives them.

use qjump_sim::{
    Cable, Congestion, Hpcc, Ps, Routing, Scheme, Simulation, Watch, Workload, MS, US,
};

use crate::{between, delivered, dumbbell, endless, rates, transport, without_limit};

const CABLE: Cable = Cable { rate: 100_000_000_000, delay: 2 * US };
/// Of an empty path over three cables: data of 1,500 bytes one way and an ACK of 40 the other.
const EMPTY: f64 = 6.0 * 2e6 + 3.0 * (120e3 + 3.2e3);
/// T, a little more than that, and the packets that it holds.
const BASE: Ps = 12_500_000;
const HELD: f64 = 12.5e6 / 120e3;
const INCREASE: u32 = 80;

fn scheme() -> Scheme {
    let of = Hpcc { base: BASE, increase: INCREASE, ..Hpcc::default() };
    let mut transport = transport(Congestion::Hpcc(of));
    transport.initial_window = HELD.ceil() as u32;
    Scheme { routing: Routing::PerFlow, ..without_limit(transport) }
}

/// Where windows stay: W = W eta / U + `W_AI` (Equation 4), with U the sum of N windows over what
/// the path holds. So U is eta + N `W_AI` / B T, and below 1 there is no queue.
#[test]
fn the_link_is_used_to_eta_without_a_queue() {
    for flows in [1, 4, 16] {
        let (outcomes, _) = between(
            &dumbbell(flows, CABLE, CABLE),
            &scheme(),
            &endless(flows, 20 * MS, MS),
            [10 * MS, 20 * MS],
        );
        let (rates, latency) = rates(&outcomes);
        let used = rates.iter().sum::<f64>() / 1e11;
        let increases = f64::from(flows * INCREASE) / (HELD * 1_500.0);
        let expected = 0.95 + increases;
        assert!((used / expected - 1.0).abs() < 0.015, "{flows} flows: {used}, not {expected}");
        let waiting = (latency - (EMPTY - 6e6 - 9.6e3)) / 120e3;
        assert!(waiting < 2.0, "{flows} flows: {waiting} packets wait");
        assert_eq!(outcomes[1].counters.retransmitted, 0);
    }
}

/// A flow that begins when another has the whole link gets its share: the difference of both falls
/// by a factor of eta / U = 1 - 2 `W_AI` / B T a round trip, here to 1/e in 1,000 of them.
#[test]
fn late_flows_get_their_share() {
    let mut workload = endless(2, 200 * MS, MS);
    let qjump_sim::apps::App::Bulk(late) = &mut workload.apps[1] else { unreachable!() };
    late.start = 5 * MS;
    let (outcomes, _) =
        between(&dumbbell(2, CABLE, CABLE), &scheme(), &workload, [100 * MS, 200 * MS]);
    let (rates, _) = rates(&outcomes);
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.1, "{rates:?}");
}

/// Seven flows begin at once beside one that has the link (section 5.2, figure 9b): their first
/// windows make a queue of at most seven times what the path holds, which drains at the link's rate
/// without a break; a second round trip's wave is smaller, then nothing waits.
#[test]
fn an_incast_drains_once_and_the_link_stays_busy() {
    let begin = 5 * MS;
    let mut workload: Workload = endless(8, 10 * MS, 10 * US);
    for app in &mut workload.apps[1..] {
        let qjump_sim::apps::App::Bulk(bulk) = app else { unreachable!() };
        bulk.start = begin;
    }
    let trunk = Cable { rate: 400_000_000_000, delay: 2 * US };
    let topology = dumbbell(8, CABLE, trunk);
    let mut simulation =
        Simulation::watched(&topology, &scheme(), &workload, 1, &Watch::default()).unwrap();
    let mut queue_at = |at| {
        simulation.run_until(at);
        (
            simulation.backlog_to(0) as f64 / 120e3,
            delivered(&simulation.outcome()).iter().sum::<u64>(),
        )
    };
    let (before, _) = queue_at(begin);
    assert!(before < 3.0, "{before} packets before");
    let series: Vec<(f64, u64)> = (1..400).map(|n| queue_at(begin + n * US)).collect();
    let most = series.iter().map(|of| of.0).fold(0.0, f64::max);
    assert!(most > 5.0 * HELD && most < 7.5 * HELD, "{most} packets at most");
    // A round trip to fill it, seven to drain it; then a smaller wave of those that sent before
    // they had heard of it.
    let drained = 8 * BASE / US;
    let wave = series[drained as usize..].iter().map(|of| of.0).fold(0.0, f64::max);
    assert!(wave < most / 3.0, "a wave of {wave} packets");
    let drained = 14 * BASE / US;
    let later = series[drained as usize..].iter().map(|of| of.0).fold(0.0, f64::max);
    assert!(later < 0.1 * HELD, "{later} packets later");
    let (first, last) = (series[20], series[series.len() - 1]);
    let used = (last.1 - first.1) as f64 * 8.0 / ((series.len() - 21) as f64 * 1e-6) / 1e11;
    assert!(used > 0.9 && used < 1.01, "{used} of the link");
}

#[test]
fn what_it_needs_is_said() {
    let workload = endless(1, MS, MS);
    let topology = dumbbell(1, CABLE, CABLE);
    let refused =
        |scheme: &Scheme| Simulation::new(&topology, scheme, &workload, 1).unwrap_err().to_string();
    let spray = Scheme { routing: Routing::Spray, ..scheme() };
    assert!(refused(&spray).contains("use per-flow"));
    let mut delayed = scheme();
    delayed.transport.delayed_ack = Some(MS);
    assert!(refused(&delayed).contains("an ACK for each packet"));
}
