// SPDX-License-Identifier: GPL-2.0-or-later
//! ns-2's marking: a FIFO that marks above a threshold, as ns-2's RED does without averaging. DCTCP
//! was published with it.

use serde::{Deserialize, Serialize};

use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::{Kind, Packet};
use crate::queue::fifo::{waits_in_a_fifo, Fifo};
use crate::queue::limit::{Limit, Room};
use crate::queue::traits::{Action, AdmissionRule, Found, QueueKind};

/// FIFO of `limit` bytes that marks ECN-capable data which finds more than `threshold` bytes,
/// except the first packet since the queue was shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marking {
    /// Bytes.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
    /// Bytes.
    #[serde(with = "In::<Size>")]
    pub threshold: u64,
}

impl QueueKind for Marking {
    waits_in_a_fifo!();
    type Rule = Marker;
    const NAME: &str = "marking";
    const DEPARTS_IN_ORDER: bool = true;
    const LIMITED_AT_ADMISSION: bool = true;

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn check(&self) -> Result<()> {
        let [limit, threshold] = [self.limit, self.threshold].map(Limit::Bytes);
        Room::new(threshold, 1).check_below(&Room::new(limit, 1))
    }

    fn rule(&self, _ps_per_byte: u32, _rng: Rng) -> Marker {
        Marker { threshold: self.threshold, above: false }
    }
}

/// It only remembers the last packet. After a failure of the link the next packet finds nothing, so
/// that nothing has to be reset.
#[derive(Debug)]
pub(crate) struct Marker {
    threshold: u64,
    /// The last packet found the queue above the threshold.
    above: bool,
}

impl AdmissionRule for Marker {
    fn judge(&mut self, _now: Ps, found: &Found, packet: &Packet) -> Action {
        let again = self.above && packet.ect && packet.kind == Kind::Data;
        self.above = found.bytes > self.threshold;
        if self.above && again {
            Action::Mark
        } else {
            Action::Pass
        }
    }
}
