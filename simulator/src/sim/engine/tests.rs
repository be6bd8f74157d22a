// SPDX-License-Identifier: GPL-2.0-or-later
//! What packets say, seen on the links of a run.

use crate::core::time::{MS, US};
use crate::host::transport::{Congestion, Transport};
use crate::net::topology::{LeafSpine, Topology};
use crate::packet::{Kind, Packet, AGAIN};
use crate::queue::limit::Limit;
use crate::queue::setting::Queue;
use crate::sim::engine::Simulation;
use crate::sim::scheme::Scheme;
use crate::sim::workload::{FlowSpec, Flows, Workload};

/// All packets seen on links, every 2 us of 8 ms, in which a queue of ten packets loses some.
fn seen(congestion: Congestion) -> Vec<Packet> {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let transport = Transport { min_rto: MS, ..Transport::linux(congestion) };
    let scheme = Scheme { transport, queue: Queue::DropTail(Limit::Packets(10)), ..Scheme::tcp() };
    let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 600 };
    let workload = Workload::of_flows(Flows::List(vec![flow]));
    let mut simulation = Simulation::new(&topology, &scheme, &workload, 1).unwrap();
    let mut seen = Vec::new();
    for at in (0..8 * MS).step_by(2 * US as usize) {
        simulation.run_until(at);
        // The lowest kind of event is a packet's arrival.
        let arrivals = simulation.network.wheel.pending().filter(|what| what >> 29 == 0);
        seen.extend(arrivals.map(|handle| *simulation.network.pool.get(handle)));
    }
    assert!(simulation.outcome().counters.retransmitted > 0);
    seen
}

/// RFC 3168: data may be marked, but no retransmission (section 6.1.5), pure ACK (6.1.4) or SYN (6.1.1); a SYN and its answer say
/// that the flow is ECN-capable. Without ECN nothing does.
#[test]
fn packets_say_what_may_be_marked() {
    for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Ecn, Congestion::Dctcp { shift: 4 }] {
        let capable = congestion.ecn_capable();
        let seen = seen(congestion);
        for packet in &seen {
            let again = packet.echo & AGAIN != 0;
            let expected = match packet.kind {
                Kind::Data => (capable && !again, false),
                Kind::Syn | Kind::SynAck => (false, capable),
                _ => (false, false),
            };
            assert_eq!((packet.ect, packet.marked), expected, "{congestion:?}: {packet:?}");
        }
        let kinds = [Kind::Data, Kind::Ack, Kind::Syn, Kind::SynAck];
        assert!(kinds.iter().all(|&kind| seen.iter().any(|packet| packet.kind == kind)));
        assert!(seen.iter().any(|packet| packet.kind == Kind::Data && packet.echo & AGAIN != 0));
    }
}

/// With ECN a reduced window is told in the first new packet after it, once for each.
#[test]
fn a_reduced_window_is_told() {
    let told = |congestion| seen(congestion).iter().filter(|p| p.kind == Kind::Data && p.echo & crate::packet::CWR != 0).count();
    assert!(told(Congestion::Ecn) > 0);
    assert_eq!([Congestion::Reno, Congestion::Cubic, Congestion::Dctcp { shift: 4 }].map(told), [0, 0, 0]);
}
