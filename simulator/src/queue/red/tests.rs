// SPDX-License-Identifier: GPL-2.0-or-later
//! RED against its formulas.

use super::*;
use crate::packet::Kind;

const PPB: u32 = 800;
const PACKETS: u32 = 400_000;

fn packet(kind: Kind, bytes: u16, ect: bool) -> Packet {
    Packet { kind, ect, ..Packet::datagram(0, 1, 0, bytes) }
}

fn busy(bytes: u64) -> Found {
    Found { bytes, packets: bytes / 1_000, idle: None }
}

/// Instantaneous, from 10 to 30 kB, 10 % at the upper.
fn red(reading: Reading) -> Red {
    let thresholds = Red::ns2(Limit::Bytes(10_000), Limit::Bytes(30_000), Limit::None);
    Red { weight: 0, mark_p: None, mean_packet: 1_000, reading, ..thresholds }
}

/// Packets of `size` bytes marked among 400,000 at a constant queue, and the least and largest
/// distance between two marks.
fn marked(red: &Red, queue: u64, size: u16) -> (u32, u32, u32) {
    let mut detector = Detector::new(red, PPB, Rng::new(1, 2));
    let (mut marks, mut since) = (0, 0);
    let (mut least, mut most) = (u32::MAX, 0);
    for _ in 0..PACKETS {
        since += 1;
        if detector.decide(&busy(queue), &packet(Kind::Data, size, true)) == Action::Mark {
            if marks > 0 {
                (least, most) = (least.min(since), most.max(since));
            }
            marks += 1;
            since = 0;
        }
    }
    (marks, least, most)
}

/// p before spacing: 0.1 · (q − 10 kB) / 20 kB, then from 0.1 to 1 between 30 and 60 kB. Linux's
/// distances are uniform from 1 to 1/p, ns-2's from 1/p to 2/p − 1: means of (1/p + 1) / 2 and (3/p
/// − 1) / 2 where 1/p is whole. 2 % is four standard deviations of the least frequent.
#[test]
fn shares_are_those_of_the_spacing() {
    for (queue, inverse) in
        [(14_000u64, 50u32), (15_000, 40), (20_000, 20), (29_000, 0), (30_000, 10), (40_000, 0)]
    {
        let p = if queue < 30_000 {
            0.1 * (queue as f64 - 10_000.0) / 20_000.0
        } else {
            0.1 + 0.9 * (queue as f64 - 30_000.0) / 30_000.0
        };
        let (linux, linux_least, linux_most) = marked(&red(Reading::Linux), queue, 1_000);
        let (ns2, ns2_least, ns2_most) = marked(&red(Reading::Ns2), queue, 1_000);
        let [linux, ns2] = [linux, ns2].map(|marks| f64::from(marks) / f64::from(PACKETS));
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
        assert_eq!(marked(&red(reading), 9_999, 1_000).0, 0);
        assert_eq!(marked(&red(reading), 10_000, 1_000).0, 0, "the probability begins at 0");
        // ns-2 spares the first, which has crossed the lower threshold.
        let spared = u32::from(reading == Reading::Ns2);
        assert_eq!(marked(&red(reading), 60_000, 1_000).0, PACKETS - spared);
        let steep = Red { gentle: false, ..red(reading) };
        assert_eq!(marked(&steep, 30_000, 1_000).0, PACKETS - spared);
        assert!(marked(&steep, 29_999, 1_000).0 < PACKETS / 5);
    }
}

/// Of packets of 500 and 2,000 bytes in turn, how much more often the large ones are marked with p
/// = 1/20 in bytes: after a mark of either size a chance of p · size / 1,000 / (2 − bytes · p /
/// 1,000) from 20 kB on, and the chain from mark to mark.
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
            marks[i % 2] +=
                u32::from(detector.decide(&found, &packet(Kind::Data, size, true)) == Action::Mark);
        }
        f64::from(marks[1]) / f64::from(marks[0])
    };
    let bytes = chosen(red(Reading::Ns2));
    assert!((bytes / published_ratio() - 1.0).abs() < 0.03, "{bytes} {}", published_ratio());
    for red in [Red { in_packets: true, ..red(Reading::Ns2) }, red(Reading::Linux)] {
        let packets = chosen(red);
        assert!((packets - 1.0).abs() < 0.03, "{packets}");
    }
    // A mean packet of 500 bytes, ns-2's default: packets of 1,500 go by at three a packet, and
    // three times as likely.
    let small = Red { mean_packet: 500, ..red(Reading::Ns2) };
    let (often, seldom) =
        (marked(&small, 20_000, 1_500).0, marked(&red(Reading::Ns2), 20_000, 1_000).0);
    assert!((2.7..3.1).contains(&(f64::from(often) / f64::from(seldom))), "{often} {seldom}");
    // Where packets are counted, 15 are 7.5 or 15 kB.
    let counted = |mean_packet| {
        let red = Red { in_packets: true, mean_packet, ..red(Reading::Linux) };
        let mut detector = Detector::new(&red, PPB, Rng::new(1, 2));
        let found = Found { bytes: 0, packets: 15, idle: None };
        (0..1_000)
            .filter(|_| detector.decide(&found, &packet(Kind::Data, 1_500, true)) == Action::Mark)
            .count()
    };
    assert_eq!(counted(500), 0);
    assert!(counted(1_000) > 20);
}

/// The exact average beside one in floating point: steps up and down, and idleness.
#[test]
fn the_average_is_the_exponential_one() {
    for reading in [Reading::Ns2, Reading::Linux, Reading::Each] {
        let settings = Red { weight: 9, ..red(reading) };
        let mut detector = Detector::new(&settings, PPB, Rng::new(1, 2));
        let (mut expected, weight) = (0.0, 1.0 / 512.0);
        let mut random = Rng::new(5, 6);
        for step in 0..20_000 {
            let bytes = random.below(1_000_000);
            let found = if step % 100 == 99 {
                let idle = random.below(1_000_000_000);
                let missed = (idle / 800_000) as i32;
                expected *= match reading {
                    Reading::Ns2 | Reading::Each => (1.0f64 - weight).powi(missed + 1),
                    Reading::Linux => {
                        (1.0 - weight).powi(missed)
                            * (1.0 - weight * (idle % 800_000) as f64 / 800_000.0)
                    }
                };
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
    let kinds = [
        (Kind::Data, false),
        (Kind::Datagram, false),
        (Kind::Ack, false),
        (Kind::Ack, true),
        (Kind::Syn, false),
    ]
    .into_iter();
    let kinds = kinds.chain([
        (Kind::Syn, true),
        (Kind::SynAck, false),
        (Kind::SynAck, true),
        (Kind::Probe, false),
    ]);
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
    assert_eq!(
        act(Red { protection: Protection::EceBit, ..full }, Kind::Data, true, false),
        Action::Drop
    );
    for protection in
        [Protection::Default, Protection::EceBit, Protection::AckSyn, Protection::NoDrop]
    {
        assert_eq!(act(Red { protection, ..full }, Kind::Data, false, true), Action::Mark);
    }
    // From mark_p on, ns-2 drops what it could mark, and so does Linux's harddrop where the
    // probability is 1.
    assert_eq!(act(Red { mark_p: Some(1_000_000), ..full }, Kind::Data, false, true), Action::Drop);
    let never = Red { mark_p: Some(1_000_000), protection: Protection::NoDrop, ..full };
    assert_eq!(act(never, Kind::Data, false, true), Action::Pass);
}

#[test]
fn what_cannot_be_marked_may_have_other_thresholds() {
    let profile = |kb: u64| Profile {
        min: Limit::Bytes(kb * 1_000),
        max: Limit::Bytes(kb * 1_000),
        max_p: 1_000_000,
    };
    let pair = Red {
        profile: profile(10),
        not_ect: Some(profile(20)),
        gentle: false,
        ..red(Reading::Linux)
    };
    let mut detector = Detector::new(&pair, PPB, Rng::new(1, 2));
    let mut at = |queue, ect| detector.decide(&busy(queue), &packet(Kind::Data, 1_000, ect));
    assert_eq!(
        [at(9_999, true), at(10_000, true), at(30_000, true)],
        [Action::Pass, Action::Mark, Action::Mark]
    );
    assert_eq!(
        [at(10_000, false), at(19_999, false), at(20_000, false)],
        [Action::Pass, Action::Pass, Action::Drop]
    );
    // In time: 8 us are 10 kB at 10 Gb/s and 20 kB at 20.
    let profile =
        Profile { min: Limit::Time(8_000_000), max: Limit::Time(8_000_000), max_p: 1_000_000 };
    for (ppb, queue) in [(800, 10_000), (400, 20_000)] {
        let mut detector =
            Detector::new(&Red { profile, not_ect: None, ..pair }, ppb, Rng::new(1, 2));
        let mut at = |queue| detector.decide(&busy(queue), &packet(Kind::Data, 1_000, true));
        assert_eq!([at(queue - 1), at(queue)], [Action::Pass, Action::Mark]);
    }
}

/// Without spacing: a share of p within four standard deviations, and distances as those of
/// independent draws: half of them up to ln 2 / p, some next to each other and some beyond 5/p.
#[test]
fn each_packet_may_be_marked_by_itself() {
    for (queue, p) in [(14_000u64, 0.02), (20_000, 0.05), (30_000, 0.1)] {
        let (marks, least, most) = marked(&red(Reading::Each), queue, 1_500);
        let expected = f64::from(PACKETS) * p;
        assert!(
            (f64::from(marks) - expected).abs() < 4.0 * expected.sqrt(),
            "{queue}: {marks}, not {expected}"
        );
        assert!(least == 1 && f64::from(most) * p > 5.0, "{queue}: {least} {most}");
    }
    let mut detector = Detector::new(&red(Reading::Each), PPB, Rng::new(1, 2));
    let mut acts = |found: &Found| detector.decide(found, &packet(Kind::Data, 1_500, true));
    assert!((0..100).all(|_| acts(&busy(60_000)) == Action::Mark));
    assert_eq!(acts(&Found { bytes: 0, packets: 0, idle: Some(1) }), Action::Pass);
}
