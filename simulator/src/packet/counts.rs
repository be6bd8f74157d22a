// SPDX-License-Identifier: GPL-2.0-or-later
//! Packet counts by kind.

use std::ops::AddAssign;

use serde::Serialize;

use crate::packet::KINDS;

/// Packet counts by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ByKind {
    /// Data of flows.
    pub data: u64,
    /// ACKs.
    pub acks: u64,
    /// pFabric's probes.
    pub probes: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// SYNs.
    pub syns: u64,
    /// SYN-ACKs.
    pub syn_acks: u64,
}

impl ByKind {
    pub(crate) fn of(counts: &[u64; KINDS]) -> Self {
        let [data, acks, probes, datagrams, syns, syn_acks] = *counts;
        ByKind { data, acks, probes, datagrams, syns, syn_acks }
    }

    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        self.data + self.acks + self.probes + self.datagrams + self.syns + self.syn_acks
    }
}

impl AddAssign for ByKind {
    fn add_assign(&mut self, other: Self) {
        self.data += other.data;
        self.acks += other.acks;
        self.probes += other.probes;
        self.datagrams += other.datagrams;
        self.syns += other.syns;
        self.syn_acks += other.syn_acks;
    }
}
