// SPDX-License-Identifier: GPL-2.0-or-later
//! Random early detection (Floyd and Jacobson, 1993): an average queue in fixed point, a
//! probability, and the packets since the last mark or drop.

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::Packet;
use crate::queue::aqm::{Profile, Protection, Reading, Red};
use crate::queue::limit::Limit;

/// Fractional bits of an average, in bytes.
const FRACTION: u32 = 24;
/// A probability of 1.
const ONE: u64 = 1 << 32;
/// The longest queue that the average follows.
const LONGEST: u64 = 1 << 38;

/// What an arriving packet finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Including bytes of the packet being sent that are still to go.
    pub bytes: u64,
    /// Including the one being sent.
    pub packets: u64,
    /// For how long the link has been idle, if it is.
    pub idle: Option<Ps>,
}

/// What early detection decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    Mark,
    Drop,
}

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

    /// Resets, with an average of 0.
    pub fn reset(&mut self) {
        self.average = 0;
        for class in &mut self.classes {
            *class = Class::new(class.min, class.max, class.max_p);
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
                let bytes = if self.in_packets { None } else { Some((u64::from(packet.bytes), self.mean)) };
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
            self.average = ((u128::from(self.average) * u128::from(decay(self.weight, missed))) >> 63) as u64;
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
