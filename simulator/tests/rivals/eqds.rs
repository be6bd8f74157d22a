// SPDX-License-Identifier: GPL-2.0-or-later
//! EQDS beside what its paper claims (NSDI 2022): a receiver divides its link evenly among its
//! senders, at once when another comes, and queues are bounded by what left without credit.

use qjump_sim::{
    Cable, End, FlowSpec, Flows, LeafSpine, Outcome, PortResult, Ps, Scheme, Simulation, Topology,
    Watch, Workload, MS, US,
};

const CABLE: Cable = Cable { rate: 10_000_000_000, delay: 2_700_000 };
const FRAME: Ps = 1_200_000;
/// Of an empty path over a switch: a packet and what ends the flow.
const EMPTY: Ps = 2 * (FRAME + 32_000) + 4 * CABLE.delay;
/// Of a trimmed packet.
const HEADER: u64 = 64;

/// Runs flows to host 0 of a rack; also returns the first window and the port to host 0.
fn run(hosts: u32, flows: Vec<FlowSpec>) -> (Outcome, u64, PortResult) {
    let fabric =
        LeafSpine { racks: 1, hosts_per_rack: hosts, spines: 0, edge: CABLE, uplink: CABLE };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let scheme = Scheme::named("eqds", &topology).unwrap();
    let watch = Watch { ports: true, ..Watch::default() };
    let workload = Workload::of_flows(Flows::List(flows));
    let mut simulation = Simulation::watched(&topology, &scheme, &workload, 1, &watch).unwrap();
    simulation.run();
    let ports = simulation.ports();
    let port = ports.iter().find(|port| port.to == End::Host(0)).unwrap().clone();
    (simulation.outcome(), scheme.transport.initial_window.into(), port)
}

fn finish(outcome: &Outcome) -> Vec<Ps> {
    outcome.flows.iter().map(|flow| flow.finish.unwrap()).collect()
}

#[test]
fn a_flow_alone_has_the_link() {
    for packets in [1, 12, 13, 1_000, 20_000] {
        let (outcome, window, _) = run(2, vec![FlowSpec { start: 0, src: 1, dst: 0, packets }]);
        // The first credit comes after a round trip, which holds 0.05 packets more than the window.
        let gap = if u64::from(packets) > window { EMPTY - window * FRAME } else { 0 };
        assert_eq!(finish(&outcome)[0], EMPTY + Ps::from(packets - 1) * FRAME + gap, "{packets}");
        assert_eq!(outcome.counters.retransmitted, 0);
    }
}

/// n to 1: each sender has R/n, so that all end within the turns of two packets, after what the
/// link needs for all; on top are only headers of first windows. A port holds eight packets and the
/// one being sent, and at most all headers of first windows. Nothing is lost, nobody times out.
#[test]
fn an_incast_divides_the_link_evenly() {
    for (senders, packets) in [(2, 100), (10, 400), (50, 100), (143, 100)] {
        let flows = (1..=senders).map(|src| FlowSpec { start: 0, src, dst: 0, packets }).collect();
        let (outcome, window, port) = run(senders + 1, flows);
        let ends = finish(&outcome);
        let (first, last) = (*ends.iter().min().unwrap(), *ends.iter().max().unwrap());
        let turn = Ps::from(senders) * FRAME;
        assert!(last - first <= 2 * turn, "{senders}: {first} to {last}");
        let ideal = EMPTY + (Ps::from(packets) * turn - FRAME);
        let headers = window as f64 / f64::from(packets) * HEADER as f64 / 1_500.0;
        let ratio = last as f64 / ideal as f64;
        assert!(ratio >= 1.0 && ratio <= 1.02 + headers, "{senders} of {packets}: {ratio}");
        let most = 9 * 1_500 + u64::from(senders) * window * HEADER;
        assert!(port.longest <= most, "{senders}: {} of {most} bytes", port.longest);
        let c = outcome.counters;
        assert_eq!((c.timeouts, c.full.total()), (0, 0), "{senders} of {packets}");
        let data = u64::from(senders) * u64::from(packets);
        assert_eq!(c.delivered.data, data + c.retransmitted, "{senders} of {packets}");
    }
}

/// Flows that come one after another: from a round trip on each has its even share, whatever the
/// others' number. The last one, of 300 packets, begins when all have long been under way.
#[test]
fn who_comes_late_has_its_share_at_once() {
    for others in [1, 3, 9] {
        let mut flows: Vec<FlowSpec> = (1..=others)
            .map(|src| FlowSpec { start: u64::from(src) * 50 * US, src, dst: 0, packets: 20_000 })
            .collect();
        let packets = 300;
        flows.push(FlowSpec { start: 2 * MS, src: others + 1, dst: 0, packets });
        let (outcome, window, _) = run(others + 2, flows);
        let took = finish(&outcome)[others as usize] - 2 * MS;
        let share = Ps::from(others + 1) * FRAME;
        // What leaves without credit comes with the others' packets, whole or trimmed and again.
        let rest = Ps::from(packets) - window;
        assert!(took >= EMPTY + rest * share, "{others}: {took}");
        assert!(took <= 2 * EMPTY + (Ps::from(packets) + 2) * share, "{others}: {took}");
    }
}

/// A sender to two receivers, one of which has another sender: no receiver's link idles for credit
/// that a busy sender has collected.
#[test]
fn a_busy_sender_collects_little_credit() {
    let packets = 4_000;
    let flow = |src, dst| FlowSpec { start: 0, src, dst, packets };
    let (outcome, ..) = run(4, vec![flow(2, 0), flow(2, 1), flow(3, 0)]);
    let ends = finish(&outcome);
    // Host 2 and host 0 each carry two flows.
    let ideal = 2 * Ps::from(packets) * FRAME;
    let last = *ends.iter().max().unwrap();
    assert!(last as f64 / ideal as f64 <= 1.1, "{ends:?} for {ideal}");
}
