// SPDX-License-Identifier: GPL-2.0-or-later
//! What packets carry, seen on the links of a run.

use crate::core::time::{MS, US};
use crate::host::congestion::{Congestion, Dctcp, Homa};
use crate::host::transport::Transport;

use crate::net::topology::{Cable, LeafSpine, Topology, Tree};
use crate::packet::{Kind, Packet, AGAIN};
use crate::queue::kinds::{Priority, Queue};
use crate::queue::limit::Limit;
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

/// RFC 3168: data may be marked, but no retransmission (section 6.1.5), pure ACK (6.1.4) or SYN
/// (6.1.1); a SYN and its answer say that the flow is ECN-capable. Without ECN nothing does.
#[test]
fn packets_say_what_may_be_marked() {
    for congestion in [
        Congestion::Reno,
        Congestion::Cubic,
        Congestion::Ecn,
        Congestion::Dctcp(Dctcp { shift: 4 }),
    ] {
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
    let told = |congestion| {
        seen(congestion)
            .iter()
            .filter(|p| p.kind == Kind::Data && p.echo & crate::packet::CWR != 0)
            .count()
    };
    assert!(told(Congestion::Ecn) > 0);
    assert_eq!(
        [Congestion::Reno, Congestion::Cubic, Congestion::Dctcp(Dctcp { shift: 4 })].map(told),
        [0, 0, 0]
    );
}

/// Homa's sender is on the level that it was told: a longer message comes, so that what the
/// receiver grants is on another one from now on, and the sender's packets that wait for its slow
/// link are on that only once a grant has come that says so.
#[test]
fn grants_tell_their_level() {
    let mut tree = Tree::new().switch("s");
    for (name, gigabits, delay) in [("a", 1, 8_700_000), ("b", 10, 2_700_000), ("c", 10, 2_700_000)]
    {
        tree = tree.host(name).cable(name, "s", Cable { rate: gigabits * 1_000_000_000, delay });
    }
    let transport = Transport {
        delayed_ack: None,
        handshake: None,
        initial_window: 12,
        ..Transport::linux(Congestion::Homa(Homa { scheduled: 6 }))
    };
    let scheme =
        Scheme { transport, queue: Queue::Priority(Priority { limit: 1 << 30 }), ..Scheme::tcp() };
    let flows = vec![
        FlowSpec { start: 0, src: 0, dst: 2, packets: 60 },
        FlowSpec { start: 400 * US, src: 1, dst: 2, packets: 200 },
    ];
    let mut simulation = Simulation::new(
        &tree.build().unwrap(),
        &scheme,
        &Workload::of_flows(Flows::List(flows)),
        1,
    )
    .unwrap();
    let (mut told, mut sent) = (None, None);
    for at in (390 * US..460 * US).step_by(50_000) {
        simulation.run_until(at);
        let network = &simulation.network;
        let links = network
            .wheel
            .pending()
            .filter(|what| what >> 29 == 0)
            .map(|handle| *network.pool.get(handle));
        for packet in links {
            match packet.kind {
                // Its last moment on the way.
                Kind::Ack
                    if packet.to.host() == 0
                        && packet.stamp == 6
                        && told.is_none_or(|(seq, _)| seq == packet.seq) =>
                {
                    told = Some((packet.seq, at));
                }
                Kind::Data if packet.link == 0 && packet.level() == 6 => sent = sent.or(Some(at)),
                _ => {}
            }
        }
    }
    let (Some((_, told)), Some(sent)) = (told, sent) else { panic!("{told:?} {sent:?}") };
    assert!(sent >= told, "sent at {sent}, told at {told}");
}
