// SPDX-License-Identifier: GPL-2.0-or-later
//! QJump's limiters, by flow or by host. Both refill lazily: the only events are releases of
//! waiting packets.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Budget, Duration, In, Instant, Unit};
use crate::host::aequitas::Aequitas;
use crate::host::flow::Flow;

/// Bytes an epoch for each level; `u64::MAX` is unlimited.
pub type Budgets = [u64; 8];

/// The limiter of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Limiter {
    /// No limiter.
    None,
    /// The published scripts' token bucket: one a flow, full at its start and refilled every epoch;
    /// the excess is dropped.
    PerFlow {
        /// Time between refills.
        #[serde(with = "In::<Duration>")]
        epoch: Ps,
        /// By the flow's level.
        #[serde(with = "In::<Budget>")]
        budgets: Budgets,
    },
    /// QJump as in the paper's text and the kernel module.
    PerHost(PerHost),
    /// Admission to levels: a flow whose level misses its target runs on the lowest.
    Aequitas(Aequitas),
}

/// What happens to packets that exceed a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They wait for the next epoch.
    Delay,
    /// They are dropped; transports see a loss.
    Drop,
}

/// When epochs begin, in the words of the kernel module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Epochs {
    /// When the last epoch has passed and there is something to send: two budgets may leave back to
    /// back across an edge.
    FirstPacket,
    /// With every packet: no more than a budget leaves in any period of an epoch's length.
    Rolling,
    /// At multiples of the epoch, on all hosts at once: two budgets may leave back to back across
    /// an edge.
    Aligned,
}

/// A budget for each host and level. ACKs are not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerHost {
    /// Length of an epoch.
    #[serde(with = "In::<Duration>")]
    pub epoch: Ps,
    /// By level.
    #[serde(with = "In::<Budget>")]
    pub budgets: Budgets,
    /// What happens to the excess.
    pub mode: Mode,
    /// When budgets are renewed.
    pub epochs: Epochs,
    /// Most packets of a level that may wait; more are dropped. None: no limit. Nothing waits in
    /// [`Mode::Drop`].
    pub limit: Option<u32>,
    /// Bytes of each packet that are not charged, such as preamble and gap.
    #[serde(default)]
    pub uncounted: u32,
}

impl PerHost {
    /// As in the paper's text: all excess waits.
    pub fn new(epoch: Ps, budgets: Budgets) -> Self {
        PerHost {
            epoch,
            budgets,
            mode: Mode::Delay,
            epochs: Epochs::FirstPacket,
            limit: None,
            uncounted: 0,
        }
    }
}

impl Limiter {
    /// Whether it may drop packets.
    pub(crate) fn drops(&self) -> bool {
        match self {
            Limiter::None | Limiter::Aequitas(_) => false,
            Limiter::PerFlow { .. } => true,
            Limiter::PerHost(rule) => rule.mode == Mode::Drop || rule.limit.is_some(),
        }
    }

    /// Whether it decides on levels of flows.
    pub(crate) fn admits(&self) -> bool {
        matches!(self, Limiter::Aequitas(_))
    }

    /// `ack`: bytes of a packet without data.
    pub(crate) fn check(&self, ack: u16) -> Result<()> {
        if let Limiter::Aequitas(of) = self {
            return of.problem().map_or(Ok(()), |what| Err(Error::new(format!("limiter: {what}"))));
        }
        let (Limiter::PerFlow { epoch, budgets }
        | Limiter::PerHost(PerHost { epoch, budgets, .. })) = self
        else {
            return Ok(());
        };
        if matches!(self, Limiter::PerHost(PerHost { limit: Some(0), .. })) {
            return Err(Error::new(
                "limiter: its limit must be above 0 packets: use mode drop to let none wait",
            ));
        }
        if *epoch == 0 || *epoch > Duration::MAX {
            return Err(Error::new(format!(
                "limiter: its epoch of {epoch} ps must be above 0 and at most 1000 s"
            )));
        }
        (0..).zip(budgets).try_for_each(|(level, _)| self.check_packet(level, ack.into()))
    }

    /// Refuses packets that exceed a level's budget, which could never be sent.
    pub(crate) fn check_packet(&self, level: u8, bytes: u64) -> Result<()> {
        let (budgets, uncounted) = match self {
            Limiter::PerFlow { budgets, .. } => (budgets, 0),
            Limiter::PerHost(rule) => (&rule.budgets, u64::from(rule.uncounted)),
            _ => return Ok(()),
        };
        let (budget, cost) = (budgets[usize::from(level)], bytes.saturating_sub(uncounted));
        if budget < cost {
            return Err(Error::new(format!(
                "limiter: level {level} has {budget} bytes an epoch, less than a packet of {cost}"
            )));
        }
        Ok(())
    }
}

/// The published scripts' bucket: whether the flow may send `bytes` in this epoch, counted from the
/// flow's start.
pub(crate) fn flow_may_send(
    flow: &mut Flow,
    now: Ps,
    bytes: u64,
    epoch: Ps,
    budgets: &Budgets,
) -> bool {
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

/// The state of a host's level: the epoch that packets are charged to, which is in the future while
/// packets wait. For rolling epochs, the bytes of remembered packets.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    begin: Option<Ps>,
    used: u64,
}

/// The paper's limiter: each host and level may send its budget in an epoch, in order.
#[derive(Debug)]
pub(crate) struct HostLimiter {
    rule: PerHost,
    hosts: Vec<[Level; 8]>,
    /// Rolling epochs, by host and level: packets that count against a budget, with their departure
    /// times.
    recent: Vec<VecDeque<(Ps, u64)>>,
    /// With a limit, by host and level: departure times of waiting packets.
    waiting: Vec<VecDeque<Ps>>,
}

impl HostLimiter {
    pub fn new(rule: PerHost, hosts: u32) -> Self {
        let (hosts, queues) = (hosts as usize, |asked| if asked { 8 * hosts as usize } else { 0 });
        HostLimiter {
            rule,
            hosts: vec![[Level::default(); 8]; hosts],
            recent: vec![VecDeque::new(); queues(rule.epochs == Epochs::Rolling)],
            waiting: vec![
                VecDeque::new();
                queues(rule.mode == Mode::Delay && rule.limit.is_some())
            ],
        }
    }

    /// When a packet that comes now is released; none: it is dropped. So is a packet that exceeds a
    /// budget, or would wait beyond the end of time.
    pub fn release(&mut self, now: Ps, host: u32, level: u8, bytes: u64) -> Option<Ps> {
        let budget = self.rule.budgets[usize::from(level)];
        if budget == u64::MAX {
            return Some(now);
        }
        let bytes = bytes.saturating_sub(u64::from(self.rule.uncounted));
        if bytes > budget {
            return None;
        }
        let queue = 8 * host as usize + usize::from(level);
        let state = &mut self.hosts[host as usize][usize::from(level)];
        if self.rule.epochs == Epochs::Rolling {
            let recent = &mut self.recent[queue];
            let (release, gone, used) =
                window(recent, state.used, self.rule.epoch, budget, now, bytes);
            if !self.rule.takes(self.waiting.get_mut(queue), now, release) {
                return None;
            }
            recent.drain(..gone);
            recent.push_back((release, bytes));
            state.used = used + bytes;
            return Some(release);
        }
        let (begin, used) = match state.begin {
            Some(begin) if now < begin + self.rule.epoch => (begin, state.used),
            _ if self.rule.epochs == Epochs::Aligned => (now - now % self.rule.epoch, 0),
            _ => (now, 0),
        };
        let full = used + bytes > budget;
        let begin = if full { begin + self.rule.epoch } else { begin };
        let release = begin.max(now);
        if !self.rule.takes(self.waiting.get_mut(queue), now, release) {
            return None;
        }
        *state = Level { begin: Some(begin), used: if full { bytes } else { used + bytes } };
        Some(release)
    }
}

impl PerHost {
    /// Whether a packet may wait until `release`; `waiting` has those before it.
    fn takes(&self, waiting: Option<&mut VecDeque<Ps>>, now: Ps, release: Ps) -> bool {
        if release == now || self.mode == Mode::Drop {
            return release == now;
        }
        if release > Instant::MAX {
            return false;
        }
        let (Some(limit), Some(waiting)) = (self.limit, waiting) else {
            return true;
        };
        while waiting.front().is_some_and(|&left| left <= now) {
            waiting.pop_front();
        }
        let room = waiting.len() < limit as usize;
        if room {
            waiting.push_back(release);
        }
        room
    }
}

/// Rolling epochs: when a packet may leave after those in `recent`, which have `used` bytes, so
/// that no more than the budget leaves in [t, t + epoch) for any t. Also returns how many of those
/// no longer count then, and the bytes of the others.
fn window(
    recent: &VecDeque<(Ps, u64)>,
    mut used: u64,
    epoch: Ps,
    budget: u64,
    now: Ps,
    bytes: u64,
) -> (Ps, usize, u64) {
    // In order: not before the last of them.
    let mut release = recent.back().map_or(now, |&(last, _)| now.max(last));
    let mut gone = 0;
    for &(left, size) in recent {
        if left + epoch > release {
            if used + bytes <= budget {
                break;
            }
            release = left + epoch;
        }
        used -= size;
        gone += 1;
    }
    (release, gone, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Rng;

    /// Epochs of 1,000 ps with 3,000 bytes of level 0.
    fn limiter(mode: Mode, epochs: Epochs, limit: Option<u32>) -> HostLimiter {
        let mut budgets = [u64::MAX; 8];
        budgets[0] = 3_000;
        HostLimiter::new(PerHost { mode, epochs, limit, ..PerHost::new(1_000, budgets) }, 2)
    }

    /// What becomes of packets of 1,500 bytes of level 0 that come at these times.
    fn released<const N: usize>(mut limiter: HostLimiter, at: [Ps; N]) -> [Option<Ps>; N] {
        at.map(|now| limiter.release(now, 0, 0, 1_500))
    }

    #[test]
    fn a_host_sends_its_budget_in_an_epoch() {
        let mut limiter = limiter(Mode::Delay, Epochs::FirstPacket, None);
        let mut at = |now, host, level| limiter.release(now, host, level, 1_500).unwrap();
        // Two at once, the third and fourth an epoch later, the fifth another one later, all in
        // order.
        assert_eq!([at(50, 0, 0), at(50, 0, 0)], [50, 50]);
        assert_eq!([at(60, 0, 0), at(70, 0, 0), at(80, 0, 0)], [1_050, 1_050, 2_050]);
        // Other hosts and levels are not charged.
        assert_eq!([at(80, 1, 0), at(80, 0, 1)], [80, 80]);
        // The rest of an epoch that has begun, and an epoch that begins late.
        assert_eq!([at(2_900, 0, 0), at(5_000, 0, 0)], [2_900, 5_000]);
        assert_eq!([at(5_000, 0, 0), at(5_999, 0, 0)], [5_000, 6_000]);
    }

    #[test]
    fn kinds_of_epochs_differ_at_their_edges() {
        let times = [50, 950, 950, 999, 1_000, 1_001];
        let all = |epochs| released(limiter(Mode::Delay, epochs, None), times).map(Option::unwrap);
        // Begins at 50: the second budget leaves right after the first one's last packet.
        assert_eq!(all(Epochs::FirstPacket), [50, 950, 1_050, 1_050, 2_050, 2_050]);
        assert_eq!(all(Epochs::Aligned), [50, 950, 1_000, 1_000, 2_000, 2_000]);
        // Each an epoch after the one before the last.
        assert_eq!(all(Epochs::Rolling), [50, 950, 1_050, 1_950, 2_050, 2_950]);
        let taken = |epochs| {
            released(limiter(Mode::Drop, epochs, None), times).map(|release| release.is_some())
        };
        assert_eq!(taken(Epochs::FirstPacket), [true, true, false, false, false, false]);
        assert_eq!(taken(Epochs::Aligned), [true, true, false, false, true, true]);
        assert_eq!(taken(Epochs::Rolling), [true, true, false, false, false, false]);
        assert_eq!(
            limiter(Mode::Drop, Epochs::Rolling, None).release(0, 0, 0, 3_001),
            None,
            "larger than a budget"
        );
        let late = |epochs| {
            released(limiter(Mode::Drop, epochs, None), [50, 950, 1_050, 1_051, 1_950])
                .map(|r| r.is_some())
        };
        assert_eq!(late(Epochs::FirstPacket), [true, true, true, true, false]);
        assert_eq!(late(Epochs::Rolling), [true, true, true, false, true]);
    }

    #[test]
    fn a_levels_queue_has_a_limit() {
        for epochs in [Epochs::FirstPacket, Epochs::Aligned, Epochs::Rolling] {
            // Two leave at once, three wait, the sixth is lost. At 1,000 the third and fourth have
            // left, one waits.
            let got = released(
                limiter(Mode::Delay, epochs, Some(3)),
                [0, 0, 0, 1, 2, 3, 1_000, 1_000, 1_000, 1_000],
            );
            let expected = [0, 0, 1_000, 1_000, 2_000].map(Some);
            assert_eq!((&got[..5], got[5]), (&expected[..], None), "{epochs:?}");
            assert_eq!(&got[6..], [Some(2_000), Some(3_000), None, None], "{epochs:?}");
        }
    }

    /// Of packets of 1,528 bytes 1,500 are charged.
    #[test]
    fn a_budget_may_be_of_less_than_the_wire_carries() {
        let rule = PerHost { uncounted: 28, ..PerHost::new(1_000, [3_000; 8]) };
        let mut limiter = HostLimiter::new(rule, 1);
        assert_eq!([(); 3].map(|()| limiter.release(0, 0, 0, 1_528)), [0, 0, 1_000].map(Some));
        assert!(Limiter::PerHost(rule).check_packet(0, 3_028).is_ok());
        assert!(Limiter::PerHost(rule).check_packet(0, 3_029).is_err());
    }

    /// 4,611 epochs of 1,000 s are the time that there is: a packet beyond them never leaves.
    #[test]
    fn nothing_waits_beyond_the_end_of_time() {
        for epochs in [Epochs::FirstPacket, Epochs::Aligned, Epochs::Rolling] {
            let rule = PerHost { epochs, ..PerHost::new(Duration::MAX, [1_500; 8]) };
            let mut limiter = HostLimiter::new(rule, 1);
            let left =
                (0..20_000).filter_map(|_| limiter.release(0, 0, 0, 1_500)).collect::<Vec<Ps>>();
            assert_eq!(
                (left.len(), left.last()),
                (4_612, Some(&(4_611 * Duration::MAX))),
                "{epochs:?}"
            );
        }
    }

    /// Packets of 64 to 1,500 bytes, in bursts and alone: what leaves, beside a sum over all of
    /// them.
    #[test]
    fn rolling_epochs_never_let_more_than_a_budget_leave() {
        let mut limiter = limiter(Mode::Delay, Epochs::Rolling, None);
        let mut rng = Rng::new(5, 0);
        let (mut now, mut left) = (0, Vec::new());
        for _ in 0..5_000 {
            now += if rng.below(3) == 0 { rng.below(1_500) } else { 0 };
            let bytes = 64 + rng.below(1_437);
            left.push((limiter.release(now, 0, 0, bytes).unwrap(), bytes, now));
        }
        let within = |from: Ps| {
            let begin = left.partition_point(|packet| packet.0 < from);
            let end = left.partition_point(|packet| packet.0 < from + 1_000);
            left[begin..end].iter().map(|packet| packet.1).sum::<u64>()
        };
        assert!(left.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert!(left.iter().all(|packet| within(packet.0) <= 3_000));
        // None waits longer than it must: with one that waited, what left less than an epoch before
        // it exceeds the budget.
        for (i, &(release, bytes, came)) in left.iter().enumerate().skip(1) {
            if release > came.max(left[i - 1].0) {
                let before =
                    left[..i].iter().rev().take_while(|packet| packet.0 + 1_000 >= release);
                assert!(before.map(|packet| packet.1).sum::<u64>() + bytes > 3_000, "packet {i}");
            }
        }
    }
}
