// SPDX-License-Identifier: GPL-2.0-or-later
//! What only networks of thousands of hosts do: they ask for memory ahead, and open times at which
//! hundreds of events happen.

use qjump_sim::{
    Arrivals, FlowSpec, Flows, LeafSpine, Outcome, Scenario, Scheme, Sizes, Topology, Workload, MS,
    US,
};

/// Those of two racks talk to each other, all others are silent. The scheme is the same for any
/// number of them.
fn talk(racks: u32, name: &str) -> Outcome {
    let topology = Topology::leaf_spine(&LeafSpine { racks, ..LeafSpine::FIG9 }).unwrap();
    let scheme = Scheme::named(name, &Topology::leaf_spine(&LeafSpine::FIG9).unwrap()).unwrap();
    let mut flows = Vec::new();
    for number in 0..600u32 {
        let (src, gap) = (number * 7 % 32, 1 + number * 11 % 31);
        let packets = if number % 10 == 0 { 700 } else { 1 + number % 90 };
        flows.push(FlowSpec {
            start: u64::from(number / 32) * 40 * US,
            src,
            dst: (src + gap) % 32,
            packets,
        });
    }
    let workload = Workload::of_flows(Flows::List(flows));
    Scenario::new(topology, scheme, workload).run().unwrap()
}

#[test]
fn silent_hosts_change_nothing() {
    // Those of which no link or host draws random numbers, which are by its number.
    for name in ["tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper", "swift", "homa"] {
        let (small, large) = (talk(9, name), talk(300, name));
        assert_eq!(small.flows, large.flows, "{name}");
        assert_eq!(small.counters, large.counters, "{name}");
        assert!(small.counters.latency.max > 40 * US, "{name}: nothing waited");
    }
}

/// Of 10,000 hosts, whose events fill many chunks of each bucket.
#[test]
fn no_packet_is_lost_without_a_reason_among_thousands() {
    let fabric = LeafSpine { racks: 250, hosts_per_rack: 40, spines: 10, ..LeafSpine::FIG9 };
    for name in ["dctcp", "qjump-paper"] {
        let topology = Topology::leaf_spine(&fabric).unwrap();
        let scheme = Scheme::named(name, &topology).unwrap();
        let flows = Flows::Drawn {
            arrivals: Arrivals::Poisson,
            sizes: Sizes::web_search(),
            load: 0.6,
            count: 1_500,
        };
        let workload = Workload::of_flows(flows);
        let outcome = Scenario { stop: Some(MS / 2), ..Scenario::new(topology, scheme, workload) }
            .run()
            .unwrap();
        let c = &outcome.counters;
        let ended = c.delivered.total() + c.full.total() + c.pushed_out.total() + c.limited.total();
        assert_eq!(c.sent.total(), ended + c.in_flight, "{name}");
        assert!(c.in_flight > 5_000, "{name}: {} packets are few", c.in_flight);
    }
}
