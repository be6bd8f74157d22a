// SPDX-License-Identifier: GPL-2.0-or-later
//! Homa's settings (Montazeri et al., SIGCOMM 2018). Its receivers grant, so that it has no law for
//! a window; the protocol is in `host::homa`.

use serde::{Deserialize, Serialize};

use super::reno::Reno;
use super::traits::{CongestionLaw, Protocol, Window};

/// Settings. The transport's initial window is what a round trip holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Homa {
    /// Levels of scheduled packets, the lowest of 8, and messages granted at a time; 1 to 7.
    pub scheduled: u8,
}

impl CongestionLaw for Homa {
    type State = Reno;
    const NAME: &str = "homa";
    const PROTOCOL: Protocol = Protocol::Grants;
    const ALLOWS_ACK_PER_PACKET: bool = false;

    fn problem(&self) -> Option<String> {
        let scheduled = self.scheduled;
        (!(1..8).contains(&scheduled))
            .then(|| format!("Homa has {scheduled} scheduled levels, not 1 to 7"))
    }

    fn scheduled(&self) -> u8 {
        self.scheduled
    }

    fn start(self, _window: &mut Window, _line: u64) -> Reno {
        Reno
    }
}
