// SPDX-License-Identifier: GPL-2.0-or-later
//! CoDel (RFC 8289, section 5): drops or marks at the head while the sojourn time stays at `target`
//! or above for an `interval`. Names are the RFC's.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Unit};
use crate::packet::Pool;
use crate::queue::aqm::Protection;
use crate::queue::fifo::Fifo;
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::traits::{admits_all, counts_of, AdmitAll, QueueDiscipline, QueueKind};

/// Controlled delay (RFC 8289): drops from the head, or marks, while packets wait `target` or
/// longer throughout an `interval`; after the n-th drop again after `interval` / sqrt(n). One
/// packet of the largest size may always wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoDel {
    /// Limit of the queue, without the packet being sent.
    pub limit: Limit,
    /// `TARGET`: the acceptable wait; 5 ms for the Internet.
    #[serde(with = "In::<Duration>")]
    pub target: Ps,
    /// `INTERVAL`: a round trip or longer; 100 ms for the Internet.
    #[serde(with = "In::<Duration>")]
    pub interval: Ps,
    /// Who is not dropped early.
    pub protection: Protection,
}

impl QueueKind for CoDel {
    admits_all!();
    type Discipline = CoDelQueue;
    const NAME: &str = "codel";
    const COUNTS_SENDING: bool = false;
    const NEEDS_PORT: bool = true;
    const LIMITED_AT_ADMISSION: bool = true;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn check(&self) -> Result<()> {
        if self.interval == 0 || self.interval > Duration::MAX {
            return Err(Error::new(format!(
                "an interval of {} ps must be above 0 and at most 1000 s",
                self.interval
            )));
        }
        Ok(())
    }

    fn discipline(&self, _ps_per_byte: u32) -> CoDelQueue {
        CoDelQueue { fifo: Fifo::default(), controller: Controller::new(self) }
    }
}

/// A FIFO whose head CoDel controls.
#[derive(Debug)]
pub(crate) struct CoDelQueue {
    fifo: Fifo,
    controller: Controller,
}

impl QueueDiscipline for CoDelQueue {
    counts_of!(fifo);

    #[inline]
    fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, _evicted: &mut Vec<u32>) -> bool {
        self.fifo.push(now, handle, pool);
        true
    }

    #[inline]
    fn dequeue(&mut self, now: Ps, _stopped: u8, pool: &mut Pool, dropped: &mut Vec<u32>) -> Next {
        self.controller.dequeue(now, &mut self.fifo, pool, dropped).into()
    }

    fn flush(&mut self, now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
        self.fifo.flush(now, pool, lost);
        self.controller.reset();
    }
}

/// The state variables of RFC 8289, section 5.
#[derive(Debug, Clone)]
struct Controller {
    target: Ps,
    interval: Ps,
    protection: Protection,
    /// The largest packet seen; one such packet may always wait.
    maxpacket: u64,
    /// When the sojourn time will have been above the target for an interval; none: it is below.
    first_above_time: Option<Ps>,
    dropping: bool,
    drop_next: Ps,
    count: u64,
    lastcount: u64,
}

/// A packet to send, and whether it was marked here.
type Sent = (u32, bool);

impl Controller {
    fn new(codel: &CoDel) -> Self {
        Controller {
            target: codel.target,
            interval: codel.interval,
            protection: codel.protection,
            maxpacket: 0,
            first_above_time: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            lastcount: 0,
        }
    }

    /// Begins anew.
    fn reset(&mut self) {
        *self = Controller {
            maxpacket: 0,
            first_above_time: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            ..*self
        };
    }

    /// `dequeue`: takes the next packet to send; packets dropped before it go to `dropped`.
    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Ps,
        queue: &mut Fifo,
        pool: &mut Pool,
        dropped: &mut Vec<u32>,
    ) -> Option<Sent> {
        let (mut head, mut ok_to_drop) = self.dodequeue(now, queue, pool);
        if self.dropping {
            self.dropping = ok_to_drop;
            while let Some(handle) = head.filter(|_| self.dropping && now >= self.drop_next) {
                self.count += 1;
                if let Some(marked) = self.spared(handle, pool) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some((handle, marked));
                }
                dropped.push(handle);
                (head, ok_to_drop) = self.dodequeue(now, queue, pool);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if let Some(handle) = head.filter(|_| ok_to_drop) {
            let spared = self.spared(handle, pool);
            if spared.is_none() {
                dropped.push(handle);
                (head, _) = self.dodequeue(now, queue, pool);
            }
            // If the last dropping state was recent, its drop rate is a good start.
            let needed = self.count - self.lastcount;
            let recent = now < self.drop_next + 16 * self.interval;
            self.count = if needed > 1 && recent { needed } else { 1 };
            self.lastcount = self.count;
            self.dropping = true;
            self.drop_next = self.control_law(now);
            return head.map(|handle| (handle, spared == Some(true)));
        }
        head.map(|handle| (handle, false))
    }

    /// `dodequeue`: the head of the queue, and `ok_to_drop`.
    fn dodequeue(&mut self, now: Ps, queue: &mut Fifo, pool: &Pool) -> (Option<u32>, bool) {
        let Some((handle, came)) = queue.pop(pool) else {
            self.first_above_time = None;
            return (None, false);
        };
        self.maxpacket = self.maxpacket.max(pool.get(handle).bytes.into());
        if now - came < self.target || queue.bytes() <= self.maxpacket {
            self.first_above_time = None;
            return (Some(handle), false);
        }
        let since = *self.first_above_time.get_or_insert(now + self.interval);
        (Some(handle), now >= since)
    }

    /// Whether a packet that was to be dropped is kept instead, and if so, whether it is marked.
    fn spared(&self, handle: u32, pool: &mut Pool) -> Option<bool> {
        let packet = pool.get_mut(handle);
        if packet.ect {
            packet.mark();
            return Some(true);
        }
        self.protection.spares(packet).then_some(false)
    }

    /// `control_law`: `t` + interval / sqrt(count), rounded down.
    fn control_law(&self, t: Ps) -> Ps {
        t + (u128::from(self.interval).pow(2) / u128::from(self.count)).isqrt() as Ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, US};
    use crate::packet::{Kind, Packet};
    use crate::queue::limit::Limit;

    struct Bench {
        pool: Pool,
        queue: Fifo,
        controller: Controller,
        dropped: Vec<u32>,
    }

    fn bench(protection: Protection) -> Bench {
        let codel = CoDel { limit: Limit::None, target: 5 * MS, interval: 100 * MS, protection };
        let (pool, queue) = (Pool::default(), Fifo::default());
        Bench { pool, queue, controller: Controller::new(&codel), dropped: Vec::new() }
    }

    impl Bench {
        fn push(&mut self, now: Ps, kind: Kind, ect: bool, marked: bool) {
            let packet = Packet { kind, marked, ect, ..Packet::datagram(0, 1, 0, 1500) };
            let handle = self.pool.add(packet);
            self.queue.push(now, handle, &self.pool);
        }

        /// Whether the packet sent is marked, and how many were dropped.
        fn pop(&mut self, now: Ps) -> (Option<bool>, usize) {
            self.dropped.clear();
            let sent =
                self.controller.dequeue(now, &mut self.queue, &mut self.pool, &mut self.dropped);
            (sent.map(|(_, marked)| marked), self.dropped.len())
        }

        /// Times of drops or marks while a packet is taken every 100 us from a queue that is never
        /// drained.
        fn overload(&mut self, kind: Kind, ect: bool, actions: usize) -> Vec<Ps> {
            for _ in 0..1_000_000 {
                self.push(0, kind, ect, false);
            }
            let (mut now, mut times) = (6 * MS, Vec::new());
            while times.len() < actions {
                let (sent, dropped) = self.pop(now);
                assert!(dropped <= 1);
                if dropped == 1 || sent == Some(true) {
                    times.push(now);
                }
                now += 100 * US;
            }
            times
        }
    }

    /// Sojourn times are above the target from 6 ms on. So the first drop is an interval later, and
    /// drop n+1 is due interval / sqrt(n) after drop n was; each happens at the first departure
    /// from then on.
    fn due(actions: usize) -> Vec<Ps> {
        let mut at = 106 * MS;
        let mut times = vec![at];
        for n in 1..actions {
            let spacing = 100e9 / (n as f64).sqrt();
            at += spacing as Ps;
            times.push(at.div_ceil(100 * US) * 100 * US);
        }
        times
    }

    #[test]
    fn drops_are_spaced_by_the_control_law() {
        assert_eq!(bench(Protection::Default).overload(Kind::Data, false, 400), due(400));
        // The control law is exact: floor(interval / sqrt(n)).
        let mut controller = bench(Protection::Default).controller;
        for n in 1..10_000 {
            controller.count = n;
            let (spacing, interval) =
                (u128::from(controller.control_law(0)), u128::from(controller.interval).pow(2));
            assert!(
                spacing.pow(2) * u128::from(n) <= interval
                    && (spacing + 1).pow(2) * u128::from(n) > interval
            );
        }
    }

    #[test]
    fn what_is_ecn_capable_is_marked_at_the_same_times() {
        let mut bench = bench(Protection::Default);
        assert_eq!(bench.overload(Kind::Data, true, 400), due(400));
        assert!(bench.dropped.is_empty());
    }

    #[test]
    fn protection_is_by_kind() {
        let kinds = [
            (Kind::Data, false),
            (Kind::Datagram, false),
            (Kind::Ack, false),
            (Kind::Ack, true),
            (Kind::Syn, true),
        ];
        let spared = |protection| {
            kinds.map(|(kind, marked)| {
                let mut bench = bench(protection);
                for _ in 0..5 {
                    bench.push(0, kind, false, marked);
                }
                assert_eq!(bench.pop(50 * MS), (Some(false), 0));
                bench.pop(150 * MS).1 == 0
            })
        };
        assert_eq!(spared(Protection::Default), [false; 5]);
        assert_eq!(spared(Protection::EceBit), [false, false, false, true, true]);
        assert_eq!(spared(Protection::AckSyn), [false, false, true, true, true]);
        assert_eq!(spared(Protection::NoDrop), [true; 5]);
    }

    #[test]
    fn nothing_happens_below_the_target_nor_with_one_packet() {
        let mut bench = bench(Protection::Default);
        // A wait just below the target for a second.
        for _ in 0..100 {
            bench.push(0, Kind::Data, false, false);
        }
        for i in 0..100_000u64 {
            bench.push(i * 10 * US, Kind::Data, false, false);
            bench.queue.waiting.iter_mut().for_each(|(_, came)| {
                *came = (*came).max((i * 10 * US + 1).saturating_sub(5 * MS))
            });
            assert_eq!(bench.pop(i * 10 * US), (Some(false), 0));
        }
        // A packet of the largest size behind one that has waited for long.
        while bench.pop(2_000 * MS).0.is_some() {}
        for i in 0..100u64 {
            let now = 2_000 * MS + i * 20 * MS;
            bench.push(now, Kind::Data, false, false);
            bench.push(now, Kind::Data, false, false);
            assert_eq!(bench.pop(now + 10 * MS), (Some(false), 0));
            assert_eq!(bench.pop(now + 19 * MS), (Some(false), 0));
        }
    }

    /// Soon after the last dropping state, the new one continues at the same drop rate; long after,
    /// with one drop an interval.
    #[test]
    fn the_rate_is_remembered() {
        for (gap, count) in [(MS, 400 - 1), (10_000 * MS, 1)] {
            let mut bench = bench(Protection::Default);
            let last = *bench.overload(Kind::Data, false, 400).last().unwrap();
            assert_eq!(bench.controller.count, 400);
            while bench.pop(last).0.is_some() {}
            let from = last + gap;
            for _ in 0..10_000 {
                bench.push(from, Kind::Data, false, false);
            }
            assert_eq!(bench.pop(from + 5 * MS), (Some(false), 0));
            assert!(!bench.controller.dropping);
            assert_eq!(bench.pop(from + 105 * MS), (Some(false), 1));
            assert_eq!(bench.controller.count, count);
        }
    }
}
