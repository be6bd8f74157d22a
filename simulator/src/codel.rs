// SPDX-License-Identifier: GPL-2.0-or-later
//! Controlled delay (RFC 8289, section 5): decides when a packet is taken from the head of its queue.

use std::collections::VecDeque;

use crate::aqm::{CoDel, Protection};
use crate::packet::Pool;
use crate::time::Ps;

/// First come, first served, with the time each packet came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<(u32, Ps)>,
    bytes: u64,
}

impl Fifo {
    pub fn push(&mut self, now: Ps, handle: u32, pool: &Pool) {
        self.waiting.push_back((handle, now));
        self.bytes += u64::from(pool.get(handle).bytes);
    }

    /// The packet and when it came.
    pub fn pop(&mut self, pool: &Pool) -> Option<(u32, Ps)> {
        let (handle, came) = self.waiting.pop_front()?;
        self.bytes -= u64::from(pool.get(handle).bytes);
        Some((handle, came))
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// The RFC's variables.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    target: Ps,
    interval: Ps,
    protection: Protection,
    /// Largest packet seen, of which one may wait.
    largest: u64,
    /// When waits will have been long for an interval, if they are long.
    first_above: Option<Ps>,
    dropping: bool,
    drop_next: Ps,
    count: u64,
    last_count: u64,
}

/// What is sent, and whether it was marked here.
pub(crate) type Sent = (u32, bool);

impl Controller {
    pub fn new(codel: &CoDel) -> Self {
        Controller {
            target: codel.target,
            interval: codel.interval,
            protection: codel.protection,
            largest: 0,
            first_above: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            last_count: 0,
        }
    }

    /// Takes the packet to be sent next; those before it that are not to be sent go to `dropped`.
    pub fn pop(&mut self, now: Ps, queue: &mut Fifo, pool: &mut Pool, dropped: &mut Vec<u32>) -> Option<Sent> {
        let (mut head, mut long) = self.head(now, queue, pool);
        if self.dropping {
            self.dropping = long;
            while let Some(handle) = head.filter(|_| self.dropping && now >= self.drop_next) {
                self.count += 1;
                if let Some(marked) = self.spared(handle, pool) {
                    self.drop_next += self.spacing();
                    return Some((handle, marked));
                }
                dropped.push(handle);
                (head, long) = self.head(now, queue, pool);
                if long {
                    self.drop_next += self.spacing();
                } else {
                    self.dropping = false;
                }
            }
        } else if let Some(handle) = head.filter(|_| long) {
            let spared = self.spared(handle, pool);
            if spared.is_none() {
                dropped.push(handle);
                (head, _) = self.head(now, queue, pool);
            }
            // Soon after the last time, the rate that was enough then is a good start.
            let needed = self.count - self.last_count;
            let recent = now < self.drop_next + 16 * self.interval;
            self.count = if needed > 1 && recent { needed } else { 1 };
            self.last_count = self.count;
            self.dropping = true;
            self.drop_next = now + self.spacing();
            return head.map(|handle| (handle, spared == Some(true)));
        }
        head.map(|handle| (handle, false))
    }

    /// The head of the queue, and whether waits have been long for an interval.
    fn head(&mut self, now: Ps, queue: &mut Fifo, pool: &Pool) -> (Option<u32>, bool) {
        let Some((handle, came)) = queue.pop(pool) else {
            self.first_above = None;
            return (None, false);
        };
        self.largest = self.largest.max(pool.get(handle).bytes.into());
        if now - came < self.target || queue.bytes() <= self.largest {
            self.first_above = None;
            return (Some(handle), false);
        }
        let since = *self.first_above.get_or_insert(now + self.interval);
        (Some(handle), now >= since)
    }

    /// Whether a packet is kept that was to be dropped, and then whether it is marked for it.
    fn spared(&self, handle: u32, pool: &mut Pool) -> Option<bool> {
        let packet = pool.get_mut(handle);
        if packet.ect {
            packet.marked = true;
            return Some(true);
        }
        self.protection.spares(packet).then_some(false)
    }

    /// The control law: interval / sqrt(count), rounded down.
    fn spacing(&self) -> Ps {
        (u128::from(self.interval).pow(2) / u128::from(self.count)).isqrt() as Ps
    }
}
