// SPDX-License-Identifier: GPL-2.0-or-later
//! Time-aware gates (IEEE 802.1Qbv, now 802.1Q, section 8.6.8.4): the most urgent level whose gate
//! is open is served.
//!
//! A packet starts only if it ends before its gate closes. This is a guard band of the packet's own
//! length.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Size, Unit};
use crate::packet::Pool;
use crate::queue::levels::{Levels, LEVELS};
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::traits::{admits_all, counts_of, AdmitAll, QueueDiscipline, QueueKind, BANDS};

/// The most entries of a list.
const ENTRIES: usize = 16;

/// Settings: eight levels with gates; ACKs are in level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "GateList", into = "GateList")]
pub struct TimeAware {
    /// Limit of each level in bytes, without the packet being sent; a packet that does not fit, or
    /// is longer than its gate ever stays open, is dropped.
    limit: u64,
    /// When a cycle begins; further cycles come before and after it.
    base: Ps,
    /// Duration of each entry; 0 behind the last.
    lasts: [Ps; ENTRIES],
    /// Levels with open gates in each entry, one bit each.
    gates: [u8; ENTRIES],
    cycle: Ps,
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
#[serde(rename = "TimeAware", deny_unknown_fields)]
struct GateList {
    #[serde(with = "In::<Size>")]
    limit: u64,
    entries: Vec<Entry>,
    #[serde(with = "In::<Duration>")]
    base: Ps,
}

/// Duration, and the levels with open gates.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "a time and levels")]
struct Entry(#[serde(with = "In::<Duration>")] Ps, Vec<Level>);

/// 0 to 7.
#[derive(Serialize, Deserialize)]
#[serde(try_from = "u8")]
struct Level(u8);

impl TryFrom<u8> for Level {
    type Error = String;

    fn try_from(level: u8) -> std::result::Result<Self, String> {
        if usize::from(level) < LEVELS {
            Ok(Level(level))
        } else {
            Err(format!("{level} is not a level from 0 to {}", LEVELS - 1))
        }
    }
}

impl TryFrom<GateList> for TimeAware {
    type Error = Error;

    fn try_from(told: GateList) -> Result<Self> {
        let gates = |levels: &[Level]| levels.iter().fold(0, |gates, level| gates | 1 << level.0);
        let entries: Vec<(Ps, u8)> =
            told.entries.iter().map(|Entry(lasts, levels)| (*lasts, gates(levels))).collect();
        TimeAware::new(told.limit, told.base, &entries)
    }
}

impl From<TimeAware> for GateList {
    fn from(of: TimeAware) -> Self {
        let levels = |gates: u8| {
            (0..LEVELS as u8).filter(|level| gates >> level & 1 == 1).map(Level).collect()
        };
        let entries = of.entries().map(|(lasts, gates)| Entry(lasts, levels(gates))).collect();
        GateList { limit: of.limit, entries, base: of.base }
    }
}

impl TimeAware {
    /// From a gate list, which repeats after its last entry.
    ///
    /// # Errors
    /// A list of 0 or more than 16 entries; an entry of no duration; a cycle of more than 1,000 s;
    /// a gate that never opens.
    pub fn new(limit: u64, base: Ps, entries: &[(Ps, u8)]) -> Result<Self> {
        if entries.is_empty() || entries.len() > ENTRIES {
            return Err(Error::new(format!(
                "a gate list of {} entries must have 1 to {ENTRIES}",
                entries.len()
            )));
        }
        if let Some(place) = entries.iter().position(|entry| entry.0 == 0) {
            return Err(Error::new(format!(
                "entry {place} of the gate list must last longer than 0 ps"
            )));
        }
        let cycle = entries
            .iter()
            .try_fold(0, |sum: Ps, entry| sum.checked_add(entry.0))
            .filter(|&cycle| cycle <= Duration::MAX);
        let Some(cycle) = cycle else {
            return Err(Error::new("the gate list lasts longer than 1000 s"));
        };
        let ever = entries.iter().fold(0, |all, entry| all | entry.1);
        if ever != u8::MAX {
            return Err(Error::new(format!(
                "the gate of level {} never opens",
                (!ever).trailing_zeros()
            )));
        }
        let (mut lasts, mut gates) = ([0; ENTRIES], [0; ENTRIES]);
        for (place, entry) in entries.iter().enumerate() {
            (lasts[place], gates[place]) = *entry;
        }
        Ok(TimeAware { limit, base, lasts, gates, cycle })
    }

    fn entries(&self) -> impl Iterator<Item = (Ps, u8)> + '_ {
        self.lasts.iter().copied().zip(self.gates).filter(|entry| entry.0 > 0)
    }

    /// The earliest time from `now` on at which a packet of this level and duration may start;
    /// none: never.
    fn begin(&self, now: Ps, level: usize, takes: Ps) -> Option<Ps> {
        let into = (now % self.cycle + self.cycle - self.base % self.cycle) % self.cycle;
        // Search stretches in which the gate is open without a break, from the beginning of this
        // cycle on. None is longer than a cycle, unless the gate is always open.
        let (mut from, mut since) = (0, None);
        for _ in 0..3 {
            for (lasts, gates) in self.entries() {
                let end = from + lasts;
                if gates >> level & 1 == 0 {
                    since = None;
                } else if end > into {
                    let begin = *since.get_or_insert(from.max(into));
                    if end - begin >= takes {
                        return Some(now + (begin - into));
                    }
                }
                from = end;
            }
        }
        let always = self.entries().all(|(_, gates)| gates >> level & 1 == 1);
        always.then_some(now)
    }
}

impl QueueKind for TimeAware {
    admits_all!();
    type Discipline = Box<TimeAwareQueue>;
    const NAME: &str = "time-aware";
    const NEEDS_PORT: bool = true;
    const HAS_LEVELS: bool = true;

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn discipline(&self, ps_per_byte: u32) -> Box<TimeAwareQueue> {
        Box::new(TimeAwareQueue::new(self, ps_per_byte))
    }
}

#[derive(Debug)]
pub(crate) struct TimeAwareQueue {
    gates: TimeAware,
    levels: Levels,
    ps_per_byte: u64,
}

impl TimeAwareQueue {
    pub fn new(gates: &TimeAware, ps_per_byte: u32) -> Self {
        TimeAwareQueue {
            gates: *gates,
            levels: Levels::new(gates.limit),
            ps_per_byte: ps_per_byte.into(),
        }
    }

    fn begin(&self, now: Ps, handle: u32, pool: &Pool) -> Option<Ps> {
        let packet = pool.get(handle);
        self.gates.begin(now, packet.level().into(), u64::from(packet.bytes) * self.ps_per_byte)
    }

    /// Queues a packet; false if it is dropped instead.
    pub fn push(&mut self, now: Ps, handle: u32, pool: &Pool) -> bool {
        self.begin(now, handle, pool).is_some() && self.levels.push(handle, pool).is_some()
    }

    /// The next packet to send of a level that is not `stopped`, or when one may be sent.
    pub fn next(&mut self, now: Ps, stopped: u8, pool: &Pool) -> Next {
        let mut soonest = None;
        for level in self.levels.waiting(stopped) {
            match self.levels.front(level).and_then(|handle| self.begin(now, handle, pool)) {
                Some(begin) if begin == now => return self.levels.pop(level, pool).into(),
                Some(begin) => soonest = Some(soonest.map_or(begin, |other: Ps| other.min(begin))),
                None => {}
            }
        }
        soonest.map_or(Next::Idle, Next::Wait)
    }
}

impl QueueDiscipline for TimeAwareQueue {
    counts_of!(levels);

    #[inline]
    fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, _evicted: &mut Vec<u32>) -> bool {
        self.push(now, handle, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Ps, stopped: u8, pool: &mut Pool, _dropped: &mut Vec<u32>) -> Next {
        self.next(now, stopped, pool)
    }

    /// The clock of the gates goes on.
    fn flush(&mut self, _now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
        while let Some(level) = self.levels.waiting(0).next() {
            lost.extend(self.levels.pop(level, pool));
        }
    }

    fn band_bytes(&self, _pool: &Pool) -> Option<[u64; BANDS]> {
        Some(self.levels.band_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::S;

    /// Level 0 for 10 ps, all others for 30, none for 5, level 7 with the first entry again.
    fn gates(base: Ps) -> TimeAware {
        TimeAware::new(0, base, &[(10, 0b1000_0001), (30, 0b1111_1110), (5, 0)]).unwrap()
    }

    /// Compared with a search picosecond by picosecond.
    #[test]
    fn packets_begin_as_early_as_they_may() {
        for base in [0, 7, 45, 100_003] {
            let gates = gates(base);
            let is_open = |at: Ps, level: usize| {
                let into = (at + 45 * 100_003 - base) % 45;
                (if into < 10 {
                    0b1000_0001
                } else if into < 40 {
                    0b1111_1110u8
                } else {
                    0
                }) >> level
                    & 1
                    == 1
            };
            for level in [0, 1, 7] {
                for takes in [1, 3, 10, 11, 29, 30, 31, 40, 41] {
                    for now in 0..100 {
                        let fits =
                            |begin: &Ps| (*begin..begin + takes).all(|at| is_open(at, level));
                        let expected = (now..now + 90).find(fits);
                        assert_eq!(
                            gates.begin(now, level, takes),
                            expected,
                            "{base} {level} {takes} {now}"
                        );
                    }
                }
            }
        }
        let always = TimeAware::new(0, 3, &[(2, 0xff), (3, 0xff)]).unwrap();
        assert_eq!(always.begin(1, 4, 1_000), Some(1));
    }

    #[test]
    fn lists_that_cannot_be_are_refused() {
        let said = |entries: &[(Ps, u8)]| TimeAware::new(0, 0, entries).unwrap_err().to_string();
        assert_eq!(said(&[]), "a gate list of 0 entries must have 1 to 16");
        assert_eq!(said(&[(1, 0xff); 17]), "a gate list of 17 entries must have 1 to 16");
        assert_eq!(
            said(&[(1, 0xff), (0, 1)]),
            "entry 1 of the gate list must last longer than 0 ps"
        );
        assert_eq!(said(&[(1_001 * S, 0xff)]), "the gate list lasts longer than 1000 s");
        assert_eq!(said(&[(1, 0x07), (2, 0xf0)]), "the gate of level 3 never opens");
    }
}
