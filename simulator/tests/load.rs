// SPDX-License-Identifier: GPL-2.0-or-later
//! The load of flows that are drawn, by what they have on the wire.

use qjump_sim::{
    Arrivals, Cable, FlowSpec, Flows, LeafSpine, Scheme, Simulation, Sizes, Topology, Workload, US,
};

/// Four hosts at 1 Gb/s.
fn rack() -> Topology {
    let cable = Cable { rate: 1_000_000_000, delay: US };
    Topology::leaf_spine(&LeafSpine {
        racks: 1,
        hosts_per_rack: 4,
        spines: 0,
        edge: cable,
        uplink: cable,
    })
    .unwrap()
}

fn drawn(sizes: Sizes, arrivals: Arrivals, data_bytes: u16, load: f64) -> Vec<FlowSpec> {
    let mut scheme = Scheme::tcp();
    scheme.transport.data_bytes = data_bytes;
    let workload = Workload::of_flows(Flows::Drawn { arrivals, sizes, load, count: 40_000 });
    let outcome = Simulation::new(&rack(), &scheme, &workload, 1).unwrap().outcome();
    outcome
        .flows
        .iter()
        .map(|flow| FlowSpec {
            start: flow.start,
            src: flow.src,
            dst: flow.dst,
            packets: flow.packets,
        })
        .collect()
}

/// The share of all hosts' links that data takes until the last flow begins.
fn taken(flows: &[FlowSpec], data_bytes: u16) -> f64 {
    let packets: u64 = flows.iter().map(|flow| u64::from(flow.packets)).sum();
    let picoseconds = packets as f64 * f64::from(data_bytes) * 8_000.0;
    picoseconds / 4.0 / flows[flows.len() - 1].start as f64
}

/// Exactly so on average; of 40,000 gaps and sizes the standard deviation of the mean is below
/// 0.01.
#[test]
fn flows_of_own_sizes_take_the_load() {
    let sizes = [
        vec![(1, 0.0), (2, 1.0)],
        vec![(1, 0.0), (10, 1.0)],
        vec![(3, 0.0), (3, 0.5), (4, 0.5), (9, 1.0)],
    ];
    for points in sizes {
        for arrivals in [Arrivals::Poisson, Arrivals::Published] {
            for data_bytes in [500, 1_500, 9_000] {
                let sizes = Sizes::new(&points).unwrap();
                let share = taken(&drawn(sizes, arrivals, data_bytes, 0.6), data_bytes);
                assert!(
                    (share - 0.6).abs() < 0.015,
                    "{points:?} {arrivals:?} {data_bytes}: {share}"
                );
            }
        }
    }
}

/// Published sizes begin as often as their published mean says, in packets of the transport's size:
/// times of flows go by that.
#[test]
fn published_sizes_have_their_published_mean() {
    for arrivals in [Arrivals::Poisson, Arrivals::Published] {
        let full = drawn(Sizes::web_search(), arrivals, 1_500, 0.4);
        let small = drawn(Sizes::web_search(), arrivals, 750, 0.2);
        assert!(full == small, "{arrivals:?}: half the packet at half the load is the same time");
        let gap = full[full.len() - 1].start as f64 / full.len() as f64;
        let expected = 1_138.0 * 1_500.0 * 8_000.0 / 0.4 / 4.0;
        assert!((gap / expected - 1.0).abs() < 0.02, "{arrivals:?}: {gap}, not {expected}");
    }
}
