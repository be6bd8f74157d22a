// SPDX-License-Identifier: GPL-2.0-or-later
//! Results of flows and sources, and latencies.

use std::ops::AddAssign;

use serde::Serialize;

use crate::core::time::Ps;

/// The result of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlowResult {
    /// When its first byte was handed over.
    pub start: Ps,
    /// When the sender got the last ACK; none: the run stopped before.
    pub finish: Option<Ps>,
    /// Data packets.
    pub packets: u32,
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// The level on which it ran: that of its size, its own, or the lowest if it was not admitted.
    pub level: u8,
    /// Number of its transport.
    pub transport: u8,
    /// Bytes of its last packet on the wire.
    pub last: u16,
    /// Its deadline, if any.
    pub deadline: Option<Ps>,
}

impl FlowResult {
    /// Whether it met its deadline, in a run until `end`; none: it has no deadline, or neither
    /// finished nor missed it by then.
    pub fn met(&self, end: Ps) -> Option<bool> {
        let deadline = self.deadline?;
        match self.finish {
            Some(finish) => Some(finish <= deadline),
            None => (deadline <= end).then_some(false),
        }
    }
}

/// The result of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SourceResult {
    /// Delivered datagrams.
    pub delivered: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their delays from the limiter's release to delivery, in ps.
    pub delay_sum: u128,
    /// Largest of their delays.
    pub delay_max: Ps,
}

/// Latencies of delivered packets, from leaving the host's limiter to the receiving host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Packets.
    pub packets: u64,
    /// Sum of their times, in ps.
    pub sum: u128,
    /// Largest, exact below 26 days.
    pub max: Ps,
}

impl Latency {
    #[inline]
    pub(crate) fn add(&mut self, took: Ps) {
        self.packets += 1;
        self.sum += u128::from(took);
        self.max = self.max.max(took);
    }
}

impl AddAssign for Latency {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}
