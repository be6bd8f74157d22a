// SPDX-License-Identifier: GPL-2.0-or-later
//! Admission to a queue: whether an arriving packet is taken, marked or dropped, judged by what it
//! finds waiting.

use std::collections::VecDeque;

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::Packet;
use crate::queue::kinds::{Queue, Rule};
use crate::queue::limit::Room;
use crate::queue::traits::{Action, Found};

/// What became of an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Taken,
    Marked,
    /// Dropped by early detection.
    Early,
    Full,
}

#[derive(Debug)]
pub(crate) struct Admission {
    room: Room,
    rule: Rule,
    sees_full: bool,
}

impl Admission {
    /// For a queue setting. Queues that enforce their own limit admit everything here.
    pub fn new(queue: &Queue, ps_per_byte: u32, rng: Rng) -> Self {
        Admission {
            room: Room::new(queue.admission_limit(), ps_per_byte),
            rule: Rule::new(queue, ps_per_byte, rng),
            sees_full: queue.sees_full(),
        }
    }

    /// The limits in bytes and in packets.
    pub fn limits(&self) -> (u64, u64) {
        (self.room.bytes, self.room.packets)
    }

    /// Resets after the link failed and all its packets were lost, as Linux resets the queue of a
    /// link without a carrier.
    pub fn reset(&mut self, now: Ps) {
        self.rule.reset(now);
    }

    pub fn admit(&mut self, now: Ps, found: &Found, packet: &mut Packet) -> Verdict {
        let full = !self.room.holds(found.bytes, found.packets, packet.bytes.into());
        if full && !self.sees_full {
            return Verdict::Full;
        }
        match self.rule.judge(now, found, packet) {
            Action::Drop => Verdict::Early,
            _ if full => Verdict::Full,
            Action::Pass => Verdict::Taken,
            Action::Mark => {
                packet.mark();
                Verdict::Marked
            }
        }
    }
}

/// Admission to a FIFO link, which knows at arrival when each packet will have been sent.
#[derive(Debug)]
pub(crate) struct PredictedQueue {
    admission: Admission,
    /// When each admitted packet will have been sent.
    taken: VecDeque<Ps>,
}

impl PredictedQueue {
    pub fn new(admission: Admission) -> Self {
        PredictedQueue { admission, taken: VecDeque::new() }
    }

    /// All admitted packets are lost.
    pub fn clear(&mut self, now: Ps) {
        self.taken.clear();
        self.admission.reset(now);
    }

    /// Bytes times ps that packets still have to wait after `now`.
    pub fn to_wait(&self, now: Ps, ps_per_byte: u32) -> u128 {
        // Each packet starts when the one before it has been sent. All packets behind the first
        // one, which has started, came in time for that.
        let pairs = self.taken.iter().zip(self.taken.iter().skip(1));
        let rest = |(&begins, &sent): (&Ps, &Ps)| {
            let bytes = (sent - begins) / u64::from(ps_per_byte);
            u128::from(bytes) * u128::from(begins.saturating_sub(now))
        };
        pairs.map(rest).sum()
    }

    /// `free`: when all admitted packets will have been sent.
    pub fn admit(&mut self, now: Ps, free: Ps, ps_per_byte: u32, packet: &mut Packet) -> Verdict {
        while self.taken.front().is_some_and(|&sent| sent <= now) {
            self.taken.pop_front();
        }
        let found = Found {
            // A byte being sent still counts, so that a limit in bytes is a limit in time, to the
            // picosecond.
            bytes: free.saturating_sub(now).div_ceil(ps_per_byte.into()),
            packets: self.taken.len() as u64,
            idle: now.checked_sub(free),
        };
        let verdict = self.admission.admit(now, &found, packet);
        if matches!(verdict, Verdict::Taken | Verdict::Marked) {
            self.taken.push_back(free.max(now) + u64::from(packet.bytes) * u64::from(ps_per_byte));
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Marked, Taken};
    use super::*;
    use crate::core::time::{MS, US};
    use crate::packet::Kind;
    use crate::queue::kinds::{Limit, Pie, Red, Threshold};
    use crate::queue::pi_controller::PiController;
    use crate::queue::red::Reading;

    fn packet(ect: bool, bytes: u16) -> Packet {
        Packet { kind: Kind::Data, ect, ..Packet::datagram(0, 1, 0, bytes) }
    }

    fn admission(limit: Limit, threshold: Limit) -> Admission {
        Admission::new(&Queue::Threshold(Threshold { limit, threshold }), 800, Rng::new(1, 2))
    }

    #[test]
    fn every_packet_that_finds_the_threshold_is_marked() {
        let find = |threshold, bytes, packets, ect| {
            let mut packet = packet(ect, 1_500);
            let verdict = admission(Limit::None, threshold).admit(
                0,
                &Found { bytes, packets, idle: None },
                &mut packet,
            );
            assert_eq!(packet.marked, verdict == Verdict::Marked);
            verdict
        };
        let bytes = Limit::Bytes(30_000);
        assert_eq!(
            [29_999, 30_000, 90_000].map(|found| find(bytes, found, 99, true)),
            [Taken, Marked, Marked]
        );
        let packets = Limit::Packets(20);
        assert_eq!(
            [19, 20, 90].map(|found| find(packets, 99_999, found, true)),
            [Taken, Marked, Marked]
        );
        // 24 us are 30 kB at 10 Gb/s.
        let time = Limit::Time(24_000_000);
        assert_eq!([29_999, 30_000].map(|found| find(time, found, 99, true)), [Taken, Marked]);
        assert_eq!(
            find(bytes, 90_000, 99, false),
            Taken,
            "what is not ECN-capable passes unmarked"
        );
    }

    /// Verdicts for a thousand packets that arrive every us, twice as fast as they leave. `free`:
    /// when the link was last free.
    fn verdicts(predicted: &mut PredictedQueue, from: Ps, mut free: Ps) -> Vec<Verdict> {
        let mut next = |n| {
            let now = from + n * US;
            let verdict = predicted.admit(now, free, 1_333, &mut packet(false, 1_500));
            free =
                free.max(now) + if matches!(verdict, Taken | Marked) { 1_500 * 1_333 } else { 0 };
            verdict
        };
        (0..1_000).map(&mut next).collect()
    }

    /// Apart from its random numbers.
    #[test]
    fn a_gate_that_has_lost_all_is_as_new() {
        let red =
            Red { weight: 3, ..Red::ns2(Limit::Bytes(15_000), Limit::Bytes(45_000), Limit::None) };
        let control =
            PiController { target: 10 * US, update: 10 * US, alpha: 4_000_000, beta: 40_000_000 };
        let pie = Pie { control, burst: 50 * US, ..Pie::rfc8033(Limit::None) };
        for queue in
            [Queue::Red(red), Queue::Red(Red { reading: Reading::Linux, ..red }), Queue::Pie(pie)]
        {
            let new = || PredictedQueue::new(Admission::new(&queue, 1_333, Rng::new(1, 2)));
            let mut used = new();
            let before = verdicts(&mut used, 0, 0);
            assert!(
                before.iter().filter(|verdict| **verdict == Verdict::Early).count() > 50,
                "{queue:?}"
            );
            used.clear(MS);
            match (&mut used.admission.rule, new().admission.rule) {
                (Rule::Red(used), Rule::Red(new)) => used.rng = new.rng,
                (Rule::Pie(used), Rule::Pie(new)) => used.rng = new.rng,
                _ => unreachable!("it has another rule"),
            }
            assert!(
                verdicts(&mut used, MS + 5 * US, MS) == verdicts(&mut new(), MS + 5 * US, 0),
                "{queue:?}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_unmarked() {
        let mut packet = packet(true, 1_500);
        let mut admission = admission(Limit::Bytes(30_000), Limit::Bytes(0));
        assert_eq!(
            admission.admit(0, &Found { bytes: 28_501, packets: 19, idle: None }, &mut packet),
            Verdict::Full
        );
        assert!(!packet.marked);
        assert_eq!(
            admission.admit(0, &Found { bytes: 28_500, packets: 19, idle: None }, &mut packet),
            Verdict::Marked
        );
    }

    #[test]
    fn a_queue_is_counted_to_the_picosecond() {
        let mut predicted = PredictedQueue::new(admission(Limit::None, Limit::Bytes(1_500)));
        let mut at = |now, free| predicted.admit(now, free, 800, &mut packet(true, 1_500));
        // 1,500 bytes take 1.2 us, and the last byte is to go until it has gone.
        assert_eq!(at(0, 0), Verdict::Taken);
        assert_eq!(at(799, 1_200_000), Verdict::Marked);
        assert_eq!(at(800, 1_200_000), Verdict::Taken);
        let mut predicted = PredictedQueue::new(admission(Limit::None, Limit::Packets(1)));
        let mut at = |now, free| predicted.admit(now, free, 800, &mut packet(true, 1_500));
        assert_eq!(at(0, 0), Verdict::Taken);
        assert_eq!(at(1_199_999, 1_200_000), Verdict::Marked);
        assert_eq!(at(2_400_000, 2_400_000), Verdict::Taken);
    }
}
