// SPDX-License-Identifier: GPL-2.0-or-later
//! DCTCP (RFC 8257): the window is reduced by the share of marked packets. Alpha has 20 fractional
//! bits.

use serde::{Deserialize, Serialize};

use super::traits::{CongestionLaw, Echo, LawState, Window, ONE};
use crate::core::time::Ps;

/// alpha = 1.
pub(super) const ALPHA: u32 = 1 << 20;

/// Settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dctcp {
    /// g = 2^-`shift`: 4 for the published 1/16; at most 20.
    pub shift: u32,
}

/// Alpha begins at 0, as published.
#[derive(Debug, Clone)]
pub(crate) struct DctcpState {
    shift: u32,
    pub(super) alpha: u32,
}

impl CongestionLaw for Dctcp {
    type State = DctcpState;
    const NAME: &str = "dctcp";
    const ECHO: Echo = Echo::Exactly;
    const IS_SCALABLE: bool = true;

    #[inline]
    fn ecn_capable(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<String> {
        (self.shift > 20).then(|| "DCTCP's g is below 2^-20, with which alpha stays 0".to_owned())
    }

    fn start(self, _window: &mut Window, _line: u64) -> DctcpState {
        DctcpState { shift: self.shift, alpha: 0 }
    }
}

impl LawState for DctcpState {
    /// Moves alpha towards the share of marks with weight g (section 3.3).
    fn on_window(&mut self, marked: u32, acked: u32) {
        let share = (u64::from(marked) * u64::from(ALPHA) / u64::from(acked)) as u32;
        self.alpha = self.alpha - (self.alpha >> self.shift) + (share >> self.shift);
    }

    /// Reduces the window by alpha / 2, but not below the transport's least window.
    fn on_mark(&mut self, window: &mut Window, _now: Ps) {
        let less = u64::from(window.cwnd) * u64::from(self.alpha) / u64::from(2 * ALPHA);
        let least = window.cwnd.min(window.bounds.least * ONE);
        window.cwnd = (window.cwnd - less as u32).max(least);
        window.ssthresh = window.cwnd.max(2 * ONE);
    }
}
