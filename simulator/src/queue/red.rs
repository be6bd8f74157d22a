// SPDX-License-Identifier: GPL-2.0-or-later
//! Random early detection (Floyd and Jacobson, 1993): an average queue in fixed point, a
//! probability, and the packets since the last mark or drop.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Fraction, In, Octets};
use crate::packet::Packet;
use crate::queue::aqm::{Protection, MILLION};
use crate::queue::fifo::{waits_in_a_fifo, Fifo};
use crate::queue::limit::Limit;
use crate::queue::traits::{Action, AdmissionRule, Found, QueueKind};

/// The largest average weighs a sample with 2^-16.
const LARGEST_WEIGHT: u32 = 16;
/// Thresholds, in bytes, are below, so that an average with 24 fractional bits fits.
const LARGEST_THRESHOLD: u64 = 1 << 37;

/// How RED spaces its marks and drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// ns-2's `RED` with its default `wait_`: 1/p to 2/p packets from one action to the next. If
    /// the queue counts bytes, the probability grows with the packet's size relative to the mean. A
    /// packet that finds the queue empty is never dropped.
    #[serde(rename = "ns-2")]
    Ns2,
    /// Linux's `sch_red`: 1 to 1/p packets, of any size. While the link idles, the average falls by
    /// (1 − weight) for every mean packet that could have been sent, and in proportion for the
    /// rest; Linux reads nearly the same from a table of powers of two.
    Linux,
    /// No spacing: each packet independently, of any size, as switches mark for DCQCN (Zhu et al.,
    /// SIGCOMM 2015, figure 5).
    Each,
}

/// RED's thresholds and maximum probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Below this average the probability is 0. A number of packets means as many mean packets.
    pub min: Limit,
    /// At this average the probability is `max_p`.
    pub max: Limit,
    /// In millionths.
    #[serde(with = "In::<Fraction>")]
    pub max_p: u32,
}

/// Random early detection (Floyd and Jacobson, 1993) on the average queue, which includes the
/// packet being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Limit of the queue behind it.
    pub limit: Limit,
    /// Thresholds.
    pub profile: Profile,
    /// Other thresholds for packets that are not ECN-capable, on the same average (WRED with two
    /// classes); none: the same.
    pub not_ect: Option<Profile>,
    /// Above `max` the probability goes from `max_p` to 1 at twice `max`, instead of at once.
    pub gentle: bool,
    /// Each arriving packet moves the average by 2^-`weight` of the difference; 0: the current
    /// queue instead of an average.
    pub weight: u32,
    /// Count every packet as a mean one; otherwise count bytes.
    pub in_packets: bool,
    /// Bytes of a mean packet.
    #[serde(with = "In::<Octets>")]
    pub mean_packet: u16,
    /// Spacing of actions.
    pub reading: Reading,
    /// In millionths: at this probability or above, ECN-capable packets are dropped too; none:
    /// never. 1,000,000 is Linux's `harddrop`.
    #[serde(with = "In::<Fraction>")]
    pub mark_p: Option<u32>,
    /// Who is not dropped early.
    pub protection: Protection,
}

impl Red {
    /// ns-2.35's default parameters, which count bytes in packets of 500: weight 2^-9 (close to its
    /// former 0.002; today's is computed from the link), gentle, `max_p` and `mark_p` 0.1.
    pub fn ns2(min: Limit, max: Limit, limit: Limit) -> Self {
        Red {
            limit,
            profile: Profile { min, max, max_p: MILLION / 10 },
            not_ect: None,
            gentle: true,
            weight: 9,
            in_packets: false,
            mean_packet: 500,
            reading: Reading::Ns2,
            mark_p: Some(MILLION / 10),
            protection: Protection::Default,
        }
    }

    /// Linux's `tc qdisc add ... red ... ecn` with its default probability of 0.02.
    pub fn linux(min: Limit, max: Limit, limit: Limit) -> Self {
        Red {
            profile: Profile { min, max, max_p: MILLION / 50 },
            gentle: false,
            mean_packet: 1_000,
            reading: Reading::Linux,
            mark_p: None,
            ..Red::ns2(min, max, limit)
        }
    }

    fn check(&self) -> Result<()> {
        self.profile.check(self.mean_packet)?;
        if let Some(other) = self.not_ect {
            other
                .check(self.mean_packet)
                .map_err(|error| Error::new(format!("not_ect: {error}")))?;
        }
        if self.weight > LARGEST_WEIGHT {
            return Err(Error::new(format!(
                "a weight of 2^-{} is less than 2^-{LARGEST_WEIGHT}, the least",
                self.weight
            )));
        }
        if self.mean_packet == 0 {
            return Err(Error::new("the mean packet must be above 0 bytes"));
        }
        match self.mark_p {
            Some(p) if p > MILLION => Err(Error::new(format!("mark_p: {p} millionths exceed 1"))),
            _ => Ok(()),
        }
    }

    /// Refuses time thresholds that are too large on a link of this rate.
    fn check_times(&self, ps_per_byte: u32) -> Result<()> {
        let times = std::iter::once(self.profile).chain(self.not_ect).filter_map(|profile| {
            match profile.max {
                Limit::Time(max) => Some(max / u64::from(ps_per_byte)),
                _ => None,
            }
        });
        times.into_iter().try_for_each(check_threshold)
    }
}

/// `max`: in bytes.
fn check_threshold(max: u64) -> Result<()> {
    if max >= LARGEST_THRESHOLD {
        return Err(Error::new(format!("a threshold of {max} bytes must be below 2^37")));
    }
    Ok(())
}

impl Profile {
    /// `mean`: bytes of a mean packet.
    pub(crate) fn check(&self, mean: u16) -> Result<()> {
        let (min, max, bytes) = match (self.min, self.max) {
            (Limit::Bytes(min), Limit::Bytes(max)) => (min, max, max),
            (Limit::Packets(min), Limit::Packets(max)) => {
                (min.into(), max.into(), u64::from(max) * u64::from(mean))
            }
            // The bytes of a time depend on the link.
            (Limit::Time(min), Limit::Time(max)) => (min, max, 0),
            _ => {
                return Err(Error::new("min and max must both be in bytes, in packets or in time"))
            }
        };
        if min > max || max == 0 {
            return Err(Error::new(format!("the thresholds {min} and {max} must increase")));
        }
        check_threshold(bytes)?;
        if self.max_p == 0 || self.max_p > MILLION {
            return Err(Error::new(format!(
                "max_p: {} millionths must be above 0 and at most 1",
                self.max_p
            )));
        }
        Ok(())
    }
}

impl QueueKind for Red {
    waits_in_a_fifo!();
    type Rule = Box<Detector>;
    const NAME: &str = "red";
    const SEES_FULL: bool = true;
    const DEPARTS_IN_ORDER: bool = true;
    const LIMITED_AT_ADMISSION: bool = true;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn check(&self) -> Result<()> {
        Red::check(self)
    }

    fn check_on_link(&self, ps_per_byte: u32) -> Result<()> {
        self.check_times(ps_per_byte)
    }

    fn rule(&self, ps_per_byte: u32, rng: Rng) -> Box<Detector> {
        Box::new(Detector::new(self, ps_per_byte, rng))
    }
}

/// Fractional bits of an average, in bytes.
const FRACTION: u32 = 24;
/// A probability of 1.
const ONE: u64 = 1 << 32;
/// The longest queue that the average follows.
const LONGEST: u64 = 1 << 38;

/// Thresholds of a class of packets, and the packets since the last action.
#[derive(Debug, Clone)]
struct Class {
    min: u64,
    max: u64,
    max_p: u64,
    /// The average was above `min` at the last arrival.
    above: bool,
    count: u64,
    bytes: u64,
    /// Linux's random number, drawn after an action for the next.
    drawn: u64,
}

#[derive(Debug)]
pub(crate) struct Detector {
    /// One class for all packets, or one for ECN-capable packets and one for the others.
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
    pub(super) rng: Rng,
}

/// Converts millionths, rounded up as all probabilities are, so that n times 1/n is 1.
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
        let class = |of: Profile| Class::new(scaled(of.min), scaled(of.max), millionths(of.max_p));
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

    /// Decides on an arriving packet.
    pub fn decide(&mut self, found: &Found, packet: &Packet) -> Action {
        self.follow(found);
        let place = usize::from(!packet.ect).min(self.classes.len() - 1);
        let p = self.probability(&self.classes[place]);
        let random = self.rng.bits() >> 32;
        let class = &mut self.classes[place];
        let acts = match self.reading {
            Reading::Ns2 => {
                let bytes =
                    if self.in_packets { None } else { Some((u64::from(packet.bytes), self.mean)) };
                class.ns2(p.filter(|_| found.packets > 0), bytes, random)
            }
            Reading::Linux => class.linux(p, random),
            Reading::Each => p.is_some_and(|p| random < p),
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

    /// Updates the average. Idle time counts as mean packets that would have found nothing.
    fn follow(&mut self, found: &Found) {
        if let Some(idle) = found.idle {
            let (missed, rest) = match self.reading {
                // Includes the arriving packet; the fraction of a mean packet is not counted.
                Reading::Ns2 | Reading::Each => (idle / self.mean_time + 1, 0),
                Reading::Linux => (idle / self.mean_time, idle % self.mean_time),
            };
            self.average =
                ((u128::from(self.average) * u128::from(decay(self.weight, missed))) >> 63) as u64;
            let part = u128::from(self.average) * u128::from(rest) / u128::from(self.mean_time);
            self.average -= (part as u64) >> self.weight;
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

    /// The probability before spacing; none below the lower threshold.
    fn probability(&self, class: &Class) -> Option<u64> {
        let part = |of: u64, whole: u64, p: u64| {
            (u128::from(p) * u128::from(of)).div_ceil(u128::from(whole)) as u64
        };
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

/// As in Linux, early detection comes first, and a packet that passes it may find the queue full.
impl AdmissionRule for Detector {
    fn judge(&mut self, _now: Ps, found: &Found, packet: &Packet) -> Action {
        self.decide(found, packet)
    }

    fn reset(&mut self, _now: Ps) {
        self.average = 0;
        for class in &mut self.classes {
            *class = Class::new(class.min, class.max, class.max_p);
        }
    }
}

impl Class {
    fn new(min: u64, max: u64, max_p: u64) -> Self {
        Class { min, max, max_p, above: false, count: 0, bytes: 0, drawn: 0 }
    }

    /// `bytes`: of the packet and of a mean one, if bytes are counted.
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
mod tests;
