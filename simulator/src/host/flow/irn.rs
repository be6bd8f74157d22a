// SPDX-License-Identifier: GPL-2.0-or-later
//! What IRN's selective recovery (Mittal et al., SIGCOMM 2018, sections 3.1 and 3.2) does other
//! than TCP's: timeouts. Its NACKs are TCP's selective acknowledgements, with one packet above a
//! hole as a sign of loss, and its BDP-FC is the transport's largest window.

use super::{Flow, Phase};
use crate::core::time::Ps;
use crate::host::transport::Transport;

/// N: with fewer packets under way the timeout is `RTO_low` (section 4.1).
const FEW: u32 = 3;

impl Flow {
    /// The timer is set for `RTO_high`; sets it for `RTO_low` if few packets are under way.
    // Not inlined, for transports without.
    #[cold]
    #[inline(never)]
    pub(super) fn set_low_timer(&mut self, t: &Transport, now: Ps) {
        let high = self.deadline;
        if let Some(low) = t.low_rto.filter(|_| self.next - self.una < FEW) {
            self.deadline = now.max(self.held) + self.back_off_from(t, low);
        }
        self.extension = high - self.deadline;
    }

    /// The timer expires. If it was set for few packets under way, and there are more by now, it is
    /// extended to `RTO_high` (section 6), and true is returned.
    pub fn extend_timer(&mut self) -> bool {
        let extends = self.extension > 0 && self.next - self.una >= FEW;
        if extends {
            self.deadline += std::mem::take(&mut self.extension);
        }
        extends
    }

    /// A timeout: the first missing packet is sent again, and beyond it what is missing below a
    /// packet that has arrived. `next`: the next new packet.
    pub(super) fn recover_after_timeout(&mut self, t: &Transport, now: Ps, next: u32) {
        self.phase = Phase::Recovery;
        self.urgent = true;
        (self.next, self.lost) = (next, self.una + 1);
        if let Some(dupacks) = t.dupacks {
            self.look_for_loss(now, t, dupacks);
        }
    }
}
