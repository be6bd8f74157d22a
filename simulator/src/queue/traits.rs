// SPDX-License-Identifier: GPL-2.0-or-later
//! What a kind of queue is: its settings with constants for its properties, the discipline by which
//! packets wait, and the rule by which they are admitted. A kind is one file; `kinds` lists them.

use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::{Packet, Pool};
use crate::queue::limit::Limit;
use crate::queue::next::Next;

/// Bands of a queue with levels: eight levels, and ACKs before them.
pub(crate) const BANDS: usize = 9;

/// The settings of a kind of queue.
pub(crate) trait QueueKind {
    /// How packets wait: a [`QueueDiscipline`], in a box if it is large or seldom used.
    type Discipline;
    /// How arriving packets are judged: an [`AdmissionRule`], perhaps in a box.
    type Rule;

    /// The name in scheme files.
    const NAME: &'static str;
    /// Packets leave in the order of arrival and no admitted packet is dropped, so that a link
    /// knows at arrival when each will have been sent.
    const DEPARTS_IN_ORDER: bool = false;
    /// A link must ask it for every packet: it may wait though the link is free, drop admitted
    /// packets, count what is sent, or mark by level.
    const NEEDS_PORT: bool = false;
    /// It serves by level, so that single levels can be stopped.
    const HAS_LEVELS: bool = false;
    /// Its limit is enforced at admission, not by the discipline.
    const LIMITED_AT_ADMISSION: bool = false;
    /// The limit at admission counts the packet being sent.
    const COUNTS_SENDING: bool = true;
    /// Its rule also sees packets that find the queue full, as Linux's early detection does.
    const SEES_FULL: bool = false;
    /// Why a link with this queue cannot be paused, if it cannot.
    const PAUSE_CONFLICT: Option<&'static str> = None;

    /// The limit, of the queue or of each level, which must hold at least a packet.
    fn limit(&self) -> Limit;

    /// Refuses invalid settings.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses settings that are invalid on a link with this time per byte.
    fn check_on_link(&self, _ps_per_byte: u32) -> Result<()> {
        Ok(())
    }

    /// The empty queue of a link with this time per byte.
    fn discipline(&self, ps_per_byte: u32) -> Self::Discipline;

    /// The admission rule of a link with this time per byte.
    fn rule(&self, ps_per_byte: u32, rng: Rng) -> Self::Rule;
}

/// Waiting packets, without the one being sent.
pub(crate) trait QueueDiscipline {
    /// Queues a packet, or returns false and leaves it. Packets evicted for it go to `evicted` in
    /// eviction order; the caller frees them from the last.
    fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool;

    /// The next packet to send, or when one may be sent; packets dropped before it go to `dropped`.
    /// Disciplines with levels skip the levels in `stopped`, one bit each.
    fn dequeue(&mut self, now: Ps, stopped: u8, pool: &mut Pool, dropped: &mut Vec<u32>) -> Next;

    /// Prefetches the next packet, if the discipline can tell quickly which it is.
    #[inline]
    fn prefetch(&self, _pool: &Pool) {}

    /// Moves all waiting packets to `lost` and resets the queue, as Linux does when a link loses
    /// its carrier. This suits disciplines without other state.
    fn flush(&mut self, now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
        while let Next::Send { handle, .. } = self.dequeue(now, 0, pool, lost) {
            lost.push(handle);
        }
    }

    /// Waiting bytes; 0 only if no packet waits.
    fn bytes(&self) -> u64;

    /// Waiting packets.
    fn len(&self) -> usize;

    /// Waiting bytes of a level, if admission judges by these.
    #[inline]
    fn level_bytes(&self, _level: u8) -> Option<u64> {
        None
    }

    /// Waiting bytes of ACKs and of each level, most urgent first; none without levels.
    fn band_bytes(&self, _pool: &Pool) -> Option<[u64; BANDS]> {
        None
    }
}

/// What an arriving packet finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Including bytes of the packet being sent that are still to go.
    pub bytes: u64,
    /// Including the one being sent.
    pub packets: u64,
    /// For how long the link has been idle, if it is.
    pub idle: Option<Ps>,
}

/// What a rule decides about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    Mark,
    Drop,
}

/// How a queue judges arriving packets.
pub(crate) trait AdmissionRule {
    /// Decides on an arriving packet.
    fn judge(&mut self, now: Ps, found: &Found, packet: &Packet) -> Action;

    /// Resets after the link failed and all its packets were lost.
    fn reset(&mut self, _now: Ps) {}
}

/// Admits every packet that fits.
#[derive(Debug)]
pub(crate) struct AdmitAll;

impl AdmissionRule for AdmitAll {
    #[inline]
    fn judge(&mut self, _now: Ps, _found: &Found, _packet: &Packet) -> Action {
        Action::Pass
    }
}

/// In [`QueueKind`]: no rule beside the limit.
macro_rules! admits_all {
    () => {
        type Rule = AdmitAll;

        fn rule(&self, _ps_per_byte: u32, _rng: Rng) -> AdmitAll {
            AdmitAll
        }
    };
}

/// In [`QueueDiscipline`]: what waits is counted by this field.
macro_rules! counts_of {
    ($field:ident) => {
        #[inline]
        fn bytes(&self) -> u64 {
            self.$field.bytes()
        }

        #[inline]
        fn len(&self) -> usize {
            self.$field.len()
        }
    };
}

pub(crate) use {admits_all, counts_of};
