// SPDX-License-Identifier: GPL-2.0-or-later
//! Threshold marking: a FIFO that marks every packet from a threshold on, as hardware and Linux do.

use serde::{Deserialize, Serialize};

use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::Packet;
use crate::queue::fifo::{waits_in_a_fifo, Fifo};
use crate::queue::limit::{Limit, Room};
use crate::queue::traits::{Action, AdmissionRule, Found, QueueKind};

/// FIFO that marks every ECN-capable packet which finds `threshold` or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// Limit of the queue.
    pub limit: Limit,
    /// Threshold of marks.
    pub threshold: Limit,
}

impl QueueKind for Threshold {
    waits_in_a_fifo!();
    type Rule = Room;
    const NAME: &str = "threshold";
    const DEPARTS_IN_ORDER: bool = true;
    const LIMITED_AT_ADMISSION: bool = true;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn check_on_link(&self, ps_per_byte: u32) -> Result<()> {
        Room::new(self.threshold, ps_per_byte).check_below(&Room::new(self.limit, ps_per_byte))
    }

    fn rule(&self, ps_per_byte: u32, _rng: Rng) -> Room {
        Room::new(self.threshold, ps_per_byte)
    }
}

impl AdmissionRule for Room {
    fn judge(&mut self, _now: Ps, found: &Found, packet: &Packet) -> Action {
        if packet.ect && self.is_reached(found.bytes, found.packets) {
            Action::Mark
        } else {
            Action::Pass
        }
    }
}
