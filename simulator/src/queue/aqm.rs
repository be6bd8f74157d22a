// SPDX-License-Identifier: GPL-2.0-or-later
//! What the active queue managers share: which packets they protect, and a probability's unit.

use serde::{Deserialize, Serialize};

use crate::packet::{Kind, Packet};

/// A probability of 1, in millionths.
pub(crate) const MILLION: u32 = 1_000_000;

/// Which packets that are not ECN-capable are queued where active queue management would drop them.
/// ECN-capable packets are marked instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// None.
    Default,
    /// Packets with the ECE bit: SYNs and SYN-ACKs of ECN-capable flows, ACKs that echo a mark.
    EceBit,
    /// SYNs, SYN-ACKs, ACKs and probes, whatever their bits: only data and datagrams are dropped
    /// early.
    #[serde(rename = "ack+syn")]
    AckSyn,
    /// All packets, as Linux's `red ... nodrop`.
    #[serde(rename = "nodrop")]
    NoDrop,
}

impl Protection {
    pub(crate) fn spares(self, packet: &Packet) -> bool {
        match self {
            Protection::Default => false,
            Protection::EceBit => packet.ece(),
            Protection::AckSyn => !matches!(packet.kind, Kind::Data | Kind::Datagram),
            Protection::NoDrop => true,
        }
    }
}
