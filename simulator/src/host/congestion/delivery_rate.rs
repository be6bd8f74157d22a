// SPDX-License-Identifier: GPL-2.0-or-later
//! Delivery rate samples (draft-ietf-ccwg-bbr, section 4.1), with what was under way, lost and
//! marked.
//!
//! What was lost is what was sent and is neither delivered nor under way.

use super::traits::{AckInfo, SentInfo};
use crate::core::time::{Ps, S};

/// Recorded for a packet when it leaves. Counts are modulo 2^32.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    at: Ps,
    first_at: Ps,
    delivered_at: Ps,
    delivered: u32,
    lost: u32,
    marked: u32,
    under_way: u16,
    limited: bool,
}

/// What the ACK of a packet says, or its loss.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// In bit/s.
    pub rate: u64,
    /// The interval of the rate, and the time since the packet left.
    pub took: Ps,
    pub age: Ps,
    /// Packets delivered before the packet left, and since then; lost and marked since then.
    pub before: u64,
    pub delivered: u64,
    pub lost: u64,
    pub marked: u64,
    /// Packets under way when it left, with it.
    pub under_way: u64,
    /// The sender had too little to send.
    pub limited: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct DeliveryRate {
    /// By packet number, those from the first unacknowledged one on.
    records: Box<[Sent]>,
    /// The first unacknowledged packet when the last one left, and one above the highest sent.
    una: u32,
    high: u32,
    sent: u64,
    /// Packets sent at least once.
    pub distinct: u64,
    pub delivered: u64,
    pub lost: u64,
    pub marked: u64,
    delivered_at: Ps,
    first_at: Ps,
    /// Application-limited until this many packets are delivered; 0: not limited.
    limited: u64,
}

impl DeliveryRate {
    /// The sender has too little to send until what is under way has arrived.
    pub fn limit(&mut self, under_way: u32) {
        self.limited = self.delivered + u64::from(under_way);
    }

    pub fn is_limited(&self) -> bool {
        self.limited > 0
    }

    /// The connection's next flow begins: its packets are numbered anew.
    pub fn restart(&mut self) {
        (self.una, self.high, self.distinct) = (0, 0, self.delivered);
    }

    #[inline]
    pub fn on_send(&mut self, sent: &SentInfo) {
        let SentInfo { now, number, una, under_way, last, .. } = *sent;
        self.sent += 1;
        if under_way <= 1 {
            (self.first_at, self.delivered_at) = (now, now);
        }
        self.distinct += u64::from(number >= self.high);
        (self.una, self.high) = (una, self.high.max(number + 1));
        if (self.high - una) as usize > self.records.len() {
            self.grow();
        }
        let DeliveryRate { first_at, delivered_at, .. } = *self;
        let [delivered, lost, marked] = [self.delivered, self.lost, self.marked].map(|n| n as u32);
        let (limited, place) = (self.is_limited(), self.place(number));
        let under_way = under_way.min(u16::MAX.into());
        self.records[place] = Sent {
            at: now,
            first_at,
            delivered_at,
            delivered,
            lost,
            marked,
            under_way: under_way as u16,
            limited,
        };
        if last {
            self.limit(under_way);
        }
    }

    fn place(&self, number: u32) -> usize {
        number as usize & (self.records.len() - 1)
    }

    /// Makes room for all packets from the first unacknowledged one on; the last one is new.
    #[cold]
    fn grow(&mut self) {
        let room = ((self.high - self.una) as usize).next_power_of_two().max(8);
        let old = std::mem::replace(&mut self.records, vec![Sent::default(); room].into());
        let last = self.high - 1;
        for number in last.saturating_sub(old.len() as u32)..last {
            let place = self.place(number);
            self.records[place] = old[number as usize & (old.len() - 1)];
        }
    }

    /// Counts an ACK; returns a sample, if the ACK answers a single packet.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckInfo) -> Option<Sample> {
        self.delivered += u64::from(ack.packets);
        self.delivered_at = ack.now;
        self.marked += if ack.marked { u64::from(ack.packets) } else { 0 };
        self.lost =
            self.sent.saturating_sub(self.delivered + u64::from(ack.under_way)).max(self.lost);
        if self.delivered > self.limited {
            self.limited = 0;
        }
        let number = ack.number.filter(|_| ack.packets > 0)?;
        let sent = self.record(number)?;
        self.first_at = self.first_at.max(sent.at);
        let mut sample = self.sample(&sent, ack.now);
        sample.took = (ack.now - sent.delivered_at).max(sent.at - sent.first_at).max(1);
        let bits = u128::from(sample.delivered) * 8 * u128::from(ack.bytes);
        sample.rate = (bits * u128::from(S) / u128::from(sample.took)) as u64;
        Some(sample)
    }

    /// A packet is taken for lost; returns what happened since it left, without a rate.
    pub fn on_lost(&mut self, number: u32, now: Ps) -> Option<Sample> {
        self.lost += 1;
        Some(self.sample(&self.record(number)?, now))
    }

    /// The record of a packet, unless a later one has its place.
    fn record(&self, number: u32) -> Option<Sent> {
        let kept = u64::from(number) + self.records.len() as u64 >= u64::from(self.high);
        (kept && number < self.high).then(|| self.records[self.place(number)])
    }

    fn sample(&self, sent: &Sent, now: Ps) -> Sample {
        let since = |count: u64, then: u32| u64::from((count as u32).wrapping_sub(then));
        let delivered = since(self.delivered, sent.delivered);
        Sample {
            rate: 0,
            took: 0,
            age: now - sent.at,
            before: self.delivered - delivered,
            delivered,
            lost: since(self.lost, sent.lost),
            marked: since(self.marked, sent.marked),
            under_way: sent.under_way.into(),
            limited: sent.limited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::US;

    /// The ACK of a packet, with so many under way after it; every fourth is marked.
    fn ack(rate: &mut DeliveryRate, number: u32, under_way: u32) -> Sample {
        let (now, marked) = ((rate.sent + 1_000) * US, number % 4 == 0);
        let (packets, number, round_trip, bytes) = (1, Some(number), 0, 1_500);
        let (grows, round) = (false, false);
        rate.on_ack(&AckInfo {
            now,
            packets,
            number,
            round_trip,
            marked,
            under_way,
            bytes,
            grows,
            round,
        })
        .unwrap()
    }

    /// A packet a microsecond, and each ACK so many later: that many are delivered in a round trip,
    /// at a packet's rate, and the table has room for them and no more than twice as many.
    #[test]
    fn samples_are_right_while_the_table_grows() {
        let mut rate = DeliveryRate::default();
        for window in [1, 3, 8, 9, 40, 500] {
            rate.restart();
            for number in 0..2_000 {
                if number >= window {
                    let sample = ack(&mut rate, number - window, window - 1);
                    if number >= 2 * window {
                        let (held, took) = (u64::from(window), u64::from(window) * US);
                        assert_eq!((sample.rate, sample.lost), (12_000_000_000, 0));
                        assert_eq!((sample.took, sample.age), (took, took));
                        assert_eq!((sample.delivered, sample.under_way), (held, held));
                        assert!(sample.marked.abs_diff(held / 4) <= 1);
                    }
                }
                let una = (number + 1).saturating_sub(window);
                let (now, bytes, under_way) = ((rate.sent + 1_000) * US, 1_500, number + 1 - una);
                rate.on_send(&SentInfo { now, number, una, bytes, under_way, last: false });
            }
            (2_000 - window..2_000).for_each(|number| {
                ack(&mut rate, number, 1_999 - number);
            });
            let room = rate.records.len();
            assert!(room >= window as usize && room <= (2 * window as usize).max(8));
        }
    }

    /// A retransmission takes the place of its first copy, and a packet that the table has no room
    /// for any more gives no sample.
    #[test]
    fn a_place_is_its_last_packets() {
        let mut rate = DeliveryRate::default();
        let mut send = |now, number, una| {
            rate.on_send(&SentInfo { now, number, una, bytes: 1_500, under_way: 3, last: false });
        };
        (0..8).for_each(|number| send(u64::from(number) * US, number, 0));
        send(20 * US, 3, 3);
        send(21 * US, 8, 3);
        let mut sample = |number| rate.on_lost(number, 30 * US).map(|sample| sample.age);
        assert_eq!([sample(3), sample(7), sample(8)], [10, 23, 9].map(|age| Some(age * US)));
        assert_eq!([sample(0), sample(9)], [None; 2]);
    }
}
