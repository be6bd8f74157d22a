// SPDX-License-Identifier: GPL-2.0-or-later
//! NDP beside what its paper claims (SIGCOMM 2017): an incast takes what the receiver's link needs,
//! without timeouts, and a flow alone has the whole link.

use qjump_sim::{
    Cable, Congestion, FlowSpec, Flows, LeafSpine, Outcome, Priority, Ps, Queue, Scenario, Scheme,
    Topology, Transport, Trim, Workload, MS,
};

const CABLE: Cable = Cable { rate: 10_000_000_000, delay: 2_700_000 };
const FRAME: Ps = 1_200_000;
/// Of an empty path over a switch: a packet and what ends the flow.
const EMPTY: Ps = 2 * (FRAME + 32_000) + 4 * CABLE.delay;

/// A round trip of 13.3 us holds 11 packets.
fn scheme() -> Scheme {
    let transport = Transport {
        initial_window: 12,
        max_window: 1_000,
        min_rto: 10 * MS,
        ..crate::transport(Congestion::Ndp)
    };
    Scheme {
        transport,
        queue: Queue::Trim(Trim { headers: 213_000, ..Trim::default() }),
        host_queue: Some(Queue::Priority(Priority { limit: 1 << 30 })),
        ..Scheme::tcp()
    }
}

fn rack(hosts: u32) -> Topology {
    let fabric =
        LeafSpine { racks: 1, hosts_per_rack: hosts, spines: 0, edge: CABLE, uplink: CABLE };
    Topology::leaf_spine(&fabric).unwrap()
}

fn run(topology: Topology, flows: Vec<FlowSpec>) -> Outcome {
    let workload = Workload::of_flows(Flows::List(flows));
    Scenario::new(topology, scheme(), workload).run().unwrap()
}

fn last(outcome: &Outcome) -> Ps {
    outcome.flows.iter().map(|flow| flow.finish.unwrap()).max().unwrap()
}

/// At the rate of the link from the first packet on. A pull waits at its host for nothing, but may
/// wait in the switch for data of the other direction, of which there is none.
#[test]
fn a_flow_alone_has_the_link() {
    for packets in [1, 12, 13, 1_000, 20_000] {
        let outcome = run(rack(2), vec![FlowSpec { start: 0, src: 1, dst: 0, packets }]);
        assert_eq!(last(&outcome), EMPTY + Ps::from(packets - 1) * FRAME, "{packets} packets");
        assert_eq!(outcome.counters.retransmitted, 0);
    }
}

/// n to 1: the receiver's link is never idle; only headers of the first windows come on top, 64 of
/// 1,500 bytes each. Nothing is lost and nobody times out.
#[test]
fn an_incast_takes_what_the_link_needs() {
    for (senders, packets) in [(2, 100), (10, 100), (50, 30), (143, 30), (143, 100)] {
        let flows = (1..=senders).map(|src| FlowSpec { start: 0, src, dst: 0, packets }).collect();
        let outcome = run(rack(senders + 1), flows);
        let ideal = EMPTY + (Ps::from(senders) * Ps::from(packets) - 1) * FRAME;
        let headers = 12.0 / f64::from(packets) * 64.0 / 1_500.0;
        let ratio = last(&outcome) as f64 / ideal as f64;
        assert!(ratio >= 1.0 && ratio <= 1.02 + headers, "{senders} of {packets}: {ratio}");
        let c = outcome.counters;
        assert_eq!((c.timeouts, c.full.total()), (0, 0), "{senders} of {packets}");
        assert!(c.retransmitted > 0);
        // Each trimmed packet is sent again once.
        let data = u64::from(senders) * u64::from(packets);
        assert_eq!(c.delivered.data, data + c.retransmitted, "{senders} of {packets}");
    }
}

/// A permutation on the whole of Figure 9's fabric, each host to one of another rack: sprayed, all
/// flows have nearly their whole links (the paper's section 6.2: 92 % with packets of 9 kB, beside
/// which headers and pulls are six times smaller than here).
#[test]
fn a_permutation_fills_the_fabric() {
    let flow = |src| FlowSpec { start: 0, src, dst: (src + 16) % 144, packets: 2_000 };
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let outcome = run(topology, (0..144).map(flow).collect());
    let ratio = last(&outcome) as f64 / (2_000 * FRAME) as f64;
    assert!((1.0..1.2).contains(&ratio), "{ratio}");
}

/// A full queue of headers drops: what is lost is asked for again, and every flow ends.
#[test]
fn lost_headers_are_asked_for_again() {
    let flows = (1..=40).map(|src| FlowSpec { start: 0, src, dst: 0, packets: 20 }).collect();
    let scheme =
        Scheme { queue: Queue::Trim(Trim { headers: 640, ..Trim::default() }), ..scheme() };
    let workload = Workload::of_flows(Flows::List(flows));
    let outcome = Scenario::new(rack(41), scheme, workload).run().unwrap();
    assert!(outcome.counters.full.total() > 0);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
}
