// SPDX-License-Identifier: GPL-2.0-or-later
//! DualPI2 (RFC 9332, appendix A): a short queue for L4S flows and a classic one, coupled so that
//! each flow gets about the same share. Names are the RFC's.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::{Ps, MS, US};
use crate::core::units::{Duration, In, Size};
use crate::packet::{Kind, Packet, Pool, SCALABLE};
use crate::queue::fifo::Fifo;
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::pi_controller::PiController;
use crate::queue::traits::{admits_all, AdmitAll, QueueDiscipline, QueueKind};

/// Settings of the two coupled queues: ECN-capable data of DCTCP goes to the L4S queue, everything
/// else to the classic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualPi2 {
    /// `limit`: bytes of both queues, without the packet being sent.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
    /// Target, update interval and gains of the base probability p'. Classic packets are dropped,
    /// or marked, with p'^2.
    pub control: PiController,
    /// `k`: L4S packets are marked with k·p', or by the ramp of their own wait if that is more.
    pub coupling: u32,
    /// `minTh`: a wait of the L4S queue that is marked with probability 0.
    #[serde(with = "In::<Duration>")]
    pub least: Ps,
    /// Width of the ramp: a wait longer by this is marked with 1; 0 makes a step.
    #[serde(with = "In::<Duration>")]
    pub range: Ps,
    /// Least share of the link for classic packets, in per cent.
    pub classic_share: u32,
}

impl DualPi2 {
    /// Linux's defaults (`sch_dualpi2`), for the Internet: target 15 ms, updates every 16 ms, gains
    /// of 0.16 and 3.2, coupling 2, a ramp from 0.8 to 1.2 ms, a tenth of the link for classic
    /// traffic.
    pub fn rfc9332(limit: u64) -> Self {
        let control = PiController { target: 15 * MS, update: 16 * MS, alpha: 160, beta: 3_200 };
        DualPi2 { limit, control, coupling: 2, least: 800 * US, range: 400 * US, classic_share: 10 }
    }
}

impl QueueKind for DualPi2 {
    admits_all!();
    type Discipline = Box<DualQueue>;
    const NAME: &str = "dualpi2";
    const NEEDS_PORT: bool = true;

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn check(&self) -> Result<()> {
        if !(1..=16).contains(&self.coupling) {
            return Err(Error::new(format!(
                "a coupling of {} must be between 1 and 16",
                self.coupling
            )));
        }
        if !(1..=99).contains(&self.classic_share) {
            return Err(Error::new(format!(
                "a classic share of {} % must be between 1 and 99",
                self.classic_share
            )));
        }
        self.control.check()
    }

    fn discipline(&self, _ps_per_byte: u32) -> Box<DualQueue> {
        Box::new(DualQueue::new(self))
    }
}

/// `recur`: acts on a share of packets, evenly spaced.
#[derive(Debug, Default)]
struct Recur(f64);

impl Recur {
    fn next(&mut self, p: f64) -> bool {
        self.0 += p;
        let acts = self.0 >= 1.0;
        if acts {
            self.0 -= 1.0;
        }
        acts
    }
}

#[derive(Debug)]
pub(crate) struct DualQueue {
    rule: DualPi2,
    /// The base probability p'.
    p_prime: f64,
    /// The queue delay at the last update, in ps.
    prevq: Ps,
    next_update: Ps,
    scalable: Fifo,
    classic: Fifo,
    marks: Recur,
    drops: Recur,
    /// The classic queue is served first while above 0: bytes in hundredths that it is short of its
    /// share.
    credit: i64,
}

impl DualQueue {
    pub fn new(rule: &DualPi2) -> Self {
        DualQueue {
            rule: *rule,
            p_prime: 0.0,
            prevq: 0,
            next_update: rule.control.update,
            scalable: Fifo::default(),
            classic: Fifo::default(),
            marks: Recur::default(),
            drops: Recur::default(),
            credit: 0,
        }
    }

    /// Queues a packet; false if it is dropped instead.
    pub fn push(&mut self, now: Ps, handle: u32, pool: &Pool) -> bool {
        self.dualpi2_update(now);
        let packet = pool.get(handle);
        if self.bytes() + u64::from(packet.bytes) > self.rule.limit {
            return false;
        }
        let queue = if is_scalable(packet) { &mut self.scalable } else { &mut self.classic };
        queue.push(now, handle, pool);
        true
    }

    /// Takes the next packet to send, and whether it is marked now; packets dropped before it go to
    /// `dropped`.
    pub fn pop(&mut self, now: Ps, pool: &mut Pool, dropped: &mut Vec<u32>) -> Option<(u32, bool)> {
        self.dualpi2_update(now);
        loop {
            let scalable = self.scheduler();
            let queue = if scalable { &mut self.scalable } else { &mut self.classic };
            let (handle, came) = queue.pop(pool)?;
            let bytes = i64::from(pool.get(handle).bytes);
            let share = i64::from(self.rule.classic_share);
            let acts = if scalable {
                self.credit += if self.classic.len() > 0 { share * bytes } else { 0 };
                self.marks.next(self.laqm(now - came))
            } else {
                self.credit -= if self.scalable.len() > 0 { (100 - share) * bytes } else { 0 };
                self.drops.next(self.p_prime * self.p_prime)
            };
            if !acts {
                return Some((handle, false));
            }
            // Overload (section 4.2.3): when all L4S packets would be marked, marks carry no
            // information. So nothing is marked instead of dropped, and L4S packets are dropped
            // like classic ones.
            let overload = f64::from(self.rule.coupling) * self.p_prime >= 1.0;
            let drops = overload && (!scalable || self.drops.next(self.p_prime * self.p_prime));
            let packet = pool.get_mut(handle);
            if packet.ect && !drops {
                packet.mark();
                return Some((handle, true));
            }
            dropped.push(handle);
        }
    }

    /// Whether the L4S queue is next: yes, except for the classic queue's share.
    fn scheduler(&mut self) -> bool {
        if self.scalable.len() == 0 || self.classic.len() == 0 {
            self.credit = 0;
        }
        self.scalable.len() > 0 && (self.classic.len() == 0 || self.credit <= 0)
    }

    /// `laqm`: the marking probability of an L4S packet that waited this long: its own ramp if
    /// another packet waits behind it, or the coupled probability if that is more.
    fn laqm(&self, waited: Ps) -> f64 {
        let DualPi2 { least, range, coupling, .. } = self.rule;
        let own = match waited.checked_sub(least) {
            None | Some(0) => 0.0,
            Some(_) if self.scalable.len() == 0 => 0.0,
            Some(over) if over >= range => 1.0,
            Some(over) => over as f64 / range as f64,
        };
        own.max((f64::from(coupling) * self.p_prime).min(1.0))
    }

    /// `dualpi2_update`: runs all updates due by `now`; the queue has not changed since the last
    /// packet came or left.
    fn dualpi2_update(&mut self, now: Ps) {
        let update = self.rule.control.update;
        while self.next_update <= now {
            let oldest = [&self.scalable, &self.classic].into_iter().filter_map(Fifo::oldest).min();
            let delay = oldest.map_or(0, |came| self.next_update - came);
            if self.p_prime <= 0.0 && self.prevq == 0 && delay == 0 {
                // Nothing changes until a packet waits.
                let idle =
                    if oldest.is_none() { (now - self.next_update) / update * update } else { 0 };
                self.next_update += idle + update;
                continue;
            }
            self.p_prime =
                (self.p_prime + self.rule.control.change(delay, self.prevq)).clamp(0.0, 1.0);
            self.prevq = delay;
            self.next_update += update;
        }
    }
}

impl QueueDiscipline for DualQueue {
    #[inline]
    fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, _evicted: &mut Vec<u32>) -> bool {
        self.push(now, handle, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Ps, _stopped: u8, pool: &mut Pool, dropped: &mut Vec<u32>) -> Next {
        self.pop(now, pool, dropped).into()
    }

    /// Resets the probability and both queues' shares.
    fn flush(&mut self, now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
        self.scalable.flush(now, pool, lost);
        self.classic.flush(now, pool, lost);
        *self = DualQueue { next_update: self.next_update, ..DualQueue::new(&self.rule) };
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.scalable.bytes() + self.classic.bytes()
    }

    fn len(&self) -> usize {
        self.scalable.len() + self.classic.len()
    }
}

fn is_scalable(packet: &Packet) -> bool {
    packet.kind == Kind::Data && packet.ect && packet.echo & SCALABLE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(scalable: bool, ect: bool) -> Packet {
        let echo = if scalable { SCALABLE } else { 0 };
        Packet { kind: Kind::Data, ect, echo, ..Packet::datagram(0, 0, 0, 1_000) }
    }

    fn dual(p: f64) -> (Pool, DualQueue) {
        (
            Pool::default(),
            DualQueue {
                p_prime: p,
                next_update: Ps::MAX,
                ..DualQueue::new(&DualPi2::rfc9332(u64::MAX))
            },
        )
    }

    /// Of 10,000 packets, how many are sent without and with a mark, and dropped.
    fn fates(p: f64, packet: Packet) -> [usize; 3] {
        let (mut pool, mut queue) = dual(p);
        let (mut dropped, mut sent) = (Vec::new(), [0, 0]);
        for _ in 0..10_000 {
            let handle = pool.add(packet);
            assert!(queue.push(0, handle, &pool));
        }
        while let Some((_, marked)) = queue.pop(0, &mut pool, &mut dropped) {
            sent[usize::from(marked)] += 1;
        }
        [sent[0], sent[1], dropped.len()]
    }

    /// The coupling (section 2.1): classic p'^2, L4S 2 p'; the share is exact, for it is not
    /// random.
    #[test]
    fn both_queues_act_on_their_shares() {
        assert_eq!(fates(0.125, data(true, true)), [7_500, 2_500, 0]);
        assert_eq!(fates(0.125, data(false, false)), [9_844, 0, 156]);
        assert_eq!(fates(0.125, data(false, true)), [9_844, 156, 0]);
        assert_eq!(fates(0.0, data(true, true)), [10_000, 0, 0]);
        // Overload: all are marked that are not dropped, at p'^2 = 1/4.
        assert_eq!(fates(0.5, data(true, true)), [0, 7_500, 2_500]);
        // What is classic is dropped then, whether it may be marked or not.
        assert_eq!(fates(0.5, data(false, true)), [7_500, 0, 2_500]);
        // SCALABLE alone is not enough: what is not ECN-capable is classic.
        assert_eq!(fates(0.125, data(true, false)), [9_844, 0, 156]);
    }

    /// An ACK's mark is the echo of one, which no queue sets, also where an ACK may be marked
    /// instead of dropped.
    #[test]
    fn acks_are_not_marked() {
        let (mut pool, mut queue) = dual(0.5);
        let ack = Packet { kind: Kind::Ack, ect: true, ..Packet::datagram(0, 0, 0, 40) };
        queue.rule.coupling = 1;
        for _ in 0..8 {
            let handle = pool.add(ack);
            queue.push(0, handle, &pool);
        }
        let (mut sent, mut dropped) = (0, Vec::new());
        while let Some((handle, _)) = queue.pop(0, &mut pool, &mut dropped) {
            assert!(!pool.get(handle).marked);
            sent += 1;
        }
        assert_eq!((sent, dropped.len()), (8, 0));
    }

    /// Appendix A.1: a ramp from 0.8 to 1.2 ms, of all but the last packet.
    #[test]
    fn waits_are_marked_by_a_ramp() {
        let share = |waited: Ps, others: bool| {
            let (mut pool, mut queue) = dual(0.0);
            let handle = pool.add(data(true, true));
            if others {
                queue.push(0, handle, &pool);
            }
            (queue.laqm(waited) * 1e6) as u32
        };
        let waits = [0, 800, 900, 1_000, 1_199, 1_200, 9_000].map(|us| share(us * US, true));
        assert_eq!(waits, [0, 0, 250_000, 500_000, 997_500, 1_000_000, 1_000_000]);
        assert_eq!(share(9_000 * US, false), 0);
    }

    /// Gains of 0.16 and 3.2, a target of 15 ms; the delay is that of who waits longest.
    #[test]
    fn updates_are_those_of_the_formula() {
        let (mut pool, mut queue) = dual(0.0);
        queue.next_update = 16 * MS;
        let handle = pool.add(data(false, false));
        queue.push(0, handle, &pool);
        queue.dualpi2_update(16 * MS);
        // 0.16 * 1 ms + 3.2 * 16 ms.
        assert!((queue.p_prime - 0.051_36).abs() < 1e-12, "{}", queue.p_prime);
        let later = pool.add(data(true, true));
        queue.push(20 * MS, later, &pool);
        queue.dualpi2_update(40 * MS);
        // 0.16 * 17 ms + 3.2 * 16 ms more.
        assert!((queue.p_prime - 0.105_28).abs() < 1e-12, "{}", queue.p_prime);
        queue.dualpi2_update(47 * MS);
        assert_eq!(queue.pop(47 * MS, &mut pool, &mut Vec::new()), Some((later, false)));
        let alone = queue.p_prime;
        queue.pop(47 * MS, &mut pool, &mut Vec::new());
        queue.dualpi2_update(64 * MS);
        // Two updates, at 48 and 64 ms: without delay after one of 32 ms, and after none.
        assert!(
            (queue.p_prime - (alone - 0.16 * 0.015 - 3.2 * 0.032 - 0.16 * 0.015).max(0.0)).abs()
                < 1e-12,
            "{}",
            queue.p_prime
        );
    }

    /// While both wait, what is classic has a tenth, within a packet of each.
    #[test]
    fn the_classic_queue_has_its_share() {
        let (mut pool, mut queue) = dual(0.0);
        for n in 0..2_000 {
            let handle = pool.add(data(n % 2 == 0, true));
            queue.push(0, handle, &pool);
        }
        let mut classic = 0i32;
        for n in 1..=1_000 {
            let (handle, _) = queue.pop(0, &mut pool, &mut Vec::new()).unwrap();
            classic += i32::from(!is_scalable(pool.get(handle)));
            assert!((10 * classic - n).abs() <= 10, "{n}: {classic}");
        }
        assert_eq!(classic, 100);
    }
}
