// SPDX-License-Identifier: GPL-2.0-or-later
//! The list of all kinds of queues. From it come the setting of a link, its discipline and its
//! admission rule: a new queue is a file and a line here.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::{Packet, Pool};
pub use crate::queue::codel::CoDel;
pub use crate::queue::dualpi2::DualPi2;
pub use crate::queue::level_red::LevelRed;
pub use crate::queue::limit::Limit;
pub use crate::queue::marking::Marking;
use crate::queue::next::Next;
pub use crate::queue::pfabric::PFabric;
pub use crate::queue::pie::Pie;
pub use crate::queue::priority::Priority;
pub use crate::queue::red::Red;
pub use crate::queue::round_robin::RoundRobin;
pub use crate::queue::threshold::Threshold;
pub use crate::queue::time_aware::TimeAware;
use crate::queue::traits::{Action, AdmissionRule, Found, QueueDiscipline, QueueKind, BANDS};
pub use crate::queue::trim::Trim;
pub use crate::queue::wfq::Wfq;

/// A `match` selects the kind, not a table of functions, so that each is compiled into its link.
macro_rules! queues {
    ($($(#[$doc:meta])* $kind:ident($settings:ty),)*) => {
        /// The queue setting of a link.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub enum Queue {
            $($(#[$doc])* $kind($settings),)*
        }

        impl Queue {
            /// The names of all kinds in scheme files, each with its variant.
            pub const NAMES: &[(&str, &str)] =
                &[$((<$settings as QueueKind>::NAME, stringify!($kind)),)*];

            fn limit(&self) -> Limit {
                match self { $(Queue::$kind(kind) => kind.limit(),)* }
            }

            fn check_settings(&self) -> Result<()> {
                match self { $(Queue::$kind(kind) => kind.check(),)* }
            }

            /// Refuses settings that are invalid on a link with this time per byte.
            pub(crate) fn check_on_link(&self, ps_per_byte: u32) -> Result<()> {
                match self { $(Queue::$kind(kind) => kind.check_on_link(ps_per_byte),)* }
            }

            pub(crate) fn departs_in_order(&self) -> bool {
                match self { $(Queue::$kind(_) => <$settings as QueueKind>::DEPARTS_IN_ORDER,)* }
            }

            pub(crate) fn needs_port(&self) -> bool {
                match self { $(Queue::$kind(_) => <$settings as QueueKind>::NEEDS_PORT,)* }
            }

            pub(crate) fn has_levels(&self) -> bool {
                match self { $(Queue::$kind(_) => <$settings as QueueKind>::HAS_LEVELS,)* }
            }

            pub(crate) fn pause_conflict(&self) -> Option<&'static str> {
                match self { $(Queue::$kind(_) => <$settings as QueueKind>::PAUSE_CONFLICT,)* }
            }

            pub(crate) fn counts_sending(&self) -> bool {
                match self { $(Queue::$kind(_) => <$settings as QueueKind>::COUNTS_SENDING,)* }
            }

            pub(crate) fn sees_full(&self) -> bool {
                match self { $(Queue::$kind(_) => <$settings as QueueKind>::SEES_FULL,)* }
            }

            fn is_limited_at_admission(&self) -> bool {
                match self {
                    $(Queue::$kind(_) => <$settings as QueueKind>::LIMITED_AT_ADMISSION,)*
                }
            }
        }

        /// The waiting packets of a link, without the one being sent.
        #[derive(Debug)]
        pub(crate) enum Discipline {
            $($kind(<$settings as QueueKind>::Discipline),)*
        }

        impl Discipline {
            pub fn new(queue: &Queue, ps_per_byte: u32) -> Self {
                match queue {
                    $(Queue::$kind(kind) => Discipline::$kind(kind.discipline(ps_per_byte)),)*
                }
            }

            // Only for packets that wait: inlined, it would lengthen the path of all others.
            #[inline(never)]
            pub fn enqueue(
                &mut self, now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>,
            ) -> bool {
                match self {
                    $(Discipline::$kind(queue) => queue.enqueue(now, handle, pool, evicted),)*
                }
            }

            // One more call is 1 % of all instructions in a network with priorities.
            #[allow(clippy::inline_always)]
            #[inline(always)]
            pub fn dequeue(
                &mut self, now: Ps, stopped: u8, pool: &mut Pool, dropped: &mut Vec<u32>,
            ) -> Next {
                match self {
                    $(Discipline::$kind(queue) => queue.dequeue(now, stopped, pool, dropped),)*
                }
            }

            #[inline]
            pub fn prefetch(&self, pool: &Pool) {
                match self { $(Discipline::$kind(queue) => queue.prefetch(pool),)* }
            }

            pub fn flush(&mut self, now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
                match self { $(Discipline::$kind(queue) => queue.flush(now, pool, lost),)* }
            }

            #[inline]
            pub fn bytes(&self) -> u64 {
                match self { $(Discipline::$kind(queue) => queue.bytes(),)* }
            }

            pub fn len(&self) -> usize {
                match self { $(Discipline::$kind(queue) => queue.len(),)* }
            }

            pub fn level_bytes(&self, level: u8) -> Option<u64> {
                match self { $(Discipline::$kind(queue) => queue.level_bytes(level),)* }
            }

            pub fn band_bytes(&self, pool: &Pool) -> Option<[u64; BANDS]> {
                match self { $(Discipline::$kind(queue) => queue.band_bytes(pool),)* }
            }
        }

        /// The admission rule of a link.
        #[derive(Debug)]
        pub(crate) enum Rule {
            $($kind(<$settings as QueueKind>::Rule),)*
        }

        impl Rule {
            pub fn new(queue: &Queue, ps_per_byte: u32, rng: Rng) -> Self {
                match queue { $(Queue::$kind(kind) => Rule::$kind(kind.rule(ps_per_byte, rng)),)* }
            }

            pub fn judge(&mut self, now: Ps, found: &Found, packet: &Packet) -> Action {
                match self { $(Rule::$kind(rule) => rule.judge(now, found, packet),)* }
            }

            pub fn reset(&mut self, now: Ps) {
                match self { $(Rule::$kind(rule) => rule.reset(now),)* }
            }
        }
    };
}

queues! {
    /// FIFO; packets that do not fit are dropped.
    DropTail(Limit),
    /// FIFO that marks above a threshold, as ns-2's RED without averaging.
    Marking(Marking),
    /// FIFO that marks from a threshold on, as hardware and Linux do.
    Threshold(Threshold),
    /// Random early detection in front of a FIFO.
    Red(Red),
    /// Controlled delay on a FIFO (RFC 8289).
    CoDel(CoDel),
    /// Strict priority in eight levels.
    Priority(Priority),
    /// pFabric's: least remaining first.
    PFabric(PFabric),
    /// Deficit round robin over flows.
    RoundRobin(RoundRobin),
    /// Eight levels that share the link by weight.
    Wfq(Wfq),
    /// Eight levels, each of which marks by its own queue.
    LevelRed(LevelRed),
    /// Eight levels with gates that open by the clock (802.1Qbv).
    TimeAware(TimeAware),
    /// PIE in front of a FIFO (RFC 8033).
    Pie(Pie),
    /// Two coupled queues (RFC 9332).
    DualPi2(DualPi2),
    /// FIFO that trims what does not fit (NDP).
    Trim(Trim),
}

impl Queue {
    /// Refuses invalid settings. `packet`: bytes of the largest packet.
    pub(crate) fn check(&self, place: &str, packet: u16) -> Result<()> {
        self.check_settings().map_err(|error| Error::new(format!("{place}: {error}")))?;
        let packet = u64::from(packet);
        let bytes = match self.limit() {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(0) => 0,
            // The bytes of a time depend on the link.
            Limit::None | Limit::Packets(_) | Limit::Time(_) => u64::MAX,
        };
        if bytes < packet {
            return Err(Error::new(format!(
                "{place}: its limit of {bytes} bytes is less than a packet of {packet}"
            )));
        }
        Ok(())
    }

    /// The limit that admission enforces.
    pub(crate) fn admission_limit(&self) -> Limit {
        if self.is_limited_at_admission() {
            self.limit()
        } else {
            Limit::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, US};
    use crate::packet::{Kind, Packet, SCALABLE};
    use crate::queue::aqm::Protection;
    use crate::queue::pi_controller::PiController;

    /// The packets sent, with their marks, and dropped, when packets of all levels arrive every us,
    /// faster than they leave.
    fn fates(
        queue: &mut Discipline,
        from: Ps,
        count: u64,
        pool: &mut Pool,
    ) -> (Vec<(u32, bool)>, Vec<u32>) {
        let (mut sent, mut dropped) = (Vec::new(), Vec::new());
        for n in 0..count {
            let echo = if n % 2 == 0 { SCALABLE } else { 0 };
            let packet = Packet {
                seq: n as u32,
                echo,
                ect: true,
                kind: Kind::Data,
                ..Packet::datagram(0, 1, (n % 3) as u8, 1_500)
            };
            let handle = pool.add(packet);
            queue.enqueue(from + n * US, handle, pool, &mut Vec::new());
            if n % 3 == 0 {
                if let Next::Send { handle, marked } =
                    queue.dequeue(from + n * US, 0, pool, &mut dropped)
                {
                    sent.push((pool.get(handle).seq, marked));
                }
            }
        }
        (sent, dropped.iter().map(|&handle| pool.get(handle).seq).collect())
    }

    #[test]
    fn a_queue_that_has_lost_all_is_as_new() {
        let control =
            PiController { target: 10 * US, update: 10 * US, alpha: 4_000_000, beta: 40_000_000 };
        let red = LevelRed {
            limit: 1 << 30,
            min: 0,
            max: 1,
            max_p: 1,
            weights: Some([1, 2, 3, 1, 1, 1, 1, 1]),
        };
        let queues = [
            Queue::DropTail(Limit::None),
            Queue::CoDel(CoDel {
                limit: Limit::None,
                target: 10 * US,
                interval: 100 * US,
                protection: Protection::Default,
            }),
            Queue::Priority(Priority { limit: 1 << 30 }),
            Queue::PFabric(PFabric { limit: 1 << 30 }),
            Queue::RoundRobin(RoundRobin { limit: 1 << 30, quantum: 700 }),
            Queue::Wfq(Wfq { limit: 1 << 30, weights: [1, 2, 3, 1, 1, 1, 1, 1] }),
            Queue::LevelRed(red),
            Queue::LevelRed(LevelRed { weights: None, ..red }),
            Queue::TimeAware(TimeAware::new(1 << 30, 0, &[(5 * US, 1), (20 * US, 0xff)]).unwrap()),
            Queue::Trim(Trim { limit: 1 << 30, ..Trim::default() }),
            Queue::DualPi2(DualPi2 { control, least: US, range: US, ..DualPi2::rfc9332(1 << 30) }),
        ];
        for queue in queues {
            let (mut pool, mut lost) = (Pool::default(), Vec::new());
            let mut used = Discipline::new(&queue, 800);
            let (sent, dropped) = fates(&mut used, 0, 1_000, &mut pool);
            assert!(sent.len() > 100, "{queue:?}");
            let waiting = used.len();
            used.flush(MS, &mut pool, &mut lost);
            assert_eq!((lost.len(), used.len(), used.bytes()), (waiting, 0, 0), "{queue:?}");
            assert_eq!(waiting, 1_000 - sent.len() - dropped.len(), "{queue:?}");
            let new = fates(&mut Discipline::new(&queue, 800), MS + 100 * US, 1_000, &mut pool);
            assert!(fates(&mut used, MS + 100 * US, 1_000, &mut pool) == new, "{queue:?}");
        }
    }

    /// A large network has tens of thousands of queues, each used twice a hop.
    #[test]
    fn a_queue_has_two_cache_lines() {
        assert!(size_of::<Discipline>() <= 128);
    }
}
