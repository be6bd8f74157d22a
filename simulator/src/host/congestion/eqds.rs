// SPDX-License-Identifier: GPL-2.0-or-later
//! EQDS (Olteanu et al., NSDI 2022) has no law for a window: the transport's initial window leaves
//! without credit, and then receivers pull. The protocol is NDP's but for whom a receiver credits,
//! which is in `host::eqds`.

use serde::{Deserialize, Serialize};

use super::reno::Reno;
use super::traits::{CongestionLaw, Protocol, Window};

/// Settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eqds {
    /// Packets that a receiver credits beyond those that have come; a sender that is busy with
    /// other receivers collects no more.
    pub ahead: u32,
}

impl CongestionLaw for Eqds {
    type State = Reno;
    const NAME: &str = "eqds";
    const PROTOCOL: Protocol = Protocol::Pulls;
    const ALLOWS_ACK_PER_PACKET: bool = false;

    fn problem(&self) -> Option<String> {
        (self.ahead == 0).then(|| "EQDS's credit ahead must be above 0".to_owned())
    }

    fn ahead(&self) -> Option<u32> {
        Some(self.ahead)
    }

    fn start(self, _window: &mut Window, _line: u64) -> Reno {
        Reno
    }
}
