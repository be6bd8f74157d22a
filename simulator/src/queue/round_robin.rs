// SPDX-License-Identifier: GPL-2.0-or-later
//! Deficit round robin over flows (Shreedhar and Varghese, SIGCOMM'95).
//!
//! Each waiting flow may send `quantum` bytes more in each round; it keeps the part that is too
//! small for its next packet. If a packet does not fit, the longest flow drops its newest packets
//! (the paper's buffer stealing, section 4). While two flows wait, the bytes sent for each differ
//! by at most `quantum` plus two of the largest packets (theorem 2). Meant for a few flows, which
//! are searched linearly.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::{Kind, Pool};
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::priority::is_enough;
use crate::queue::traits::{admits_all, AdmitAll, QueueDiscipline, QueueKind};

/// Deficit round robin: waiting flows take turns of `quantum` bytes; if a packet does not fit, the
/// longest flow drops its newest. A source or channel of datagrams is a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundRobin {
    /// Bytes, without the packet being sent.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
    /// Bytes.
    #[serde(with = "In::<Size>")]
    pub quantum: u32,
}

impl QueueKind for RoundRobin {
    admits_all!();
    type Discipline = RoundRobinQueue;
    const NAME: &str = "round-robin";

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn check(&self) -> Result<()> {
        if self.quantum == 0 {
            return Err(Error::new("the quantum must be above 0 bytes"));
        }
        Ok(())
    }

    fn discipline(&self, _ps_per_byte: u32) -> RoundRobinQueue {
        RoundRobinQueue::new(self.limit, self.quantum)
    }
}

/// The waiting packets of a flow.
#[derive(Debug)]
struct Line {
    flow: u32,
    packets: VecDeque<u32>,
    bytes: u64,
    /// Bytes that it may still send in this turn.
    deficit: u64,
}

impl Line {
    /// Sizes of its newest packets, while it stays longer than `own` with them.
    fn beyond<'a>(&'a self, own: u64, pool: &'a Pool) -> impl Iterator<Item = u16> + 'a {
        let mut left = self.bytes;
        self.packets.iter().rev().map(|&handle| pool.get(handle).bytes).take_while(move |&bytes| {
            let longer = left > own;
            left -= u64::from(bytes);
            longer
        })
    }
}

#[derive(Debug)]
pub(crate) struct RoundRobinQueue {
    /// In the order of turns; none is empty.
    lines: VecDeque<Line>,
    /// The first flow has received its quantum of this round.
    begun: bool,
    quantum: u64,
    bytes: u64,
    /// Bytes of all packets, without the one being sent.
    limit: u64,
}

impl RoundRobinQueue {
    /// With a limit and a quantum in bytes.
    pub fn new(limit: u64, quantum: u32) -> Self {
        RoundRobinQueue {
            lines: VecDeque::new(),
            begun: false,
            quantum: quantum.into(),
            bytes: 0,
            limit,
        }
    }

    /// Queues a packet and evicts the newest packets of longer flows into `evicted`; false if the
    /// packet is dropped instead.
    pub fn push(&mut self, handle: u32, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        let packet = pool.get(handle);
        let bytes = u64::from(packet.bytes);
        // Sources of datagrams are numbered apart from flows, whose slots stay below 2^29.
        let flow = if packet.kind == Kind::Datagram { packet.flow | 1 << 31 } else { packet.flow };
        let own =
            self.lines.iter().find(|line| line.flow == flow).map_or(0, |line| line.bytes) + bytes;
        let over = (self.bytes + bytes).saturating_sub(self.limit);
        // Nothing is evicted for a packet that would not fit even then.
        if over > 0 && !is_enough(self.lines.iter().flat_map(|line| line.beyond(own, pool)), over) {
            return false;
        }
        while self.bytes + bytes > self.limit {
            let Some(longest) = (0..self.lines.len()).max_by_key(|&place| self.lines[place].bytes)
            else {
                return false;
            };
            evicted.extend(self.take(longest, VecDeque::pop_back, pool));
        }
        let place =
            self.lines.iter().position(|line| line.flow == flow).unwrap_or(self.lines.len());
        if place == self.lines.len() {
            self.lines.push_back(Line { flow, packets: VecDeque::new(), bytes: 0, deficit: 0 });
        }
        let line = &mut self.lines[place];
        line.packets.push_back(handle);
        line.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// Takes the next packet to send.
    pub fn pop(&mut self, pool: &Pool) -> Option<u32> {
        loop {
            let line = self.lines.front_mut()?;
            if !self.begun {
                line.deficit += self.quantum;
                self.begun = true;
            }
            let bytes = u64::from(pool.get(*line.packets.front()?).bytes);
            if bytes <= line.deficit {
                line.deficit -= bytes;
                return self.take(0, VecDeque::pop_front, pool);
            }
            self.lines.rotate_left(1);
            self.begun = false;
        }
    }

    /// Takes a packet from a flow. A flow whose last packet leaves starts afresh when it returns.
    fn take(
        &mut self,
        place: usize,
        end: fn(&mut VecDeque<u32>) -> Option<u32>,
        pool: &Pool,
    ) -> Option<u32> {
        let line = &mut self.lines[place];
        let handle = end(&mut line.packets)?;
        let bytes = u64::from(pool.get(handle).bytes);
        line.bytes -= bytes;
        self.bytes -= bytes;
        if line.packets.is_empty() {
            self.lines.remove(place);
            self.begun &= place != 0;
        }
        Some(handle)
    }
}

impl QueueDiscipline for RoundRobinQueue {
    #[inline]
    fn enqueue(&mut self, _now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool {
        self.push(handle, pool, evicted)
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Ps,
        _stopped: u8,
        pool: &mut Pool,
        _dropped: &mut Vec<u32>,
    ) -> Next {
        self.pop(pool).into()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn len(&self) -> usize {
        self.lines.iter().map(|line| line.packets.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Rng;
    use crate::packet::Packet;

    fn packet(pool: &mut Pool, flow: u32, bytes: u16) -> u32 {
        pool.add(Packet::datagram(flow, 0, 7, bytes))
    }

    /// The packets sent, as (flow, bytes), when all packets of these flows wait from the beginning.
    fn sent(quantum: u32, lines: &[&[u16]]) -> Vec<(u32, u16)> {
        let (mut pool, mut queue) = (Pool::default(), RoundRobinQueue::new(u64::MAX, quantum));
        for (flow, line) in (1..).zip(lines) {
            for &bytes in *line {
                let handle = packet(&mut pool, flow, bytes);
                assert!(queue.push(handle, &pool, &mut Vec::new()));
            }
        }
        let of = |handle| (pool.get(handle).flow, pool.get(handle).bytes);
        std::iter::from_fn(|| queue.pop(&pool).map(of)).collect()
    }

    /// The paper's example (figures 2 and 3): with a quantum of 500 the first flow sends 200 bytes
    /// and keeps 300, for its next packet has 750; with the next 500 that one can go, and 50 are
    /// left, of which a packet of 20 takes its own.
    #[test]
    fn what_is_left_of_a_quantum_is_kept() {
        let got = sent(500, &[&[200, 750, 20], &[500, 500], &[200, 600, 100], &[50, 700, 180]]);
        let rounds: [&[(u32, u16)]; 2] = [
            &[(1, 200), (2, 500), (3, 200), (4, 50)],
            &[(1, 750), (1, 20), (2, 500), (3, 600), (3, 100), (4, 700), (4, 180)],
        ];
        assert_eq!(got, rounds.concat());
    }

    #[test]
    fn a_quantum_below_a_packet_takes_several_rounds() {
        assert_eq!(
            sent(100, &[&[250, 50], &[100, 100, 100]]),
            [(2, 100), (2, 100), (1, 250), (1, 50), (2, 100)]
        );
    }

    #[test]
    fn the_longest_flow_gives_up_its_newest() {
        let (mut pool, mut queue, mut evicted) =
            (Pool::default(), RoundRobinQueue::new(4_000, 1_500), Vec::new());
        let long: Vec<u32> = (0..4).map(|_| packet(&mut pool, 1, 1_000)).collect();
        for &handle in &long {
            assert!(queue.push(handle, &pool, &mut evicted));
        }
        let more = packet(&mut pool, 1, 1_000);
        assert!(!queue.push(more, &pool, &mut evicted), "nobody gives way to the longest");
        let other = packet(&mut pool, 2, 1_500);
        assert!(queue.push(other, &pool, &mut evicted));
        assert_eq!(evicted, [long[3], long[2]]);
        assert_eq!((queue.bytes(), queue.len()), (3_500, 3));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(&pool)).collect();
        assert_eq!(order, [long[0], other, long[1]]);
        assert_eq!((queue.bytes(), queue.len()), (0, 0));
    }

    /// Two flows of 1,500 and 1,000 bytes fill the queue. One of 1,000 would have to take 1,000
    /// from what is longer, which gives up 500; one of 900 takes both of the longer one's packets.
    #[test]
    fn nothing_is_given_up_in_vain() {
        let (mut pool, mut queue, mut evicted) =
            (Pool::default(), RoundRobinQueue::new(2_500, 1_500), Vec::new());
        for (flow, bytes) in [(1, 1_000), (1, 500), (2, 1_000)] {
            let handle = packet(&mut pool, flow, bytes);
            assert!(queue.push(handle, &pool, &mut evicted));
        }
        let large = packet(&mut pool, 3, 1_000);
        assert!(!queue.push(large, &pool, &mut evicted));
        assert_eq!((evicted.len(), queue.bytes()), (0, 2_500));
        let small = packet(&mut pool, 3, 900);
        assert!(queue.push(small, &pool, &mut evicted));
        assert_eq!((evicted.len(), queue.bytes()), (2, 1_900));
    }

    /// Theorem 2 of the paper, over every interval: while flows wait, what two of them have been
    /// sent differs by no more than the quantum and twice the largest packet.
    #[test]
    fn flows_that_wait_are_served_alike() {
        let mut rng = Rng::new(1, 0);
        for quantum in [64, 500, 1_500, 4_000] {
            let (mut pool, mut queue) = (Pool::default(), RoundRobinQueue::new(u64::MAX, quantum));
            let mut sizes =
                [1_500, 700, 64].map(|most| std::iter::repeat_with(move || most).take(2_000));
            for (flow, most) in (0..3).zip(&mut sizes) {
                for largest in most {
                    let bytes = 1 + rng.below(largest) as u16;
                    let handle = packet(&mut pool, flow, bytes);
                    queue.push(handle, &pool, &mut Vec::new());
                }
            }
            // Of each pair of flows, how much more the first was sent: least and most since the
            // beginning.
            let (mut total, mut seen) = ([0i64; 3], [[(0i64, 0i64); 3]; 3]);
            let mut left = [2_000; 3];
            while left.iter().all(|&packets| packets > 0) {
                let handle = queue.pop(&pool).unwrap();
                let flow = pool.get(handle).flow as usize;
                total[flow] += i64::from(pool.get(handle).bytes);
                left[flow] -= 1;
                for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                    let (least, most) = &mut seen[a][b];
                    let ahead = total[a] - total[b];
                    (*least, *most) = (ahead.min(*least), ahead.max(*most));
                    assert!(
                        *most - *least <= i64::from(quantum) + 2 * 1_500,
                        "{quantum}: {a} and {b}"
                    );
                }
            }
            assert!(total.iter().sum::<i64>() > 90_000);
        }
    }
}
