// SPDX-License-Identifier: GPL-2.0-or-later
//! QJump's limiters. Both are refilled lazily: no event but the release of a packet that waits.

use crate::flow::Flow;
use crate::scheme::Budgets;
use crate::time::Ps;

/// The published scripts' bucket: whether the flow may still send `bytes` in this epoch, counted from the flow's start.
pub(crate) fn flow_may_send(flow: &mut Flow, now: Ps, bytes: u64, epoch: Ps, budgets: &Budgets) -> bool {
    let current = (now - flow.start) / epoch;
    if flow.epoch != current {
        flow.epoch = current;
        flow.tokens = budgets[usize::from(flow.level)];
    }
    let may = flow.tokens >= bytes;
    if may {
        flow.tokens -= bytes;
    }
    may
}

/// One level of a host: the epoch that packets are charged to, which lies ahead when packets wait.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    begin: Option<Ps>,
    used: u64,
}

/// The paper's limiter: every host and level may send its budget in an epoch, in order.
#[derive(Debug)]
pub(crate) struct HostLimiter {
    epoch: Ps,
    budgets: Budgets,
    hosts: Vec<[Level; 8]>,
}

impl HostLimiter {
    pub fn new(epoch: Ps, budgets: Budgets, hosts: u32) -> Self {
        HostLimiter { epoch, budgets, hosts: vec![[Level::default(); 8]; hosts as usize] }
    }

    /// When a packet that comes now is let go.
    pub fn release(&mut self, now: Ps, host: u16, level: u8, bytes: u64) -> Ps {
        let budget = self.budgets[usize::from(level)];
        if budget == u64::MAX {
            return now;
        }
        let state = &mut self.hosts[usize::from(host)][usize::from(level)];
        let begin = match state.begin {
            Some(begin) if now < begin + self.epoch => begin,
            _ => {
                state.used = 0;
                now
            }
        };
        let full = state.used + bytes > budget;
        let begin = if full { begin + self.epoch } else { begin };
        state.used = if full { bytes } else { state.used + bytes };
        state.begin = Some(begin);
        begin.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_sends_its_budget_in_an_epoch() {
        let mut budgets = [u64::MAX; 8];
        budgets[0] = 3_000;
        let mut limiter = HostLimiter::new(1_000, budgets, 2);
        let mut at = |now, host, level| limiter.release(now, host, level, 1_500);
        // Two at once, the third and fourth an epoch later, the fifth another one later, all in order.
        assert_eq!([at(50, 0, 0), at(50, 0, 0)], [50, 50]);
        assert_eq!([at(60, 0, 0), at(70, 0, 0), at(80, 0, 0)], [1_050, 1_050, 2_050]);
        // Other hosts and levels are not charged.
        assert_eq!([at(80, 1, 0), at(80, 0, 1)], [80, 80]);
        // The rest of an epoch that has begun, and an epoch that begins late.
        assert_eq!([at(2_900, 0, 0), at(5_000, 0, 0)], [2_900, 5_000]);
        assert_eq!([at(5_000, 0, 0), at(5_999, 0, 0)], [5_000, 6_000]);
    }
}
