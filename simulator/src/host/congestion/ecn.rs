// SPDX-License-Identifier: GPL-2.0-or-later
//! Reno with explicit congestion notification (RFC 3168).

use super::traits::{CongestionLaw, Echo, LawState, Window};
use crate::core::time::Ps;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ecn;

impl CongestionLaw for Ecn {
    type State = Ecn;
    const NAME: &str = "ecn";
    const ECHO: Echo = Echo::UntilHeard;
    const SENDS_CWR: bool = true;
    const ALLOWS_ACK_PER_PACKET: bool = false;

    #[inline]
    fn ecn_capable(&self) -> bool {
        true
    }

    fn start(self, _window: &mut Window, _line: u64) -> Ecn {
        self
    }
}

impl LawState for Ecn {
    /// Halves the window (section 6.1.2).
    fn on_mark(&mut self, window: &mut Window, _now: Ps) {
        window.ssthresh = window.half();
        window.cwnd = window.cwnd.min(window.ssthresh);
    }
}
