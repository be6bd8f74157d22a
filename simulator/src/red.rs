// SPDX-License-Identifier: GPL-2.0-or-later
//! Random early detection: an average in fixed point, a probability and the packets since the last action.

use crate::aqm::{Profile, Protection, Reading, Red};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::scheme::Limit;
use crate::time::Ps;

/// Fractional bits of an average, in bytes.
const FRACTION: u32 = 24;
/// A probability of 1.
const ONE: u64 = 1 << 32;
/// The longest queue that an average follows.
const LONGEST: u64 = 1 << 38;

/// What a packet finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// With those of the packet being sent that are still to go.
    pub bytes: u64,
    /// With the one being sent.
    pub packets: u64,
    /// For how long nothing has been sent, if nothing is.
    pub idle: Option<Ps>,
}

/// What early detection asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    Mark,
    Drop,
}

/// Thresholds of the packets that share them, and what has passed since the last action.
#[derive(Debug, Clone)]
struct Class {
    min: u64,
    max: u64,
    max_p: u64,
    /// The average was above `min` when the last packet came.
    above: bool,
    count: u64,
    bytes: u64,
    /// Linux's: uniform, drawn after an action for the next.
    drawn: u64,
}

#[derive(Debug)]
pub(crate) struct Detector {
    /// All packets, or those that are ECN-capable; those that are not.
    classes: Vec<Class>,
    average: u64,
    gentle: bool,
    weight: u32,
    in_packets: bool,
    mean: u64,
    /// Time to send a mean packet.
    mean_time: Ps,
    reading: Reading,
    mark_p: u64,
    protection: Protection,
    rng: Rng,
}

/// Rounded up as all probabilities are, so that n times one of 1/n is 1.
fn millionths(p: u32) -> u64 {
    (u64::from(p) << 32).div_ceil(1_000_000)
}

impl Detector {
    pub fn new(red: &Red, ps_per_byte: u32, rng: Rng) -> Self {
        let mean = u64::from(red.mean_packet);
        let scaled = |limit| match limit {
            Limit::None => unreachable!("checked before"),
            Limit::Bytes(bytes) => bytes << FRACTION,
            Limit::Packets(packets) => (u64::from(packets) * mean) << FRACTION,
            Limit::Time(time) => ((u128::from(time) << FRACTION) / u128::from(ps_per_byte)) as u64,
        };
        let class = |of: Profile| Class {
            min: scaled(of.min),
            max: scaled(of.max),
            max_p: millionths(of.max_p),
            above: false,
            count: 0,
            bytes: 0,
            drawn: 0,
        };
        Detector {
            classes: std::iter::once(red.profile).chain(red.not_ect).map(class).collect(),
            average: 0,
            gentle: red.gentle,
            weight: red.weight,
            in_packets: red.in_packets,
            mean,
            mean_time: mean * u64::from(ps_per_byte),
            reading: red.reading,
            mark_p: red.mark_p.map_or(ONE + 1, millionths),
            protection: red.protection,
            rng,
        }
    }

    /// A packet comes: what is to be done about it.
    pub fn decide(&mut self, found: &Found, packet: &Packet) -> Action {
        self.follow(found);
        let place = usize::from(!packet.ect).min(self.classes.len() - 1);
        let p = self.probability(&self.classes[place]);
        let random = self.rng.bits() >> 32;
        let class = &mut self.classes[place];
        let acts = match self.reading {
            Reading::Ns2 => {
                let bytes = if self.in_packets { None } else { Some((u64::from(packet.bytes), self.mean)) };
                class.ns2(p.filter(|_| found.packets > 0), bytes, random)
            }
            Reading::Linux => class.linux(p, random),
        };
        match p {
            Some(p) if acts => {
                if packet.ect && p < self.mark_p {
                    Action::Mark
                } else if self.protection.spares(packet) {
                    Action::Pass
                } else {
                    Action::Drop
                }
            }
            _ => Action::Pass,
        }
    }

    /// The average of what packets find. Idleness counts as mean packets that would have found nothing.
    fn follow(&mut self, found: &Found) {
        if let Some(idle) = found.idle {
            let missed = idle / self.mean_time + u64::from(self.reading == Reading::Ns2);
            self.average = ((u128::from(self.average) * u128::from(decay(self.weight, missed))) >> 63) as u64;
        } else {
            let queue = if self.in_packets { found.packets * self.mean } else { found.bytes };
            let queue = queue.min(LONGEST) << FRACTION;
            if queue >= self.average {
                self.average += (queue - self.average) >> self.weight;
            } else {
                self.average -= (self.average - queue) >> self.weight;
            }
        }
    }

    /// Before packets since the last action are considered; none below the lower threshold.
    fn probability(&self, class: &Class) -> Option<u64> {
        let part = |of: u64, whole: u64, p: u64| (u128::from(p) * u128::from(of)).div_ceil(u128::from(whole)) as u64;
        let above = self.average.checked_sub(class.min)?;
        if self.average < class.max {
            Some(part(above, class.max - class.min, class.max_p))
        } else if self.gentle && self.average < 2 * class.max {
            Some(class.max_p + part(self.average - class.max, class.max, ONE - class.max_p))
        } else {
            Some(ONE)
        }
    }
}

impl Class {
    /// `bytes`: of the packet and of a mean one, where bytes are counted.
    fn ns2(&mut self, p: Option<u64>, bytes: Option<(u64, u64)>, random: u64) -> bool {
        let size = bytes.map_or(0, |(size, _)| size);
        self.count += 1;
        self.bytes += size;
        let Some(p) = p else {
            self.above = false;
            return false;
        };
        if !self.above {
            // The average has crossed the threshold just now.
            self.above = true;
            self.count = 1;
            self.bytes = size;
            return false;
        }
        let count = bytes.map_or(self.count, |(_, mean)| self.bytes / mean);
        let past = u128::from(count) * u128::from(p);
        let one = u128::from(ONE);
        let mut acts = if past < one {
            0
        } else if past < 2 * one {
            u128::from(p) * one / (2 * one - past)
        } else {
            one
        };
        if let Some((size, mean)) = bytes {
            if acts < one {
                acts = acts * u128::from(size) / u128::from(mean);
            }
        }
        let acts = u128::from(random) < acts;
        if acts {
            self.count = 0;
            self.bytes = 0;
        }
        acts
    }

    fn linux(&mut self, p: Option<u64>, random: u64) -> bool {
        let Some(p) = p.filter(|&p| p < ONE) else {
            self.above = false;
            return p.is_some();
        };
        if !self.above {
            self.above = true;
            self.count = 0;
            self.drawn = random;
            return false;
        }
        self.count += 1;
        let acts = u128::from(self.count) * u128::from(p) >= u128::from(self.drawn);
        if acts {
            self.count = 0;
            self.drawn = random;
        }
        acts
    }
}

/// (1 − 2^-`weight`)^`times` in units of 2^-63.
fn decay(weight: u32, mut times: u64) -> u64 {
    let one = 1u64 << 63;
    let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 63) as u64;
    let (mut power, mut result) = (one - (one >> weight), one);
    while times > 0 {
        if times & 1 == 1 {
            result = product(result, power);
        }
        power = product(power, power);
        times >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    const PPB: u32 = 800;

    fn packet(kind: Kind, bytes: u16, ect: bool) -> Packet {
        Packet { flow: 0, seq: 0, echo: 0, stamp: 0, rank: 1, link: 0, bytes, to: 1, kind, marked: false, ect }
    }

    fn busy(bytes: u64) -> Found {
        Found { bytes, packets: bytes / 1_000, idle: None }
    }

    /// Instantaneous, from 10 to 30 kB, 10 % at the upper.
    fn red(reading: Reading) -> Red {
        let thresholds = Red::ns2(Limit::Bytes(10_000), Limit::Bytes(30_000), Limit::None);
        Red { weight: 0, mark_p: None, mean_packet: 1_000, reading, ..thresholds }
    }

    /// Share of packets of `size` bytes marked at a constant queue, and the least and largest distance between two marks.
    fn marked(red: &Red, queue: u64, size: u16) -> (f64, u32, u32) {
        let mut detector = Detector::new(red, PPB, Rng::new(1, 2));
        let (packets, mut marks, mut since) = (400_000, 0u32, 0);
        let (mut least, mut most) = (u32::MAX, 0);
        for _ in 0..packets {
            since += 1;
            if detector.decide(&busy(queue), &packet(Kind::Data, size, true)) == Action::Mark {
                if marks > 0 {
                    (least, most) = (least.min(since), most.max(since));
                }
                marks += 1;
                since = 0;
            }
        }
        (f64::from(marks) / f64::from(packets), least, most)
    }

    /// p before spacing: 0.1 · (q − 10 kB) / 20 kB, then from 0.1 to 1 between 30 and 60 kB. Linux's distances are uniform from 1 to
    /// 1/p, ns-2's from 1/p to 2/p − 1: means of (1/p + 1) / 2 and (3/p − 1) / 2 where 1/p is whole. 2 % is four standard deviations
    /// of the least frequent.
    #[test]
    fn shares_are_those_of_the_spacing() {
        for (queue, inverse) in [(14_000u64, 50u32), (15_000, 40), (20_000, 20), (29_000, 0), (30_000, 10), (40_000, 0)] {
            let p = if queue < 30_000 {
                0.1 * (queue as f64 - 10_000.0) / 20_000.0
            } else {
                0.1 + 0.9 * (queue as f64 - 30_000.0) / 30_000.0
            };
            let (linux, linux_least, linux_most) = marked(&red(Reading::Linux), queue, 1_000);
            let (ns2, ns2_least, ns2_most) = marked(&red(Reading::Ns2), queue, 1_000);
            if inverse == 0 {
                // 1/p is not whole: ceil(u/p) has the mean of the sum over n >= 0 of max(0, 1 - np).
                let mean: f64 = (0..20).map(|n| (1.0 - f64::from(n) * p).max(0.0)).sum();
                assert!((linux * mean - 1.0).abs() < 0.02, "{queue}: {linux} {mean}");
                continue;
            }
            let n = f64::from(inverse);
            assert!((1.0 / p - n).abs() < 1e-9);
            assert!((linux * (n + 1.0) / 2.0 - 1.0).abs() < 0.02, "{queue}: {linux}");
            assert!((ns2 * (3.0 * n - 1.0) / 2.0 - 1.0).abs() < 0.02, "{queue}: {ns2}");
            assert_eq!((linux_least, linux_most), (1, inverse), "{queue}");
            assert_eq!((ns2_least, ns2_most), (inverse, 2 * inverse - 1), "{queue}");
        }
    }

    #[test]
    fn below_nothing_and_far_above_all_is_marked() {
        for reading in [Reading::Ns2, Reading::Linux] {
            assert_eq!(marked(&red(reading), 9_999, 1_000).0, 0.0);
            assert_eq!(marked(&red(reading), 10_000, 1_000).0, 0.0, "the probability begins at 0");
            // ns-2 spares the first, which has crossed the lower threshold.
            let spared = f64::from(u8::from(reading == Reading::Ns2));
            assert_eq!(marked(&red(reading), 60_000, 1_000).0, 1.0 - spared / 400_000.0);
            let steep = Red { gentle: false, ..red(reading) };
            assert_eq!(marked(&steep, 30_000, 1_000).0, 1.0 - spared / 400_000.0);
            assert!(marked(&steep, 29_999, 1_000).0 < 0.2);
        }
    }

    /// Of packets of 500 and 2,000 bytes in turn, how much more often the large ones are marked with p = 1/20 in bytes: after a mark
    /// of either size a chance of p · size / 1,000 / (2 − bytes · p / 1,000) from 20 kB on, and the chain from mark to mark.
    fn published_ratio() -> f64 {
        // From a mark of a small or large one to the next: the chance that it is a large one.
        let large_next = [0usize, 1].map(|last| {
            let (mut alone, mut large, mut bytes) = (1.0, 0.0, 0u32);
            for i in 1..100 {
                let is_large = (last + i) % 2 == 1;
                let size = if is_large { 2_000 } else { 500 };
                bytes += size;
                let past = f64::from(bytes / 1_000) * 0.05;
                let chance = if past < 1.0 {
                    0.0
                } else if past < 2.0 {
                    (0.05 / (2.0 - past) * f64::from(size) / 1_000.0).min(1.0)
                } else {
                    1.0
                };
                large += if is_large { alone * chance } else { 0.0 };
                alone *= 1.0 - chance;
            }
            large
        });
        let share = large_next[0] / (1.0 - large_next[1] + large_next[0]);
        share / (1.0 - share)
    }

    /// Linux, and ns-2 in packets, do not look at sizes.
    #[test]
    fn in_bytes_the_size_matters() {
        let chosen = |red: Red| {
            let mut detector = Detector::new(&red, PPB, Rng::new(3, 4));
            let mut marks = [0u32; 2];
            for i in 0..800_000 {
                let size = [500, 2_000][i % 2];
                let found = Found { bytes: 20_000, packets: 20, idle: None };
                marks[i % 2] += u32::from(detector.decide(&found, &packet(Kind::Data, size, true)) == Action::Mark);
            }
            f64::from(marks[1]) / f64::from(marks[0])
        };
        let bytes = chosen(red(Reading::Ns2));
        assert!((bytes / published_ratio() - 1.0).abs() < 0.03, "{bytes} {}", published_ratio());
        for red in [Red { in_packets: true, ..red(Reading::Ns2) }, red(Reading::Linux)] {
            let packets = chosen(red);
            assert!((packets - 1.0).abs() < 0.03, "{packets}");
        }
        // A mean packet of 500 bytes, ns-2's default: packets of 1,500 go by at three a packet, and three times as likely.
        let small = Red { mean_packet: 500, ..red(Reading::Ns2) };
        let (often, seldom) = (marked(&small, 20_000, 1_500).0, marked(&red(Reading::Ns2), 20_000, 1_000).0);
        assert!((2.7..3.1).contains(&(often / seldom)), "{often} {seldom}");
        // Where packets are counted, 15 are 7.5 or 15 kB.
        let counted = |mean_packet| {
            let red = Red { in_packets: true, mean_packet, ..red(Reading::Linux) };
            let mut detector = Detector::new(&red, PPB, Rng::new(1, 2));
            let found = Found { bytes: 0, packets: 15, idle: None };
            (0..1_000).filter(|_| detector.decide(&found, &packet(Kind::Data, 1_500, true)) == Action::Mark).count()
        };
        assert_eq!(counted(500), 0);
        assert!(counted(1_000) > 20);
    }

    /// The exact average beside one in floating point: steps up and down, and idleness.
    #[test]
    fn the_average_is_the_exponential_one() {
        for (reading, again) in [(Reading::Ns2, 1), (Reading::Linux, 0)] {
            let settings = Red { weight: 9, ..red(reading) };
            let mut detector = Detector::new(&settings, PPB, Rng::new(1, 2));
            let (mut expected, weight) = (0.0, 1.0 / 512.0);
            let mut random = Rng::new(5, 6);
            for step in 0..20_000 {
                let bytes = random.below(1_000_000);
                let found = if step % 100 == 99 {
                    let idle = random.below(1_000_000_000);
                    let missed = idle / 800_000 + again;
                    expected *= (1.0f64 - weight).powi(missed as i32);
                    Found { bytes: 0, packets: 0, idle: Some(idle) }
                } else {
                    expected += weight * (bytes as f64 - expected);
                    busy(bytes)
                };
                detector.decide(&found, &packet(Kind::Data, 1_000, true));
                let average = detector.average as f64 / f64::from(1 << FRACTION);
                assert!((average - expected).abs() < 1e-3, "{step}: {average} {expected}");
            }
        }
        assert_eq!(decay(0, 1), 0);
        assert_eq!(decay(0, 0), 1 << 63);
        assert_eq!(decay(1, 3), 1 << 60);
    }

    /// Where everything is acted upon: who is marked, spared and dropped.
    #[test]
    fn protection_is_by_kind() {
        let act = |red: Red, kind, marked, ect| {
            let mut detector = Detector::new(&red, PPB, Rng::new(1, 2));
            let packet = Packet { marked, ..packet(kind, 100, ect) };
            detector.decide(&busy(100_000), &packet)
        };
        let full = red(Reading::Linux);
        let kinds =
            [(Kind::Data, false), (Kind::Datagram, false), (Kind::Ack, false), (Kind::Ack, true), (Kind::Syn, false)].into_iter();
        let kinds = kinds.chain([(Kind::Syn, true), (Kind::SynAck, false), (Kind::SynAck, true), (Kind::Probe, false)]);
        let kinds: Vec<(Kind, bool)> = kinds.collect();
        let spared = |protection| -> Vec<usize> {
            let red = Red { protection, ..full };
            let pass = |&(kind, marked): &(Kind, bool)| match act(red, kind, marked, false) {
                Action::Pass => true,
                Action::Drop => false,
                Action::Mark => panic!("what is not ECN-capable is marked"),
            };
            (0..kinds.len()).filter(|&i| pass(&kinds[i])).collect()
        };
        assert_eq!(spared(Protection::Default), []);
        assert_eq!(spared(Protection::EceBit), [3, 5, 7]);
        assert_eq!(spared(Protection::AckSyn), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(spared(Protection::NoDrop), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        // A mark on data is no ECE bit.
        assert_eq!(act(Red { protection: Protection::EceBit, ..full }, Kind::Data, true, false), Action::Drop);
        for protection in [Protection::Default, Protection::EceBit, Protection::AckSyn, Protection::NoDrop] {
            assert_eq!(act(Red { protection, ..full }, Kind::Data, false, true), Action::Mark);
        }
        // From mark_p on, ns-2 drops what it could mark, and so does Linux's harddrop where the probability is 1.
        assert_eq!(act(Red { mark_p: Some(1_000_000), ..full }, Kind::Data, false, true), Action::Drop);
        let never = Red { mark_p: Some(1_000_000), protection: Protection::NoDrop, ..full };
        assert_eq!(act(never, Kind::Data, false, true), Action::Pass);
    }

    #[test]
    fn what_cannot_be_marked_may_have_other_thresholds() {
        let profile = |kb: u64| Profile { min: Limit::Bytes(kb * 1_000), max: Limit::Bytes(kb * 1_000), max_p: 1_000_000 };
        let pair = Red { profile: profile(10), not_ect: Some(profile(20)), gentle: false, ..red(Reading::Linux) };
        let mut detector = Detector::new(&pair, PPB, Rng::new(1, 2));
        let mut at = |queue, ect| detector.decide(&busy(queue), &packet(Kind::Data, 1_000, ect));
        assert_eq!([at(9_999, true), at(10_000, true), at(30_000, true)], [Action::Pass, Action::Mark, Action::Mark]);
        assert_eq!([at(10_000, false), at(19_999, false), at(20_000, false)], [Action::Pass, Action::Pass, Action::Drop]);
        // In time: 8 us are 10 kB at 10 Gb/s and 20 kB at 20.
        let profile = Profile { min: Limit::Time(8_000_000), max: Limit::Time(8_000_000), max_p: 1_000_000 };
        for (ppb, queue) in [(800, 10_000), (400, 20_000)] {
            let mut detector = Detector::new(&Red { profile, not_ect: None, ..pair }, ppb, Rng::new(1, 2));
            let mut at = |queue| detector.decide(&busy(queue), &packet(Kind::Data, 1_000, true));
            assert_eq!([at(queue - 1), at(queue)], [Action::Pass, Action::Mark]);
        }
    }
}
