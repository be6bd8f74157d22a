// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow's receiving end: what has arrived, and when it is acknowledged.

use crate::core::time::Ps;
use crate::host::congestion::Echo;
use crate::host::sequence_set::SequenceSet;
use crate::host::transport::{Recovery, Transport};
use crate::packet::{stamp, Packet, CWR, NO_ECHO};

/// Packets in order that one delayed ACK covers (RFC 5681, section 4.2).
const EVERY: u32 = 2;

/// The content of an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Cumulative acknowledgement, in packets.
    pub cumulative: u32,
    /// The packet that it answers, or `NO_ECHO`.
    pub echo: u32,
    /// Time stamp for the sender's round trip: the first packet that it answers (RFC 7323, section
    /// 4.1).
    pub stamp: u32,
    pub marked: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    /// The first missing packet, and the packets above it that have arrived.
    expected: u32,
    early: SequenceSet,
    /// Packets not acknowledged yet.
    pending: u32,
    /// Time stamp of the first of them; for laws that see delay, of the last, plus the time that
    /// the receiver waited.
    stamp: u32,
    /// The ECN echo: a mark since the last CWR (RFC 3168), or on the last packet.
    marked: bool,
    /// Go-back-N: the gap was told with a NAK.
    told: bool,
    /// When pending packets must be acknowledged; `Ps::MAX`: none are pending.
    pub due: Ps,
    /// When the timer event is due; `Ps::MAX`: none.
    pub timer_at: Ps,
}

impl Receiver {
    pub fn new(t: &Transport) -> Self {
        Receiver {
            expected: 0,
            early: SequenceSet::new(t.max_window),
            pending: 0,
            stamp: 0,
            marked: false,
            told: false,
            due: Ps::MAX,
            timer_at: Ps::MAX,
        }
    }

    /// Records a packet; returns the packets received in order.
    #[inline]
    pub fn receive(&mut self, number: u32) -> u32 {
        if number == self.expected {
            self.expected += 1;
            while !self.early.is_empty() && self.early.remove(self.expected) {
                self.expected += 1;
            }
        } else if number > self.expected {
            self.early.insert(number);
        }
        self.expected
    }

    /// Packets received in order.
    pub fn expected(&self) -> u32 {
        self.expected
    }

    /// Packets received.
    pub fn got(&self) -> u32 {
        self.expected + self.early.len()
    }

    /// The first gap below `end`: its first packet, and one above its last.
    pub fn gap(&self, end: u32) -> (u32, u32) {
        let above = (self.expected..end)
            .find(|&number| !self.early.is_empty() && self.early.contains(number));
        (self.expected, above.unwrap_or(end))
    }

    /// A probe has arrived, whose answer covers all packets; returns the packets received in order.
    pub fn probed(&mut self) -> u32 {
        self.answered();
        self.expected
    }

    /// Records a packet of a flow of `size` packets, with delayed ACKs. Returns two replies: the
    /// first is due before this packet, with the mark of earlier packets; the second answers it.
    /// Without the second the packet is pending until `due`.
    pub fn arrive(
        &mut self,
        t: &Transport,
        now: Ps,
        packet: &Packet,
        size: u32,
    ) -> [Option<Reply>; 2] {
        let mut before = None;
        let mut at_once = false;
        match t.congestion.echo() {
            Echo::UntilHeard => {
                self.marked = packet.marked || self.marked && packet.echo & CWR == 0
            }
            // Pending packets are acknowledged with the previous state.
            Echo::Exactly if packet.marked != self.marked => {
                before = (self.pending > 0).then(|| self.reply(NO_ECHO));
                self.marked = packet.marked;
                at_once = true;
            }
            Echo::AtOnce => {
                self.marked = packet.marked;
                at_once |= packet.marked;
            }
            Echo::Exactly | Echo::Never => {}
        }
        if t.recovery == Recovery::GoBackN && packet.seq > self.expected {
            return [before, self.refuse(packet, at_once)];
        }
        self.told &= packet.seq != self.expected;
        // RFC 5681, section 4.2: packets out of order, or filling a hole, are acknowledged at once;
        // so is the end of a flow, as a FIN is.
        at_once |= t.delayed_ack.is_none();
        at_once |= packet.seq != self.expected || !self.early.is_empty();
        at_once |= self.receive(packet.seq) == size;
        if self.pending == 0 || t.congestion.sees_delay() {
            self.stamp = packet.stamp;
        }
        self.pending += 1;
        if at_once || self.pending == EVERY {
            return [before, Some(self.reply(packet.seq))];
        }
        self.due = now + t.delayed_ack.unwrap_or(0);
        [before, None]
    }

    /// Go-back-N drops a packet above a gap. The first is answered with a NAK, the reply that names
    /// a packet above what it acknowledges; of later ones only a mark is told.
    fn refuse(&mut self, packet: &Packet, mark: bool) -> Option<Reply> {
        let nak = !std::mem::replace(&mut self.told, true);
        if !nak && !mark {
            return None;
        }
        self.stamp = packet.stamp;
        Some(self.reply(if nak { packet.seq } else { NO_ECHO }))
    }

    /// The reply that is due, if packets are pending.
    pub fn expire(&mut self, t: &Transport, now: Ps) -> Option<Reply> {
        if let (true, Some(delay)) = (t.congestion.sees_delay(), t.delayed_ack) {
            self.stamp = self.stamp.wrapping_add(stamp((now + delay).saturating_sub(self.due)));
        }
        (self.pending > 0).then(|| self.reply(NO_ECHO))
    }

    fn reply(&mut self, echo: u32) -> Reply {
        self.answered();
        Reply { cumulative: self.expected, echo, stamp: self.stamp, marked: self.marked }
    }

    fn answered(&mut self) {
        self.pending = 0;
        self.due = Ps::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, US};
    use crate::host::congestion::{Congestion, Dcqcn, Dctcp, Swift};
    use crate::packet::{since, Kind};

    const DELAY: Ps = 40 * MS;

    /// A receiver of ten packets; what it replies to (number, mark, CWR), the packets having left
    /// at 100, 101, ...
    fn replies(congestion: Congestion, packets: &[(u32, bool, bool)]) -> Vec<[Option<Reply>; 2]> {
        let t = Transport { delayed_ack: Some(DELAY), ..Transport::linux(congestion) };
        let mut receiver = Receiver::new(&t);
        let arrive = |(stamp, &(seq, marked, cwr)): (u32, &(u32, bool, bool))| {
            let echo = if cwr { CWR } else { 0 };
            let (kind, bytes) = (Kind::Data, 1500);
            let packet = Packet {
                seq,
                echo,
                stamp,
                kind,
                marked,
                ect: true,
                ..Packet::datagram(0, 1, 0, bytes)
            };
            let replies = receiver.arrive(&t, 7, &packet, 10);
            assert_eq!(receiver.due, if replies[1].is_none() { 7 + DELAY } else { Ps::MAX });
            replies
        };
        (100..).zip(packets).map(arrive).collect()
    }

    fn ack(cumulative: u32, echo: u32, stamp: u32, marked: bool) -> Reply {
        Reply { cumulative, echo, stamp, marked }
    }

    /// Every packet above a hole is answered by an ACK of its own, whatever was pending: that one
    /// number an ACK is all that it tells of selectively loses nothing.
    #[test]
    fn what_is_out_of_order_is_acknowledged_at_once() {
        let got = replies(
            Congestion::Reno,
            &[0, 1, 2, 4, 6, 3, 5, 7, 7, 8, 9].map(|n| (n, false, false)),
        );
        let expected = [
            None,
            Some(ack(2, 1, 100, false)),
            None,
            Some(ack(3, 4, 102, false)), // with the pending 2
            Some(ack(3, 6, 104, false)),
            Some(ack(5, 3, 105, false)), // fills a part of a hole
            Some(ack(7, 5, 106, false)), // and the rest
            None,
            Some(ack(8, 7, 107, false)), // a second copy
            None,
            Some(ack(10, 9, 109, false)),
        ];
        assert_eq!(got, expected.map(|reply| [None, reply]));
    }

    #[test]
    fn the_end_of_a_flow_is_acknowledged_at_once() {
        let got =
            replies(Congestion::Reno, &[0, 1, 2, 3, 4, 5, 6, 8, 9, 7].map(|n| (n, false, false)));
        assert_eq!(got[9], [None, Some(ack(10, 7, 109, false))]);
    }

    /// RFC 8257, figure 1: every packet is acknowledged with its own mark.
    #[test]
    fn dctcps_acks_tell_each_packets_mark() {
        let got = replies(
            Congestion::Dctcp(Dctcp { shift: 4 }),
            &[(0, false), (1, true), (2, true), (3, false), (4, false)].map(|(n, m)| (n, m, false)),
        );
        let expected = [
            [None, None],
            [Some(ack(1, NO_ECHO, 100, false)), Some(ack(2, 1, 101, true))],
            [None, None],
            [Some(ack(3, NO_ECHO, 102, true)), Some(ack(4, 3, 103, false))],
            [None, None],
        ];
        assert_eq!(got, expected);
    }

    /// DCQCN: a mark does not wait, and what comes without one waits for a second.
    #[test]
    fn dcqcns_marks_are_told_at_once() {
        let packets =
            [(0, false), (1, true), (2, true), (3, false), (4, false)].map(|(n, m)| (n, m, false));
        let got = replies(Congestion::Dcqcn(Dcqcn::default()), &packets);
        let expected = [
            None,
            Some(ack(2, 1, 100, true)),
            Some(ack(3, 2, 102, true)),
            None,
            Some(ack(5, 4, 103, false)),
        ];
        assert_eq!(got, expected.map(|reply| [None, reply]));
    }

    /// Go-back-N: a gap is told once, until it is filled; what is above it has to come again. Marks
    /// are told of what is dropped, too.
    #[test]
    fn a_gap_is_told_once() {
        let t = Transport {
            recovery: Recovery::GoBackN,
            delayed_ack: None,
            ..Transport::linux(Congestion::Dcqcn(Dcqcn::default()))
        };
        let mut receiver = Receiver::new(&t);
        let mut arrive = |seq, marked| {
            let packet = Packet { seq, marked, ..Packet::datagram(0, 1, 0, 1_500) };
            let [before, reply] = receiver.arrive(&t, 0, &packet, 10);
            assert_eq!(before, None);
            reply.map(|reply| (reply.cumulative, reply.echo, reply.marked))
        };
        assert_eq!(arrive(0, false), Some((1, 0, false)));
        assert_eq!(arrive(2, false), Some((1, 2, false)), "a NAK");
        assert_eq!(arrive(3, false), None);
        assert_eq!(arrive(4, true), Some((1, NO_ECHO, true)), "a mark");
        assert_eq!(arrive(1, false), Some((2, 1, false)));
        assert_eq!(arrive(4, true), Some((2, 4, true)), "the next gap, with a mark");
        assert_eq!(arrive(1, false), Some((2, 1, false)), "a second copy");
        assert_eq!(arrive(3, false), None);
        let rest = [2, 3, 4].map(|seq| arrive(seq, false));
        assert_eq!(rest, [3, 4, 5].map(|next| Some((next, next - 1, false))));
    }

    /// Swift's round trip is that of the last packet that an ACK answers, without what the receiver
    /// has waited.
    #[test]
    fn swifts_round_trip_is_the_networks() {
        let t = Transport {
            delayed_ack: Some(DELAY),
            ..Transport::linux(Congestion::Swift(Swift::default()))
        };
        let sent = |seq, at| Packet {
            seq,
            stamp: stamp(at),
            kind: Kind::Data,
            ..Packet::datagram(0, 1, 0, 1_500)
        };
        let took = |reply: Option<Reply>, now| since(reply.unwrap().stamp, now).abs_diff(20 * US);
        let mut receiver = Receiver::new(&t);
        let now = 900 * MS;
        assert_eq!(receiver.arrive(&t, now, &sent(0, now - 20 * US), 10), [None, None]);
        let [_, both] = receiver.arrive(&t, now + 30 * MS, &sent(1, now + 30 * MS - 20 * US), 10);
        assert!(took(both, now + 30 * MS) < 10_000);
        receiver.arrive(&t, now + MS, &sent(2, now + MS - 20 * US), 10);
        for late in [0, 7 * MS] {
            let due = now + MS + DELAY + late;
            assert!(took(receiver.clone().expire(&t, due), due) < 20_000);
        }
    }

    /// Ten thousand times ten packets with random marks, in order: every packet is acknowledged
    /// once, with its own mark.
    #[test]
    fn marks_are_acknowledged_exactly() {
        let mut rng = crate::core::rng::Rng::new(3, 0);
        for _ in 0..10_000 {
            let bits = rng.bits() & rng.bits();
            let packets: Vec<(u32, bool, bool)> =
                (0..10).map(|n| (n, bits >> n & 1 == 1, false)).collect();
            let mut next = 0;
            for reply in replies(Congestion::Dctcp(Dctcp { shift: 4 }), &packets)
                .into_iter()
                .flatten()
                .flatten()
            {
                assert!((next + 1..=next + 2).contains(&reply.cumulative), "{packets:?}");
                assert!(packets[next as usize..reply.cumulative as usize]
                    .iter()
                    .all(|packet| packet.1 == reply.marked));
                next = reply.cumulative;
            }
            assert_eq!(next, 10);
        }
    }

    /// RFC 3168, section 6.1.3: once marked, until the sender says that it has reduced its window.
    #[test]
    fn a_mark_is_echoed_until_it_is_heard() {
        let packets = [
            (0, true, false),
            (1, false, false),
            (2, false, false),
            (3, false, false),
            (4, false, true),
            (5, false, false),
        ];
        let said = |packets: &[_]| {
            let replies = replies(Congestion::Ecn, packets);
            replies
                .into_iter()
                .filter_map(|[_, reply]| reply.map(|reply| reply.marked))
                .collect::<Vec<bool>>()
        };
        assert_eq!(said(&packets), [true, true, false]);
        let both = [(0, true, false), (1, false, false), (2, true, true), (3, false, false)];
        assert_eq!(said(&both), [true, true], "marked with the CWR");
    }
}
