// SPDX-License-Identifier: GPL-2.0-or-later
//! Delivery rate samples (draft-ietf-ccwg-bbr, section 4.5), with what was under way and lost.
//!
//! What was lost is what was sent and is neither delivered nor under way.

use super::traits::{AckInfo, SentInfo};
use crate::core::time::{Ps, S};

/// Recorded for a packet when it leaves.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    at: Ps,
    first_at: Ps,
    delivered: u64,
    delivered_at: Ps,
    lost: u64,
    marked: u64,
    under_way: u32,
    limited: bool,
}

/// What the ACK of a packet says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// In bit/s; 0: none.
    pub rate: u64,
    /// Packets delivered before the acknowledged one left, and since then; lost and marked since
    /// then.
    pub before: u64,
    pub delivered: u64,
    pub lost: u64,
    pub marked: u64,
    /// Packets under way when it left, with it.
    pub under_way: u32,
    /// The sender had too little to send.
    pub limited: bool,
}

#[derive(Debug, Clone)]
pub(super) struct DeliveryRate {
    /// By packet number, one window of them.
    records: Box<[Sent]>,
    sent: u64,
    pub delivered: u64,
    pub lost: u64,
    pub marked: u64,
    delivered_at: Ps,
    first_at: Ps,
    /// Application-limited until this many packets are delivered; 0: not limited.
    limited: u64,
}

impl DeliveryRate {
    /// `most`: packets of the largest window.
    pub fn new(most: u32) -> Self {
        DeliveryRate {
            records: vec![Sent::default(); (most as usize + 1).next_power_of_two()].into(),
            sent: 0,
            delivered: 0,
            lost: 0,
            marked: 0,
            delivered_at: 0,
            first_at: 0,
            limited: 0,
        }
    }

    /// The sender has too little to send until what is under way has arrived.
    pub fn limit(&mut self, under_way: u32) {
        self.limited = self.delivered + u64::from(under_way);
    }

    pub fn on_send(&mut self, sent: &SentInfo) {
        let SentInfo { now, number, under_way, last, .. } = *sent;
        self.sent += 1;
        if under_way <= 1 {
            (self.first_at, self.delivered_at) = (now, now);
        }
        let DeliveryRate { first_at, delivered, delivered_at, lost, marked, .. } = *self;
        let limited = self.limited > 0;
        let place = number as usize & (self.records.len() - 1);
        self.records[place] =
            Sent { at: now, first_at, delivered, delivered_at, lost, marked, under_way, limited };
        if last {
            self.limit(under_way);
        }
    }

    /// Counts an ACK; returns a sample, if the ACK answers a single packet.
    pub fn on_ack(&mut self, ack: &AckInfo, least_trip: Ps) -> Option<Sample> {
        self.delivered += u64::from(ack.packets);
        self.delivered_at = ack.now;
        self.marked += if ack.marked { u64::from(ack.packets) } else { 0 };
        self.lost =
            self.sent.saturating_sub(self.delivered + u64::from(ack.under_way)).max(self.lost);
        if self.delivered > self.limited {
            self.limited = 0;
        }
        let number = ack.number.filter(|_| ack.packets > 0)?;
        let sent = self.records[number as usize & (self.records.len() - 1)];
        self.first_at = self.first_at.max(sent.at);
        let delivered = self.delivered - sent.delivered;
        let took = (ack.now - sent.delivered_at).max(sent.at - sent.first_at).max(1);
        let bits = u128::from(delivered) * 8 * u128::from(ack.bytes);
        // Much shorter than the least round trip: an ACK of the first copy of a retransmitted
        // packet.
        let credible = ack.now - sent.at >= least_trip.min(ack.round_trip) / 2;
        Some(Sample {
            rate: if credible { (bits * u128::from(S) / u128::from(took)) as u64 } else { 0 },
            before: sent.delivered,
            delivered,
            lost: self.lost - sent.lost,
            marked: self.marked - sent.marked,
            under_way: sent.under_way,
            limited: sent.limited,
        })
    }
}
