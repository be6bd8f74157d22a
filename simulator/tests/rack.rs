// SPDX-License-Identifier: GPL-2.0-or-later
//! RACK-TLP (RFC 8985) in a network: a lost tail, losses of any kind, and packets that overtake
//! each other.

use qjump_sim::{
    Bytes, Cable, Congestion, FlowSpec, Flows, Gap, Graph, LeafSpine, Limit, Outcome, Ps, Queue,
    Scenario, Scheme, Source, Topology, Transport, Tree, Workload, MS, NS, US,
};

/// In a rack of Figure 9: a packet of 1.2 us there and its ACK of 32 ns back.
const ROUND_TRIP: Ps = 2 * (1_200 + 2_700) * NS + 2 * (32 + 2_700) * NS;

fn transport(rack_tlp: bool) -> Transport {
    Transport { delayed_ack: None, handshake: None, rack_tlp, ..Transport::linux(Congestion::Reno) }
}

fn run(topology: Topology, queue: Queue, transport: Transport, workload: Workload) -> Outcome {
    let scheme = Scheme { queue, transport, ..Scheme::tcp() };
    Scenario::new(topology, scheme, workload).run().unwrap()
}

fn flow(packets: u32) -> Flows {
    Flows::List(vec![FlowSpec { start: 5 * US, src: 0, dst: 1, packets }])
}

fn took(outcome: &Outcome) -> Ps {
    outcome.flows[0].finish.unwrap() - outcome.flows[0].start
}

/// The fourth of four packets is lost at a switch whose queue nine datagrams have filled. The last
/// ACK comes after 15.964 us; a probe leaves two smoothed round trips after that and repairs the
/// loss. Its samples are a round trip and 0, 1 and 2 packets' waiting in the host.
#[test]
fn a_lost_tail_is_repaired_after_two_round_trips() {
    let lose = |rack_tlp| {
        let burst = |src, first, bytes| Source {
            src,
            dst: 1,
            level: 0,
            first: 5 * US + first,
            gap: Gap::Every(0),
            bytes: Bytes::Fixed(bytes),
            count: 1,
        };
        let mut sources = vec![burst(15, 300 * NS, 750)];
        sources.extend((2..11).map(|src| burst(src, 3_500 * NS, 1_500)));
        let workload = Workload { flows: flow(4), sources, apps: Vec::new() };
        let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
        let queue = Queue::DropTail(Limit::Packets(10));
        run(topology, queue, transport(rack_tlp), workload)
    };
    let (with, without) = (lose(true), lose(false));
    assert_eq!((without.counters.full.data, without.counters.timeouts), (1, 1));
    assert!(took(&without) > 200 * MS);
    assert_eq!((with.counters.full.data, with.counters.retransmitted), (1, 1));
    assert_eq!(with.counters.timeouts, 0);
    let smooth = |last: f64, sample: f64| last + (sample - last) / 8.0;
    let trips = [0.0, 1.2e6, 2.4e6].map(|waits| ROUND_TRIP as f64 + waits);
    let smoothed = trips[1..].iter().fold(trips[0], |last, &sample| smooth(last, sample));
    let expected = 15.964e6 + 2.0 * smoothed + ROUND_TRIP as f64;
    let got = took(&with) as f64;
    assert!((got - expected).abs() < 1e6, "{got} ps, not {expected}");
}

/// In the bursts that slow start loses, and after them: at most a packet more than was lost is sent
/// again, and no timeout is needed.
#[test]
fn what_is_lost_is_sent_again() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        for packets in [30, 60, 150] {
            let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
            let transport = Transport { rack_tlp: true, ..Transport::linux(congestion) };
            let queue = Queue::DropTail(Limit::Packets(packets));
            let outcome = run(topology, queue, transport, Workload::of_flows(flow(30_000)));
            let c = outcome.counters;
            assert!(c.full.data > 20);
            assert_eq!(c.timeouts, 0, "{congestion:?}, {packets}");
            let more = c.retransmitted - c.full.data;
            assert!(more <= 1, "{congestion:?}, {packets}: {more} more than were lost");
        }
    }
}

/// Packets and ACKs take two paths in turn, of which one is 4 us longer, so that round trips differ
/// by 8 us, less than a quarter of 40. That packets overtake each other is seen in the first window;
/// from then on none is taken for lost. Without RACK three packets above a hole are enough.
#[test]
fn sprayed_packets_are_not_taken_for_lost() {
    let cable = |delay| Cable { rate: 40_000_000_000, delay };
    let tree = ["l0", "l1", "s0", "s1"].iter().fold(Tree::new(), |tree, name| tree.switch(name));
    let tree = tree
        .host("a")
        .host("b")
        .cable("a", "l0", cable(8 * US))
        .cable("b", "l1", cable(8 * US))
        .cable("l0", "s0", cable(2 * US))
        .cable("s0", "l1", cable(2 * US))
        .cable("l0", "s1", cable(2 * US))
        .cable("s1", "l1", cable(6 * US));
    let again = |rack_tlp| {
        let transport = Transport { max_window: 200, ..transport(rack_tlp) };
        let topology = Graph::new(tree.clone()).build().unwrap();
        let queue = Queue::DropTail(Limit::None);
        let outcome = run(topology, queue, transport, Workload::of_flows(flow(20_000)));
        assert_eq!(outcome.counters.timeouts, 0);
        outcome.counters.retransmitted
    };
    let (with, without) = (again(true), again(false));
    assert!(with <= 1 && without >= 3, "{with} with RACK, {without} without");
}
