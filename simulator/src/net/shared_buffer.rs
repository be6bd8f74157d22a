// SPDX-License-Identifier: GPL-2.0-or-later
//! Buffers that a switch's ports share, with dynamic thresholds (Choudhury and Hahne, "Dynamic
//! Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking,
//! 1998).

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::units::{In, Size};
use crate::net::topology::Topology;
use crate::packet::Packet;

/// Every switch has `bytes` for all its ports. A queue takes a packet while it holds less than
/// `alpha` times what is free, and the packet fits; else the packet is dropped as from a full
/// queue. A packet is held until its last bit has left. Limits of the queues themselves hold too.
///
/// `n` queues that are overloaded for long hold `alpha * bytes / (1 + n * alpha)` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedBuffer {
    /// Of a switch.
    #[serde(with = "In::<Size>")]
    pub bytes: u64,
    /// In thousandths.
    pub alpha: u32,
    /// The threshold is that of each level of a port, not of the port. ACKs are in level 0.
    pub per_level: bool,
}

impl SharedBuffer {
    pub(crate) fn check(&self, packet: u16) -> Result<()> {
        if self.bytes < u64::from(packet) || self.bytes > 1 << 40 {
            return Err(Error::new(format!(
                "shared_buffer: its {} bytes must hold a packet of {packet}, and be at most 2^40",
                self.bytes
            )));
        }
        if self.alpha == 0 || self.alpha > 1_000_000 {
            return Err(Error::new(format!(
                "shared_buffer: alpha is {} thousandths, and must be 1 to 1,000,000",
                self.alpha
            )));
        }
        Ok(())
    }
}

/// Marks the own links of hosts, which share nothing.
const HOST: u32 = u32::MAX;

/// What the ports of all switches hold.
#[derive(Debug)]
pub(crate) struct SharedBuffers {
    settings: SharedBuffer,
    /// By link: the switch whose buffer it uses.
    switches: Vec<u32>,
    /// By switch.
    used: Vec<u64>,
    /// By link and level; without levels all are in the first.
    held: Vec<[u64; 8]>,
    /// By link: level and bytes of the packet being sent.
    sending: Vec<Option<(u8, u16)>>,
}

impl SharedBuffers {
    pub fn new(settings: SharedBuffer, topology: &Topology) -> Self {
        let own = topology.hosts.iter().map(|_| HOST);
        let to_hosts = topology.hosts.iter().map(|(switch, _)| *switch);
        let trunks = topology.trunks.iter().flat_map(|(a, b, _)| [*a, *b]);
        let switches: Vec<u32> = own.chain(to_hosts).chain(trunks).collect();
        let number = switches.iter().filter(|&&switch| switch != HOST).max().map_or(0, |s| s + 1);
        SharedBuffers {
            settings,
            used: vec![0; number as usize],
            held: vec![[0; 8]; switches.len()],
            sending: vec![None; switches.len()],
            switches,
        }
    }

    fn place(&self, level: u8) -> usize {
        if self.settings.per_level {
            level.into()
        } else {
            0
        }
    }

    /// Whether a port may take a packet.
    pub fn has_room(&self, link: u32, packet: &Packet) -> bool {
        let switch = self.switches[link as usize];
        if switch == HOST {
            return true;
        }
        let free = self.settings.bytes - self.used[switch as usize];
        let held = self.held[link as usize][self.place(packet.level())];
        u64::from(packet.bytes) <= free && held * 1_000 < free * u64::from(self.settings.alpha)
    }

    /// A port has taken a packet.
    pub fn hold(&mut self, link: u32, level: u8, bytes: u16) {
        let (switch, place) = (self.switches[link as usize], self.place(level));
        if switch != HOST {
            self.used[switch as usize] += u64::from(bytes);
            self.held[link as usize][place] += u64::from(bytes);
        }
    }

    /// A packet was dropped after all, or has left.
    pub fn release(&mut self, link: u32, level: u8, bytes: u16) {
        let (switch, place) = (self.switches[link as usize], self.place(level));
        if switch != HOST {
            self.used[switch as usize] -= u64::from(bytes);
            self.held[link as usize][place] -= u64::from(bytes);
        }
    }

    /// A port starts to send a packet.
    pub fn send(&mut self, link: u32, packet: &Packet) {
        self.sending[link as usize] = Some((packet.level(), packet.bytes));
    }

    /// A port has sent what it was sending, if it was a packet.
    pub fn sent(&mut self, link: u32) {
        if let Some((level, bytes)) = self.sending[link as usize].take() {
            self.release(link, level, bytes);
        }
    }
}
