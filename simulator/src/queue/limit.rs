// SPDX-License-Identifier: GPL-2.0-or-later
//! Queue limits and thresholds: in bytes, packets or time.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Octets, Packets};

/// A limit of a queue, or a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Limit {
    /// No limit.
    None,
    /// Bytes, including those of the packet being sent that are still to go.
    Bytes(#[serde(with = "In::<Octets>")] u64),
    /// Packets, including the one being sent.
    Packets(#[serde(with = "In::<Packets>")] u32),
    /// As many bytes as the link sends in this time: it depends on the link's rate.
    Time(#[serde(with = "In::<Duration>")] Ps),
}

/// A limit or threshold on a certain link; the largest numbers mean none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub bytes: u64,
    pub packets: u64,
}

impl Room {
    pub fn new(limit: Limit, ps_per_byte: u32) -> Self {
        let none = Room { bytes: u64::MAX, packets: u64::MAX };
        match limit {
            Limit::None => none,
            Limit::Bytes(bytes) => Room { bytes, ..none },
            Limit::Packets(packets) => Room { packets: packets.into(), ..none },
            Limit::Time(time) => Room { bytes: time / u64::from(ps_per_byte), ..none },
        }
    }

    /// Refuses this threshold if a queue with that limit would never reach it.
    pub fn check_below(&self, limit: &Room) -> Result<()> {
        let units = [("bytes", self.bytes, limit.bytes), ("packets", self.packets, limit.packets)];
        // No threshold at all is meant.
        let above = |(_, own, most): &&(&str, u64, u64)| *own != u64::MAX && own > most;
        units.iter().find(above).map_or(Ok(()), |(unit, own, most)| {
            Err(Error::new(format!(
                "its threshold of {own} {unit} is above its limit of {most}: no packet would be \
                 marked"
            )))
        })
    }

    /// Whether `more` bytes fit beside these bytes and packets.
    pub fn holds(&self, bytes: u64, packets: u64, more: u64) -> bool {
        bytes.saturating_add(more) <= self.bytes && packets < self.packets
    }

    pub fn is_reached(&self, bytes: u64, packets: u64) -> bool {
        bytes >= self.bytes || packets >= self.packets
    }
}
