// SPDX-License-Identifier: GPL-2.0-or-later
//! The event queue: a timing wheel ordered by time and what follows here, without a sequence number per
//! event.
//!
//! Of events at one time, starts of flows come first, then what nodes have pushed for themselves in
//! the order of pushing, then packets that arrive: the oldest first, and of one age in the order of
//! their links. No node's order depends on what other nodes did when, so that a run in parts is the
//! run in one.
//!
//! A bucket covers `2^SHIFT` ps. Its events are a chain of chunks, the newest first; most buckets
//! need one chunk. They are sorted when the bucket's turn comes; the sort is stable, so that the
//! order of pushing is kept. Chunks are used because a chain of single events waits for memory at
//! each of them: with 10,000 hosts that added half of a packet-hop's time. Events beyond one turn
//! of the wheel wait in a heap. They move into their bucket as soon as it is within reach, before
//! anything can be pushed there directly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::core::event::{ARRIVE, INDEX, START};
use crate::core::time::Ps;

/// A bucket is 32.768 ns: about ten events at the load of the published fabric. Opening one costs
/// branches that no processor foretells, and ten events are cheap to sort by counting.
const SHIFT: u32 = 15;
/// One turn is 268 us, longer than the published minimal retransmission timeout of 200 us.
const BUCKETS: usize = 1 << 13;
/// The most events that are moved to insert one in the open bucket.
const ROOM: usize = 64;
const NONE: u32 = u32::MAX;

/// An event: the engine defines `what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When it happens.
    pub time: Ps,
    /// Kind and index, packed by the engine.
    pub what: u32,
}

/// Packs an event for its bucket: the time's lower bits above, `what` below.
fn pack(time: Ps, what: u32) -> u64 {
    (time & ((1 << SHIFT) - 1)) << 32 | u64::from(what)
}

/// The class of an event among those at its time.
fn class(event: u64) -> u8 {
    match event as u32 >> INDEX << INDEX {
        START => 0,
        ARRIVE => 2,
        _ => 1,
    }
}

/// The order of an event among those at this time; of the same order, the one pushed first is.
fn key(event: u64, time: Ps, arrival: impl Fn(u32, Ps) -> (Ps, u32)) -> (u8, Reverse<Ps>, u32) {
    match class(event) {
        class @ 0..2 => (class, Reverse(0), 0),
        class => {
            let (age, link) = arrival(event as u32, time);
            (class, Reverse(age), link)
        }
    }
}

/// log2 of the capacity of a chunk plus one.
const PLACE: u32 = 5;
/// Four cache lines.
const CHUNK: usize = (1 << PLACE) - 1;
/// At light load most buckets have no more events.
const FEW: usize = 8;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    next: u32,
    len: u32,
    events: [u64; CHUNK],
}

impl Chunk {
    /// Its events in order, of which there are at most `PLACES`, a power of two: each is placed by
    /// counting the events before it. No branch depends on a time, which no processor could predict.
    #[inline]
    fn sorted<const PLACES: usize>(&self) -> [u64; PLACES] {
        let mut keys = [i32::MAX; PLACES];
        for (place, event) in self.events.iter().enumerate().take(PLACES) {
            keys[place] = if place < self.len as usize {
                (event >> 32 << PLACE | place as u64) as i32
            } else {
                i32::MAX
            };
        }
        let mut sorted = [0; PLACES];
        for place in 0..(self.len as usize).min(CHUNK).min(PLACES) {
            let before: i32 = keys.iter().map(|&key| i32::from(key < keys[place])).sum();
            sorted[before as usize % PLACES] = self.events[place];
        }
        sorted
    }
}

/// The two digits of a time within its bucket, for radix sort.
const LOW: usize = 1 << 7;
const HIGH: usize = 1 << (SHIFT - 7);

fn lower(event: u64) -> usize {
    (event >> 32) as usize % LOW
}

fn upper(event: u64) -> usize {
    (event >> 32) as usize / LOW % HIGH
}

/// Turns counts per digit into counts of that digit or a lower one; returns the total.
fn sum_up(counts: &mut [u32]) -> usize {
    counts.iter_mut().fold(0, |sum, count| {
        *count += sum;
        *count
    }) as usize
}

/// A queue of events in order.
#[derive(Debug)]
pub struct Wheel {
    /// Number of the open bucket since the beginning of time.
    turn: u64,
    /// Packed events of the open bucket, sorted; those before `done` have been taken.
    open: Vec<u64>,
    done: usize,
    /// Events of the open bucket before this one are in their final order; those behind it that
    /// share a time are in the order of pushing.
    ordered: usize,
    /// Events pushed into the open bucket while it had many: by time, then in the order of pushing.
    late: BinaryHeap<Reverse<(u64, u32)>>,
    late_pushed: u32,
    /// Events of a bucket of several chunks, half sorted.
    half: Vec<u64>,
    /// The newest chunk of each bucket; a bit of `occupied` says whether there is one.
    heads: Box<[u32; BUCKETS]>,
    occupied: Box<[u64; BUCKETS / 64]>,
    chunks: Vec<Chunk>,
    free: u32,
    /// Buckets with events.
    filled: usize,
    far: BinaryHeap<Reverse<(Ps, u64, u32)>>,
    far_pushed: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Self::new()
    }
}

impl Wheel {
    /// An empty wheel at time 0.
    pub fn new() -> Self {
        Wheel {
            turn: 0,
            open: Vec::new(),
            done: 0,
            ordered: 0,
            late: BinaryHeap::new(),
            late_pushed: 0,
            half: Vec::new(),
            heads: vec![NONE; BUCKETS].try_into().expect("as many"),
            occupied: Box::new([0; BUCKETS / 64]),
            chunks: Vec::new(),
            free: NONE,
            filled: 0,
            far: BinaryHeap::new(),
            far_pushed: 0,
        }
    }

    /// Adds an event. It must not be earlier than the last event taken, nor than a time up to which
    /// none was found.
    #[inline]
    pub fn push(&mut self, time: Ps, what: u32) {
        let ahead = (time >> SHIFT).wrapping_sub(self.turn);
        if ahead.wrapping_sub(1) < BUCKETS as u64 - 1 {
            self.push_bucket(time, what);
        } else if ahead == 0 {
            self.push_open(pack(time, what));
        } else {
            assert!(ahead < 1 << 63, "an event is pushed into the past");
            self.far.push(Reverse((time, self.far_pushed, what)));
            self.far_pushed += 1;
        }
    }

    /// Adds an event to the open bucket: in its place, or to `late` if too many events would have
    /// to move.
    #[inline]
    fn push_open(&mut self, event: u64) {
        let rest = &self.open[self.done..];
        if rest.len() > ROOM || !self.late.is_empty() {
            self.late
                .push(Reverse((event >> 32 << 32 | u64::from(self.late_pushed), event as u32)));
            self.late_pushed += 1;
        } else {
            let at = self.place(event);
            self.open.insert(at, event);
        }
    }

    /// The place of an event in the open bucket: behind all of its time, or, among events whose
    /// order is final already, behind those of its class.
    #[inline]
    fn place(&mut self, event: u64) -> usize {
        let rest = &self.open[self.done..];
        let at = self.done + rest.partition_point(|e| e >> 32 <= event >> 32);
        if at > self.ordered || self.ordered <= self.done {
            return at;
        }
        self.place_among_ordered(event, at)
    }

    #[cold]
    fn place_among_ordered(&mut self, event: u64, at: usize) -> usize {
        let class_of = class(event);
        if at < self.ordered || class_of == class(u64::from(ARRIVE)) {
            self.ordered = self.done;
            return at;
        }
        let key = (event >> 32, class_of);
        self.ordered += 1;
        self.done + self.open[self.done..at].partition_point(|&e| (e >> 32, class(e)) <= key)
    }

    #[inline]
    fn push_bucket(&mut self, time: Ps, what: u32) {
        let bucket = (time >> SHIFT) as usize % BUCKETS;
        let event = pack(time, what);
        if let Some(chunk) = self.chunks.get_mut(self.heads[bucket] as usize) {
            if let Some(place) = chunk.events.get_mut(chunk.len as usize) {
                *place = event;
                chunk.len += 1;
                return;
            }
        }
        self.add_chunk(bucket, event);
    }

    fn add_chunk(&mut self, bucket: usize, event: u64) {
        let head = self.heads[bucket];
        if head == NONE {
            self.occupied[bucket / 64] |= 1 << (bucket % 64);
            self.filled += 1;
        }
        if self.free == NONE {
            self.free = self.chunks.len() as u32;
            self.chunks.push(Chunk { next: NONE, len: 0, events: [0; CHUNK] });
        }
        self.heads[bucket] = self.free;
        let chunk = &mut self.chunks[self.free as usize];
        self.free = std::mem::replace(&mut chunk.next, head);
        chunk.len = 1;
        chunk.events[0] = event;
    }

    /// Takes the next event if it happens at `last` or before. `arrival`: the age of a packet that
    /// arrives now, and its link.
    #[inline]
    pub fn pop_until(&mut self, last: Ps, arrival: impl Fn(u32, Ps) -> (Ps, u32)) -> Option<Event> {
        if !self.late.is_empty() {
            self.take_in_late();
        }
        let mut event = match self.open.get(self.done) {
            Some(&event) => event,
            None => self.open_next(last)?,
        };
        let time = self.turn << SHIFT | event >> 32;
        if time > last {
            return None;
        }
        let next = self.done + 1;
        if self.ordered <= next && self.open.get(next).is_some_and(|e| e >> 32 == event >> 32) {
            event = self.order(arrival);
        }
        self.done = next;
        Some(Event { time, what: event as u32 })
    }

    /// Brings the next events, which share a time, into their final order; returns the first.
    #[inline(never)]
    fn order(&mut self, arrival: impl Fn(u32, Ps) -> (Ps, u32)) -> u64 {
        let (turn, rest) = (self.turn << SHIFT, &mut self.open[self.done..]);
        let time = rest[0] >> 32;
        let key = |event: u64| key(event, turn | time, &arrival);
        // Most often there are two, in different places of the network.
        if rest.get(2).is_none_or(|event| event >> 32 != time) {
            if key(rest[1]) < key(rest[0]) {
                rest.swap(0, 1);
            }
            self.ordered = self.done + 2;
            return rest[0];
        }
        let tied = rest.iter().position(|event| event >> 32 != time).unwrap_or(rest.len());
        rest[..tied].sort_by_cached_key(|&event| key(event));
        self.ordered = self.done + tied;
        self.open[self.done]
    }

    /// Moves the late events that come next into the open bucket.
    #[inline(never)]
    fn take_in_late(&mut self) {
        while let Some(&Reverse((key, what))) = self.late.peek() {
            if self.open.get(self.done).is_some_and(|event| event >> 32 < key >> 32) {
                return;
            }
            self.late.pop();
            let event = key >> 32 << 32 | u64::from(what);
            let at = self.place(event);
            if self.done == 0 {
                self.open.insert(at, event);
                continue;
            }
            // The events before its place move to where a taken one was.
            self.open.copy_within(self.done..at, self.done - 1);
            self.open[at - 1] = event;
            self.done -= 1;
            self.ordered -= usize::from(self.ordered > 0);
        }
    }

    /// The time of the next event. It opens no bucket: the code that does is inlined into its only
    /// caller, 4 % of all instructions.
    #[inline(never)]
    pub fn next_time(&self) -> Option<Ps> {
        let late = self.late.peek().map(|&Reverse((key, _))| key >> 32);
        let open = self.open.get(self.done).map(|event| event >> 32);
        if let Some(key) = late.into_iter().chain(open).min() {
            return Some(self.turn << SHIFT | key);
        }
        if self.filled == 0 {
            return self.far.peek().map(|&Reverse((time, _, _))| time);
        }
        let occupied = |turn: &u64| self.heads[*turn as usize % BUCKETS] != NONE;
        let turn = (self.turn..self.turn + BUCKETS as u64).find(occupied)?;
        let first = self.chain(turn as usize % BUCKETS).min()?;
        Some(turn << SHIFT | first >> 32)
    }

    /// The next event, without taking it. Slow.
    #[inline(never)]
    pub fn peek(&self, arrival: impl Fn(u32, Ps) -> (Ps, u32)) -> Option<Event> {
        let time = self.next_time()?;
        // In the order of pushing.
        let mut tied: Vec<u64> = Vec::new();
        let within = |event: &u64| self.turn << SHIFT | event >> 32 == time;
        tied.extend(self.open[self.done..].iter().copied().filter(within));
        let mut late: Vec<_> = self.late.iter().map(|Reverse(event)| *event).collect();
        late.sort_unstable();
        let late = late.iter().map(|(key, what)| key >> 32 << 32 | u64::from(*what));
        tied.extend(late.filter(within));
        if tied.is_empty() {
            tied.extend(self.chain((time >> SHIFT) as usize % BUCKETS));
            tied.retain(|event| event >> 32 == time & ((1 << SHIFT) - 1));
            tied.reverse();
        }
        if tied.is_empty() {
            let mut far: Vec<_> = self.far.iter().map(|Reverse(event)| *event).collect();
            far.sort_unstable();
            tied.extend(far.iter().filter(|far| far.0 == time).map(|far| u64::from(far.2)));
        }
        let first = tied.into_iter().min_by_key(|&event| key(event, time, &arrival))?;
        Some(Event { time, what: first as u32 })
    }

    /// Events of a bucket, the newest first.
    fn chain(&self, bucket: usize) -> impl Iterator<Item = u64> + '_ {
        let newest = self.chunks.get(self.heads[bucket] as usize);
        std::iter::successors(newest, |chunk| self.chunks.get(chunk.next as usize))
            .flat_map(|chunk| chunk.events[..chunk.len as usize].iter().rev().copied())
    }

    /// The event `events` after the next one, if it is already known.
    #[inline]
    pub fn ahead(&self, events: usize) -> Option<u32> {
        self.open.get(self.done + events).map(|&event| event as u32)
    }

    /// Opens the next bucket with an event and returns its first event; none if there is no event,
    /// or no bucket that begins by `last`.
    fn open_next(&mut self, last: Ps) -> Option<u64> {
        let turn = match self.filled {
            0 => self.far.peek()?.0 .0 >> SHIFT,
            _ => self.turn + self.to_occupied(),
        };
        if turn > last >> SHIFT {
            return None;
        }
        self.turn = turn;
        self.open.clear();
        self.done = 0;
        self.ordered = 0;
        self.late_pushed = 0;
        self.bring_near();
        let bucket = turn as usize % BUCKETS;
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        self.filled -= 1;
        let head = std::mem::replace(&mut self.heads[bucket], NONE);
        if self.chunks[head as usize].next == NONE {
            let chunk = &mut self.chunks[head as usize];
            if chunk.len <= FEW as u32 {
                self.open.extend_from_slice(&chunk.sorted::<FEW>());
            } else {
                self.open.extend_from_slice(&chunk.sorted::<{ CHUNK + 1 }>());
            }
            self.open.truncate(chunk.len as usize);
            chunk.next = std::mem::replace(&mut self.free, head);
        } else {
            self.open_chain(head);
        }
        self.open.first().copied()
    }

    /// Opens a bucket of several chunks with a radix sort, lowest digit first. Each pass goes from
    /// the newest event to the oldest, as chunks are chained, and fills places from the last, so
    /// that the order of pushing is kept.
    #[inline(never)]
    fn open_chain(&mut self, head: u32) {
        let (mut low, mut high) = ([0u32; LOW], [0u32; HIGH]);
        let mut at = head;
        while let Some(chunk) = self.chunks.get(at as usize) {
            for &event in &chunk.events[..chunk.len as usize] {
                low[lower(event)] += 1;
                high[upper(event)] += 1;
            }
            at = chunk.next;
        }
        let all = sum_up(&mut low);
        sum_up(&mut high);
        self.half.resize(all, 0);
        self.open.resize(all, 0);
        at = head;
        while at != NONE {
            let chunk = &mut self.chunks[at as usize];
            for &event in chunk.events[..chunk.len as usize].iter().rev() {
                let place = &mut low[lower(event)];
                *place -= 1;
                self.half[*place as usize] = event;
            }
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = at;
            at = next;
        }
        for &event in self.half.iter().rev() {
            let place = &mut high[upper(event)];
            *place -= 1;
            self.open[*place as usize] = event;
        }
    }

    /// Distance in buckets to the next one with an event.
    fn to_occupied(&self) -> u64 {
        let here = self.turn as usize % BUCKETS;
        let mut word = here / 64;
        let mut bits = self.occupied[word] & (!0 << (here % 64));
        while bits == 0 {
            word = (word + 1) % self.occupied.len();
            bits = self.occupied[word];
        }
        let there = word * 64 + bits.trailing_zeros() as usize;
        ((there + BUCKETS - here) % BUCKETS) as u64
    }

    fn bring_near(&mut self) {
        while let Some(&Reverse((time, _, what))) = self.far.peek() {
            if (time >> SHIFT) - self.turn >= BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.push_bucket(time, what);
        }
    }

    /// All pending events, in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = u32> + '_ {
        let chains = (0..BUCKETS).flat_map(|bucket| self.chain(bucket));
        let open = self.open[self.done..].iter().copied();
        let near = chains.chain(open).map(|event| event as u32);
        let late = self.late.iter().map(|Reverse((_, what))| *what);
        near.chain(late).chain(self.far.iter().map(|Reverse((_, _, what))| *what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Rng;

    /// Gaps from the same picosecond to beyond a turn.
    #[test]
    fn order_is_time_class_and_age_or_pushing() {
        beside_a_set(&[1, 3, 1 << 13, 1 << 20, 1 << 28, 1 << 30, 1 << 34]);
    }

    /// Thousands of events in each bucket, many at one time, and many that are pushed into the open
    /// one.
    #[test]
    fn the_order_is_the_same_in_full_buckets() {
        beside_a_set(&[1, 1 << 8, 1 << 13, 1 << SHIFT, 1 << 16]);
    }

    const KINDS: [u32; 4] = [ARRIVE, START, 1 << INDEX, 4 << INDEX];

    fn arrival(handle: u32, now: Ps) -> (Ps, u32) {
        (now + u64::from(handle % 3), handle % 5)
    }

    /// Compares the wheel with a sorted set with sequence numbers.
    fn beside_a_set(reaches: &[u64]) {
        let mut rng = Rng::new(7, 0);
        let mut wheel = Wheel::new();
        let mut model = std::collections::BTreeSet::new();
        let (mut now, mut pushed) = (0, 0u32);
        for round in 0..200_000 {
            // Half of the rounds mostly push, half mostly drain, so that the wheel runs empty now
            // and then.
            let push = rng.below(100) < if round % 20_000 < 10_000 { 60 } else { 40 };
            if push {
                let reach = reaches[rng.below(reaches.len() as u64) as usize];
                let gap = rng.below(reach);
                // Multiples of 4096 ps, so that many events share a time.
                let time = now + if rng.below(2) == 0 { gap } else { gap & !4095 };
                let what = KINDS[rng.below(4) as usize] | pushed;
                wheel.push(time, what);
                let class = class(what.into());
                let (age, link) = if class == 2 { arrival(what, time) } else { (0, 0) };
                model.insert((time, class, Reverse(age), link, pushed, what));
                pushed += 1;
            } else {
                let last = now + rng.below(reaches[reaches.len() - 1].min(1 << 30));
                let first = model.first().copied();
                assert_eq!(wheel.next_time(), first.map(|key| key.0), "round {round}");
                if round % 8 == 0 {
                    let next = wheel.peek(arrival).map(|event| (event.time, event.what));
                    assert_eq!(next, first.map(|key| (key.0, key.5)), "round {round}");
                }
                let due = first.filter(|key| key.0 <= last);
                let got = wheel.pop_until(last, arrival).map(|event| (event.time, event.what));
                assert_eq!(got, due.map(|key| (key.0, key.5)), "round {round}");
                if let Some(key) = due {
                    model.remove(&key);
                }
                now = due.map_or(last, |key| key.0);
            }
        }
        let mut left: Vec<u32> = wheel.pending().collect();
        left.sort_unstable();
        let mut expected: Vec<u32> = model.iter().map(|key| key.5).collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}
