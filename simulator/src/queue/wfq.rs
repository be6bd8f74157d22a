// SPDX-License-Identifier: GPL-2.0-or-later
//! Weighted fair queueing (Demers, Keshav and Shenker, SIGCOMM'89; Parekh and Gallager,
//! Transactions on Networking 1(3), 1993).
//!
//! Packets leave in the order in which they would end if the link served all waiting levels at
//! once, each with its weight's share. No packet ends later than that by more than the time of the
//! largest packet (Parekh and Gallager, theorem 1).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::Pool;
use crate::queue::levels::{Levels, LEVELS};
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::traits::{admits_all, counts_of, AdmitAll, QueueDiscipline, QueueKind, BANDS};

/// Settings: weighted fair queueing among eight levels; ACKs are in level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wfq {
    /// Limit of each level in bytes, without the packet being sent; what does not fit is dropped.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
    /// Weights of the levels: a waiting level's share of the link is its weight over the sum of the
    /// waiting levels' weights.
    pub weights: [u32; LEVELS],
}

impl QueueKind for Wfq {
    admits_all!();
    type Discipline = Box<LevelQueue>;
    const NAME: &str = "wfq";
    const NEEDS_PORT: bool = true;
    const HAS_LEVELS: bool = true;

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn check(&self) -> Result<()> {
        match self.weights.iter().position(|weight| !(1..=MAX).contains(weight)) {
            Some(level) => Err(Error::new(format!(
                "level {level}'s weight of {} must be between 1 and {MAX}",
                self.weights[level]
            ))),
            None => Ok(()),
        }
    }

    fn discipline(&self, ps_per_byte: u32) -> Box<LevelQueue> {
        Box::new(LevelQueue::new(self.limit, Some(self.weights), ps_per_byte))
    }
}

/// Largest weight.
const MAX: u32 = 1 << 20;
/// Fractional bits of virtual time, which stays exact to a picosecond over days.
const FRACTION: u32 = 32;

/// The fluid system that defines the order: virtual time advances by 1 / the sum of the weights of
/// the levels that it still serves.
#[derive(Debug)]
struct Fluid {
    weights: [u32; LEVELS],
    /// Virtual time at `at`.
    virtual_time: u128,
    at: Ps,
    /// By level: the virtual time at which all its packets have been served.
    ends: [u128; LEVELS],
}

impl Fluid {
    /// An empty system.
    fn new(weights: [u32; LEVELS], now: Ps) -> Self {
        Fluid { weights, virtual_time: 0, at: now, ends: [0; LEVELS] }
    }

    /// Advances to `now`.
    fn advance(&mut self, now: Ps) {
        loop {
            let served = (0..LEVELS).filter(|&level| self.ends[level] > self.virtual_time);
            let weight: u128 = served.clone().map(|level| u128::from(self.weights[level])).sum();
            let Some(first) = served.map(|level| self.ends[level]).min() else {
                self.at = now;
                return;
            };
            let takes = ((first - self.virtual_time) * weight).div_ceil(1 << FRACTION) as Ps;
            if takes > now - self.at {
                self.virtual_time += (u128::from(now - self.at) << FRACTION) / weight;
                self.at = now;
                return;
            }
            self.virtual_time = first;
            self.at += takes;
        }
    }

    /// Adds a packet with this sending time now; returns its virtual end.
    fn add(&mut self, now: Ps, level: usize, send: Ps) -> u128 {
        self.advance(now);
        let end = &mut self.ends[level];
        *end = self.virtual_time.max(*end)
            + (u128::from(send) << FRACTION) / u128::from(self.weights[level]);
        *end
    }
}

/// The order in which packets leave.
#[derive(Debug)]
struct Order {
    fluid: Fluid,
    /// By level: the virtual ends of its waiting packets.
    ends: [VecDeque<u128>; LEVELS],
    ps_per_byte: u64,
}

/// Eight levels, served by weight or by strict priority.
#[derive(Debug)]
pub(crate) struct LevelQueue {
    levels: Levels,
    /// None: strict priority.
    order: Option<Order>,
}

impl LevelQueue {
    /// With a limit in bytes for each level.
    pub fn new(limit: u64, weights: Option<[u32; LEVELS]>, ps_per_byte: u32) -> Self {
        let order = weights.map(|weights| Order {
            fluid: Fluid::new(weights, 0),
            ends: std::array::from_fn(|_| VecDeque::new()),
            ps_per_byte: ps_per_byte.into(),
        });
        LevelQueue { levels: Levels::new(limit), order }
    }

    /// Queues a packet; false if it is dropped instead.
    pub fn push(&mut self, now: Ps, handle: u32, pool: &Pool) -> bool {
        let Some(level) = self.levels.push(handle, pool) else {
            return false;
        };
        if let Some(Order { fluid, ends, ps_per_byte }) = &mut self.order {
            let send = u64::from(pool.get(handle).bytes) * *ps_per_byte;
            ends[level].push_back(fluid.add(now, level, send));
        }
        true
    }

    /// Takes the next packet to send, of a level that is not `stopped`.
    pub fn pop(&mut self, stopped: u8, pool: &Pool) -> Option<u32> {
        let Some(Order { ends, .. }) = &mut self.order else {
            return self.levels.pop(self.levels.waiting(stopped).next()?, pool);
        };
        let level = self.levels.waiting(stopped).min_by_key(|&level| ends[level][0])?;
        ends[level].pop_front();
        self.levels.pop(level, pool)
    }
}

impl QueueDiscipline for LevelQueue {
    counts_of!(levels);

    #[inline]
    fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, _evicted: &mut Vec<u32>) -> bool {
        self.push(now, handle, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now: Ps, stopped: u8, pool: &mut Pool, _dropped: &mut Vec<u32>) -> Next {
        self.pop(stopped, pool).into()
    }

    /// Resets the fluid system too, which would otherwise go on serving lost packets.
    fn flush(&mut self, now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
        lost.extend(std::iter::from_fn(|| self.pop(0, pool)));
        if let Some(Order { fluid, .. }) = &mut self.order {
            *fluid = Fluid::new(fluid.weights, now);
        }
    }

    #[inline]
    fn level_bytes(&self, level: u8) -> Option<u64> {
        Some(self.levels.held(level))
    }

    fn band_bytes(&self, _pool: &Pool) -> Option<[u64; BANDS]> {
        Some(self.levels.band_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Rng;
    use crate::packet::Packet;

    const PS: u32 = 800;

    fn fair(weights: [u32; LEVELS]) -> (Pool, LevelQueue) {
        (Pool::default(), LevelQueue::new(u64::MAX, Some(weights), PS))
    }

    /// When each packet (time, level, bytes) ends in the fluid system, by a simulation of its own
    /// in floating point: steps from one arrival or end to the next.
    fn fluid(weights: [u32; LEVELS], packets: &[(Ps, u8, u16)]) -> Vec<f64> {
        let (mut now, mut came, mut ends) = (0.0, 0, vec![0.0; packets.len()]);
        let mut lines: [VecDeque<(usize, f64)>; LEVELS] = std::array::from_fn(|_| VecDeque::new());
        while came < packets.len() || lines.iter().any(|line| !line.is_empty()) {
            let weight: f64 =
                (0..LEVELS).filter(|&l| !lines[l].is_empty()).map(|l| f64::from(weights[l])).sum();
            let next = packets.get(came).map_or(f64::MAX, |packet| packet.0 as f64);
            let end = |l: usize| {
                lines[l]
                    .front()
                    .map_or(f64::MAX, |(_, left)| now + left * weight / f64::from(weights[l]))
            };
            let first = (0..LEVELS).map(end).fold(next, f64::min);
            for (level, line) in lines.iter_mut().enumerate() {
                if let Some((place, left)) = line.front_mut() {
                    *left -= (first - now) * f64::from(weights[level]) / weight;
                    if *left < 1e-3 {
                        ends[*place] = first;
                        line.pop_front();
                    }
                }
            }
            now = first;
            while let Some(&(_, level, bytes)) =
                packets.get(came).filter(|packet| packet.0 as f64 <= now)
            {
                lines[usize::from(level)].push_back((came, f64::from(bytes) * f64::from(PS)));
                came += 1;
            }
        }
        ends
    }

    /// When each ends on the link.
    fn sent(weights: [u32; LEVELS], packets: &[(Ps, u8, u16)]) -> Vec<Ps> {
        let (mut pool, mut queue) = fair(weights);
        let (mut free, mut came, mut ends) = (0, 0, vec![0; packets.len()]);
        while came < packets.len() || queue.len() > 0 {
            if queue.len() == 0 {
                free = free.max(packets[came].0);
            }
            while let Some(&(at, level, bytes)) =
                packets.get(came).filter(|packet| packet.0 <= free)
            {
                let handle =
                    pool.add(Packet { seq: came as u32, ..Packet::datagram(0, 0, level, bytes) });
                assert!(queue.push(at, handle, &pool));
                came += 1;
            }
            let packet = *pool.get(queue.pop(0, &pool).unwrap());
            free += u64::from(packet.bytes) * u64::from(PS);
            ends[packet.seq as usize] = free;
        }
        ends
    }

    /// Theorem 1 of Parekh and Gallager, beside a fluid system of its own; and the link is never
    /// idle while something waits.
    #[test]
    fn none_ends_later_than_in_the_fluid_system_by_more_than_a_packet() {
        for (seed, weights) in
            [(1, [1; LEVELS]), (2, [8, 4, 1, 1, 1, 1, 1, 1]), (3, [50, 1, 7, 20, 3, 1, 9, 100])]
        {
            let mut rng = Rng::new(seed, 0);
            let mut now = 0;
            let packets: Vec<(Ps, u8, u16)> = (0..3_000)
                .map(|_| {
                    // Bursts and gaps at 0.95 of the link.
                    now += if rng.below(4) == 0 { rng.below(5_260_000) } else { 0 };
                    (now, rng.below(8) as u8, 64 + rng.below(1_437) as u16)
                })
                .collect();
            let (fluid, sent) = (fluid(weights, &packets), sent(weights, &packets));
            let late = sent
                .iter()
                .zip(&fluid)
                .map(|(&sent, &fluid)| sent as f64 - fluid)
                .fold(f64::MIN, f64::max);
            // The largest packet, and what floating point leaves.
            assert!(late <= 1_500.0 * f64::from(PS) + 10.0, "{seed}: {late}");
            assert!(
                late > 0.5 * 1_500.0 * f64::from(PS),
                "{seed}: the bound is not approached: {late}"
            );
            let (all, last) = (
                packets.iter().map(|p| u64::from(p.2)).sum::<u64>() * u64::from(PS),
                sent.iter().max().unwrap(),
            );
            assert!(
                fluid.iter().fold(0.0, |a: f64, &b| a.max(b)) - *last as f64 <= 10.0
                    && *last >= all
            );
        }
    }

    /// Demers, Keshav and Shenker: while all wait, each level is sent its weight's share, within a
    /// packet.
    #[test]
    fn levels_share_by_weight() {
        let weights = [8, 4, 1, 1, 1, 1, 1, 1];
        let packets: Vec<(Ps, u8, u16)> =
            (0..2_600).flat_map(|_| (0..3).map(|level| (0, level, 1_000))).collect();
        let mut order: Vec<(Ps, usize)> = sent(weights, &packets)
            .into_iter()
            .zip(packets.iter().map(|p| usize::from(p.1)))
            .collect();
        order.sort_unstable();
        let mut got = [0i64; 3];
        // Until the first level has sent all.
        for (n, &(_, level)) in (1..=3_900).zip(&order) {
            got[level] += 1;
            for (level, share) in [(0, 8), (1, 4), (2, 1)] {
                assert!((13 * got[level] - share * n).abs() <= 13 + share, "{n}: {got:?}");
            }
        }
        assert_eq!(got, [2_400, 1_200, 300]);
    }

    #[test]
    fn a_levels_limit_is_its_own() {
        let mut pool = Pool::default();
        let mut queue = LevelQueue::new(3_000, Some([1; LEVELS]), PS);
        let mut push = |level| {
            let handle = pool.add(Packet::datagram(0, 0, level, 1_500));
            queue.push(0, handle, &pool)
        };
        assert_eq!([push(0), push(0), push(0), push(1)], [true, true, false, true]);
        assert_eq!((queue.bytes(), queue.len()), (4_500, 3));
        assert_eq!(
            queue.pop(1, &pool).map(|handle| pool.get(handle).level()),
            Some(1),
            "the first is stopped"
        );
        assert_eq!(queue.pop(0b11, &pool), None);
    }
}
