// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do where not every data packet is acknowledged alone, and to set up a connection. Nothing here is inlined, so that
//! the way of a packet with an ACK of its own, most of what is simulated, stays short: 2 % of all instructions.

use crate::core::time::Ps;
use crate::host::receiver::Reply;
use crate::packet::{since, Kind, Packet, NO_ECHO};
use crate::sim::engine::{Simulation, TIMER};

impl Simulation {
    /// A data packet has arrived that may wait for its ACK.
    #[inline(never)]
    pub(crate) fn answer_some(&mut self, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        let (size, had) = (flow.size(), flow.expected());
        let [before, at_once] = flow.receiver.arrive(&self.scheme.transport, self.now, packet, size);
        let complete = had < size && flow.expected() == size;
        if let Some(reply) = before {
            self.send_ack(slot, reply);
        }
        if let Some(Reply { cumulative, echo, stamp, marked }) = at_once {
            self.turn(handle, &Packet { seq: cumulative, echo, stamp, marked, kind: Kind::Ack, ..*packet });
            // The last packet is always acknowledged at once.
            if complete {
                self.received(slot);
            }
            return;
        }
        self.pool.remove(handle);
        let flow = &mut self.flows[slot as usize];
        flow.in_network -= 1;
        if flow.receiver.timer_at == Ps::MAX {
            self.keep_ack_timer(slot);
        }
    }

    /// The receiver's timer event; one that comes too early looks again later.
    #[inline(never)]
    pub(crate) fn acknowledge_late(&mut self, slot: u32) {
        let receiver = &mut self.flows[slot as usize].receiver;
        receiver.timer_at = Ps::MAX;
        if receiver.due > self.now {
            self.keep_ack_timer(slot);
        } else if let Some(reply) = receiver.expire() {
            self.send_ack(slot, reply);
        }
    }

    fn keep_ack_timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.receiver.due < Ps::MAX {
            flow.receiver.timer_at = flow.receiver.due;
            flow.timers += 1;
            self.wheel.push(flow.receiver.due, TIMER | slot);
        }
    }

    /// An ACK of its own, for packets that have waited for it.
    fn send_ack(&mut self, slot: u32, Reply { cumulative, echo, stamp, marked }: Reply) {
        let flow = &mut self.flows[slot as usize];
        flow.in_network += 1;
        let (host, to) = (u32::from(flow.to), flow.from);
        let bytes = self.scheme.transport.ack_bytes;
        let (seq, kind) = (cumulative, Kind::Ack);
        self.tally.sent[kind as usize] += 1;
        let ack = Packet { flow: slot, seq, echo, stamp, rank: 0, link: 0, bytes, to, kind, marked, ect: false };
        let handle = self.pool.add(ack);
        self.offer(host, handle);
    }

    /// A probe has arrived and goes back as an ACK of all that has.
    #[inline(never)]
    pub(crate) fn answer_probe(&mut self, handle: u32, packet: &Packet) {
        let seq = self.flows[packet.flow as usize].receiver.probed();
        self.turn(handle, &Packet { seq, echo: NO_ECHO, kind: Kind::Ack, ..*packet });
    }

    /// A new connection begins with a SYN. The last ACK of the handshake is the first data.
    #[inline(never)]
    pub(crate) fn connect(&mut self, slot: u32) {
        self.flows[slot as usize].connect(&self.scheme.transport, self.now);
        self.send_syn(slot);
    }

    #[inline(never)]
    pub(crate) fn send_syn(&mut self, slot: u32) {
        let capable = self.scheme.transport.congestion.ecn_capable();
        let release = self.send_bare(slot, Kind::Syn, capable);
        if release > self.now {
            self.flows[slot as usize].hold(&self.scheme.transport, self.now, release);
        }
        self.keep_timer(slot);
    }

    /// A SYN has arrived, for the first time or again, and goes back as a SYN-ACK.
    #[inline(never)]
    pub(crate) fn accept(&mut self, handle: u32, packet: &Packet) {
        self.turn(handle, &Packet { kind: Kind::SynAck, ..*packet });
    }

    #[inline(never)]
    pub(crate) fn connected(&mut self, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.in_network -= 1;
        if flow.connected(since(packet.stamp, self.now)) {
            self.send_window(slot);
        } else {
            self.free_if_done(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::time::{MS, US};
    use crate::net::topology::{LeafSpine, Topology};
    use crate::packet::{Kind, Packet, AGAIN};
    use crate::sim::engine::Simulation;
    use crate::sim::scheme::{Congestion, Limit, Queue, Scheme, Transport};
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
            let arrivals = simulation.wheel.pending().filter(|what| what >> 29 == 0);
            seen.extend(arrivals.map(|handle| *simulation.pool.get(handle)));
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
        let told =
            |congestion| seen(congestion).iter().filter(|p| p.kind == Kind::Data && p.echo & crate::packet::CWR != 0).count();
        assert!(told(Congestion::Ecn) > 0);
        assert_eq!([Congestion::Reno, Congestion::Cubic, Congestion::Dctcp { shift: 4 }].map(told), [0, 0, 0]);
    }
}
