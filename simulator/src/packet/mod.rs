// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets: 32 bytes each, in one pool, addressed by a 32-bit handle.

pub(crate) mod chain;
pub(crate) mod counts;

use crate::core::prefetch::prefetch;
use crate::core::time::Ps;

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Data,
    Ack,
    /// pFabric's header-only packet, which tests whether the path works.
    Probe,
    Datagram,
    Syn,
    SynAck,
}

/// Number of kinds.
pub(crate) const KINDS: usize = 6;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// The flow's slot, or the source's index; from the number of sources on, an application's
    /// channel.
    pub flow: u32,
    /// Data: its number in the flow. ACK: the cumulative acknowledgement, in packets. Datagram: low
    /// half of `created`.
    pub seq: u32,
    /// ACK: number of the packet that it answers; this is all the selective acknowledgement there
    /// is. Datagram: high half of `created`. Data: [`CWR`], [`AGAIN`], [`SCALABLE`], and below them
    /// the parts of the time that `stamp` leaves out, above and below it.
    pub echo: u32,
    /// When data left the host, in units of [`STAMP`]; the ACK returns it. Application datagram:
    /// its token.
    pub stamp: u32,
    /// Priority queues serve lower ranks first; ACKs have 0.
    pub rank: u32,
    /// The link that the packet is on or waiting for.
    pub link: u32,
    /// Bytes on the wire.
    pub bytes: u16,
    pub to: Destination,
    pub kind: Kind,
    /// Data: congestion experienced. ACK: its echo (ECE). SYN and SYN-ACK: the flow is ECN-capable
    /// (RFC 3168, section 6.1.1).
    pub marked: bool,
    /// ECN-capable transport: it may be marked instead of dropped. Set for first transmissions of
    /// data of ECN-capable senders (RFC 3168, section 6.1.5), and for whatever else the transport's
    /// settings add.
    pub ect: bool,
}

/// A host number in three bytes, so that a packet has 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Destination([u8; 3]);

impl Destination {
    pub fn new(host: u32) -> Self {
        let [low, middle, high, _] = host.to_le_bytes();
        Destination([low, middle, high])
    }

    #[inline]
    pub fn host(self) -> u32 {
        let [low, middle, high] = self.0;
        u32::from_le_bytes([low, middle, high, 0])
    }
}

/// In `echo` of an ACK that answers no single packet: a probe's, or a delayed one.
pub(crate) const NO_ECHO: u32 = u32::MAX;
/// In `echo` of data: congestion window reduced (RFC 3168, section 6.1.2).
pub(crate) const CWR: u32 = 1 << 31;
/// In `echo` of data: a retransmission.
pub(crate) const AGAIN: u32 = 1 << 30;

/// In `echo` of ECN-capable data: its sender responds in proportion to the share of marks (RFC
/// 9331, section 4.1: ECT(1)).
pub(crate) const SCALABLE: u32 = 1 << 29;

/// log2 of the unit of time stamps, 8.192 ns: 32 bits last 35 s, longer than any round trip over
/// cables.
const STAMP: u32 = 13;
/// The time after which stamps repeat.
pub(crate) const STAMPS: Ps = 1 << (32 + STAMP);
/// The parts of the time that a stamp leaves out, kept in `echo` of data: the last 13 bits, and the
/// bits above the stamp, 32 places lower.
const FINE: u32 = (1 << STAMP) - 1;
const COARSE: u32 = SCALABLE - 1 - FINE;

/// Converts `now`, or a duration, to stamp units.
pub(crate) fn stamp(now: Ps) -> u32 {
    (now >> STAMP) as u32
}

/// Time since the stamp was taken, at most 8.192 ns too long, modulo [`STAMPS`].
pub(crate) fn since(stamped: u32, now: Ps) -> Ps {
    Ps::from(stamp(now).wrapping_sub(stamped)) << STAMP
}

impl Packet {
    /// A datagram to host `to`, from a source or channel.
    pub fn datagram(flow: u32, to: u32, level: u8, bytes: u16) -> Self {
        Packet {
            flow,
            seq: 0,
            echo: 0,
            stamp: 0,
            rank: 1 + u32::from(level),
            link: 0,
            bytes,
            to: Destination::new(to),
            kind: Kind::Datagram,
            marked: false,
            ect: false,
        }
    }

    /// The ECE bit (RFC 3168, section 6.1).
    pub fn ece(&self) -> bool {
        self.marked && matches!(self.kind, Kind::Ack | Kind::Syn | Kind::SynAck)
    }

    /// The level of what is served by level, 0 to 7; ACKs are in level 0.
    pub fn level(&self) -> u8 {
        self.rank.saturating_sub(1).min(7) as u8
    }

    /// Marks data: congestion experienced. Packets without data are left alone: their bit means
    /// something else, and nobody would react.
    #[inline]
    pub fn mark(&mut self) {
        self.marked |= self.kind == Kind::Data;
    }

    /// When a datagram left its host's limiter.
    pub fn created(&self) -> Ps {
        Ps::from(self.echo) << 32 | Ps::from(self.seq)
    }

    pub fn set_created(&mut self, now: Ps) {
        self.seq = now as u32;
        self.echo = (now >> 32) as u32;
    }

    /// Records that data, a probe or a SYN leaves the host's limiter.
    #[inline]
    pub fn set_sent(&mut self, now: Ps) {
        self.stamp = stamp(now);
        self.echo |= now as u32 & FINE | (now >> 32) as u32 & COARSE;
    }

    /// How long ago its sender sent it, or for an ACK the data that it answers: exact for data and
    /// datagrams.
    pub fn age(&self, now: Ps) -> Ps {
        match self.kind {
            Kind::Data => self.under_way(now),
            Kind::Datagram => now - self.created(),
            _ => since(self.stamp, now),
        }
    }

    /// How long data has been under way; exact below 26 days.
    #[inline]
    pub fn under_way(&self, now: Ps) -> Ps {
        let sent = Ps::from(self.echo & COARSE) << 32
            | Ps::from(self.stamp) << STAMP
            | Ps::from(self.echo & FINE);
        now.wrapping_sub(sent) & ((Ps::from(SCALABLE) << 32) - 1)
    }
}

/// All packets. Freed handles are reused, the latest first, so that few cache lines are touched.
#[derive(Debug)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    /// The links of packets in a [`chain::Chain`], indexed by handle plus one. Entry 0 belongs to
    /// no packet, so that ends of chains need no special case.
    besides: Vec<u32>,
    free: Vec<u32>,
}

impl Default for Pool {
    fn default() -> Self {
        Pool { packets: Vec::new(), besides: vec![0], free: Vec::new() }
    }
}

impl Pool {
    pub fn add(&mut self, packet: Packet) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.packets[handle as usize] = packet;
            handle
        } else {
            self.packets.push(packet);
            self.besides.push(0);
            (self.packets.len() - 1) as u32
        }
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.packets.len()
    }

    pub fn remove(&mut self, handle: u32) {
        self.free.push(handle);
    }

    #[inline]
    pub fn get(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }

    /// The age of a packet that arrives now, and the link that it comes by.
    pub fn arrival(&self, handle: u32, now: Ps) -> (Ps, u32) {
        let packet = self.get(handle);
        (packet.age(now), packet.link)
    }

    #[inline]
    pub fn prefetch(&self, handle: u32) {
        prefetch(&self.packets[handle as usize]);
        prefetch(&self.besides[handle as usize + 1]);
    }

    #[inline]
    fn besides(&self, place: u32) -> u32 {
        self.besides[place as usize]
    }

    #[inline]
    fn beside(&mut self, place: u32) -> &mut u32 {
        &mut self.besides[place as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::S;

    #[test]
    fn packets_are_small() {
        assert_eq!(std::mem::size_of::<Packet>(), 32);
    }

    #[test]
    fn a_destination_is_any_host() {
        for host in [0, 1, 255, 65_535, 65_536, 90_000, (1 << 24) - 1] {
            assert_eq!(Packet::datagram(0, host, 0, 1).to.host(), host);
        }
    }

    #[test]
    fn data_knows_exactly_how_long_it_is_under_way() {
        let mut pool = Pool::default();
        let echo = CWR | AGAIN | SCALABLE;
        let handle = pool.add(Packet {
            echo,
            kind: Kind::Data,
            ect: true,
            ..Packet::datagram(0, 1, 0, 1500)
        });
        for sent in [
            0,
            8_191,
            8_192,
            (1 << 45) - 1,
            (1 << 45) + 12_345,
            (3 << 45) - 7,
            (1 << 61) - 1,
            (3 << 61) + 5,
        ] {
            let mut packet = *pool.get(handle);
            packet.set_sent(sent);
            for took in
                [0, 1, 8_191, 14_680_001, 34 * S, 36 * S, 40 * S, 1_000_000 * S, (1 << 61) - 1]
            {
                assert_eq!(packet.under_way(sent + took), took);
            }
            assert_eq!(packet.echo & (CWR | AGAIN | SCALABLE), CWR | AGAIN | SCALABLE);
        }
    }

    #[test]
    fn stamps_survive_their_wrap() {
        let wrap = 1u64 << (32 + STAMP);
        for sent in [0, wrap - 5_000_000, wrap + 12_345] {
            let trip = since(stamp(sent), sent + 14_680_000);
            assert!(
                (14_680_000..14_680_000 + 8_192).contains(&(trip + 8_191))
                    || trip.abs_diff(14_680_000) <= 8_192
            );
        }
    }
}
