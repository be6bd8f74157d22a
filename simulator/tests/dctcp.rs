// SPDX-License-Identifier: GPL-2.0-or-later
//! DCTCP's queue against its published model (Alizadeh et al., SIGCOMM'10, section 3.3).

use qjump_sim::{
    Cable, FlowSpec, Flows, LeafSpine, Marking, Ps, Queue, Scheme, Simulation, Topology, Workload,
    MS, US,
};

const PACKET: u64 = 1_500;
const K: u64 = 40;

/// Least, mean and largest queue in packets at the receiver of `n` flows, a packet every 1.2 us and
/// 100 us of round trip; share of marked packets.
fn queue(n: u32, delayed_ack: Option<Ps>) -> (f64, f64, f64, f64) {
    let cable = |rate, us| Cable { rate, delay: us * US };
    let fabric = LeafSpine {
        racks: 1,
        hosts_per_rack: n + 1,
        spines: 0,
        edge: cable(10_000_000_000, 24),
        uplink: cable(10_000_000_000, 0),
    };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let flow = |src| FlowSpec { start: 7 * US * u64::from(src), src, dst: n, packets: 1_000_000 };
    let workload = Workload::of_flows(Flows::List((0..n).map(flow).collect()));
    let mut scheme = Scheme::dctcp();
    scheme.queue = Queue::Marking(Marking { limit: 1_000 * PACKET, threshold: K * PACKET });
    scheme.transport.max_window = 1_000;
    scheme.transport.delayed_ack = delayed_ack;
    let mut simulation = Simulation::new(&topology, &scheme, &workload, 1).unwrap();
    let (mut least, mut sum, mut largest) = (f64::MAX, 0.0, 0.0f64);
    simulation.run_until(20 * MS);
    let before = simulation.outcome().counters;
    let samples = 60_000;
    for i in 0..samples {
        simulation.run_until(20 * MS + i * US);
        let packets = simulation.backlog_to(n) as f64 / 1_200_000.0;
        least = least.min(packets);
        largest = largest.max(packets);
        sum += packets;
    }
    let after = simulation.outcome().counters;
    assert_eq!(after.full.total(), 0);
    let marked = (after.marked - before.marked) as f64
        / (after.delivered.data - before.delivered.data) as f64;
    (least, sum / samples as f64, largest, marked)
}

/// Where flows are in step, the largest queue is K + N packets, the oscillation half of sqrt(2 N (C
/// · RTT + K)) and alpha, which is the share of marked packets, sqrt(2 N / (C · RTT + K)). Here the
/// packet being sent counts, and the first above K is not marked: up to two more. The model holds
/// for few flows with large windows.
#[test]
fn the_queue_is_as_modelled() {
    for (n, marked_error) in [(2, 0.05), (5, 0.12), (10, 0.18)] {
        let (least, mean, largest, marked) = queue(n, None);
        let flows = f64::from(n);
        let amplitude = 0.5 * (2.0 * flows * (98.464 / 1.2 + K as f64)).sqrt();
        let top = K as f64 + flows;
        let place = format!(
            "{n} flows: {least:.1} {mean:.1} {largest:.1}; model {:.1} to {top:.1}",
            top - amplitude
        );
        let alpha = (2.0 * flows / (98.464 / 1.2 + K as f64)).sqrt();
        println!("{place}; marked {marked:.3}, alpha of the model {alpha:.3}");
        assert!((top..=top + 2.0).contains(&largest), "largest, {place}");
        assert!((mean / (top - amplitude / 2.0) - 1.0).abs() < 0.05, "mean, {place}");
        assert!(
            (marked / alpha - 1.0).abs() < marked_error,
            "marked {marked:.3}, alpha of the model {alpha:.3}, {place}"
        );
        assert!(least > 0.0, "the link idles, {place}");
    }
}

/// With an ACK for two packets the window grows by half a packet a round trip: N / 2 above K, and
/// half of the squares of oscillation and alpha. The largest queue stays, as two packets come
/// together.
#[test]
fn delayed_acks_oscillate_less() {
    for (n, marked_error) in [(2, 0.05), (5, 0.12), (10, 0.18)] {
        let (least, mean, largest, marked) = queue(n, Some(MS));
        let flows = f64::from(n);
        let window = 98.464 / 1.2 + K as f64;
        let amplitude = 0.5 * (flows * window).sqrt();
        let top = K as f64 + flows / 2.0;
        let alpha = (flows / window).sqrt();
        let place = format!(
            "{n} flows: {least:.1} {mean:.1} {largest:.1}; model {:.1} to {top:.1}",
            top - amplitude
        );
        println!("delayed ACKs, {place}; marked {marked:.3}, alpha of the model {alpha:.3}");
        assert!((K as f64 + flows..=K as f64 + flows + 2.0).contains(&largest), "largest, {place}");
        assert!((mean / (top - amplitude / 2.0) - 1.0).abs() < 0.05, "mean, {place}");
        assert!(
            (marked / alpha - 1.0).abs() < marked_error,
            "marked {marked:.3}, alpha of the model {alpha:.3}, {place}"
        );
        assert!(least > 0.0, "the link idles, {place}");
    }
}
