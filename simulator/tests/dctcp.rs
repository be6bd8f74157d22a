// SPDX-License-Identifier: GPL-2.0-or-later
//! DCTCP's queue against its published model (Alizadeh et al., SIGCOMM'10, section 3.3).

use qjump_sim::{Cable, FlowSpec, Flows, LeafSpine, Queue, Scheme, Simulation, Topology, Workload, MS, US};

const PACKET: u64 = 1_500;
const K: u64 = 40;

/// Least, mean and largest queue in packets at the receiver of `n` flows, a packet every 1.2 us and 100 us of round trip.
fn queue(n: u32) -> (f64, f64, f64) {
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
    scheme.queue = Queue::Marking { limit: 1_000 * PACKET, threshold: K * PACKET };
    scheme.transport.max_window = 1_000;
    let mut simulation = Simulation::new(&topology, &scheme, &workload, 1).unwrap();
    let (mut least, mut sum, mut largest) = (f64::MAX, 0.0, 0.0f64);
    let samples = 60_000;
    for i in 0..samples {
        simulation.run_until(20 * MS + i * US);
        let packets = simulation.backlog_to(n) as f64 / 1_200_000.0;
        least = least.min(packets);
        largest = largest.max(packets);
        sum += packets;
    }
    assert_eq!(simulation.outcome().counters.full.total(), 0);
    (least, sum / samples as f64, largest)
}

/// The largest queue is K + N packets, the oscillation half of sqrt(2 N (C · RTT + K)) where flows are in step. Here the packet being
/// sent counts, and the first above K is not marked: two more. The more flows, the less they are in step: the mean lies lower.
#[test]
fn the_queue_is_as_modelled() {
    for (n, mean_error) in [(2, 0.03), (5, 0.10), (10, 0.15)] {
        let (least, mean, largest) = queue(n);
        let flows = f64::from(n);
        let amplitude = 0.5 * (2.0 * flows * (98.464 / 1.2 + K as f64)).sqrt();
        let top = K as f64 + flows;
        let place = format!("{n} flows: {least:.1} {mean:.1} {largest:.1}; model {:.1} to {top:.1}", top - amplitude);
        println!("{place}");
        assert!((top..=top + 2.0).contains(&largest), "largest, {place}");
        assert!((mean / (top - amplitude / 2.0) - 1.0).abs() < mean_error, "mean, {place}");
        assert!(least > 0.0, "the link idles, {place}");
    }
}
