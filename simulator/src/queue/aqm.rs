// SPDX-License-Identifier: GPL-2.0-or-later
//! What the active queue managers share: which packets they protect, and a probability's unit.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, Fraction, In, Octets, Unit};
use crate::packet::{Kind, Packet};
use crate::queue::limit::Limit;

/// A probability of 1, in millionths.
pub(crate) const MILLION: u32 = 1_000_000;
/// The largest average weighs a sample with 2^-16.
const LARGEST_WEIGHT: u32 = 16;
/// Thresholds, in bytes, are below, so that an average with 24 fractional bits fits.
const LARGEST_THRESHOLD: u64 = 1 << 37;

/// Which packets that are not ECN-capable are queued where active queue management would drop them.
/// ECN-capable packets are marked instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// None.
    Default,
    /// Packets with the ECE bit: SYNs and SYN-ACKs of ECN-capable flows, ACKs that echo a mark.
    EceBit,
    /// SYNs, SYN-ACKs, ACKs and probes, whatever their bits: only data and datagrams are dropped
    /// early.
    #[serde(rename = "ack+syn")]
    AckSyn,
    /// All packets, as Linux's `red ... nodrop`.
    #[serde(rename = "nodrop")]
    NoDrop,
}

impl Protection {
    pub(crate) fn spares(self, packet: &Packet) -> bool {
        match self {
            Protection::Default => false,
            Protection::EceBit => packet.ece(),
            Protection::AckSyn => !matches!(packet.kind, Kind::Data | Kind::Datagram),
            Protection::NoDrop => true,
        }
    }
}

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

    pub(crate) fn check(&self) -> Result<()> {
        self.profile.check(self.mean_packet)?;
        if let Some(other) = self.not_ect {
            other.check(self.mean_packet).map_err(|error| Error::new(format!("not_ect: {error}")))?;
        }
        if self.weight > LARGEST_WEIGHT {
            return Err(Error::new(format!("a weight of 2^-{} is less than 2^-{LARGEST_WEIGHT}, the least", self.weight)));
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
    pub(crate) fn check_times(&self, ps_per_byte: u32) -> Result<()> {
        let times = std::iter::once(self.profile).chain(self.not_ect).filter_map(|profile| match profile.max {
            Limit::Time(max) => Some(max / u64::from(ps_per_byte)),
            _ => None,
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
            (Limit::Packets(min), Limit::Packets(max)) => (min.into(), max.into(), u64::from(max) * u64::from(mean)),
            // The bytes of a time depend on the link.
            (Limit::Time(min), Limit::Time(max)) => (min, max, 0),
            _ => return Err(Error::new("min and max must both be in bytes, in packets or in time")),
        };
        if min > max || max == 0 {
            return Err(Error::new(format!("the thresholds {min} and {max} must increase")));
        }
        check_threshold(bytes)?;
        if self.max_p == 0 || self.max_p > MILLION {
            return Err(Error::new(format!("max_p: {} millionths must be above 0 and at most 1", self.max_p)));
        }
        Ok(())
    }
}

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

impl CoDel {
    pub(crate) fn check(&self) -> Result<()> {
        if self.interval == 0 || self.interval > Duration::MAX {
            return Err(Error::new(format!("an interval of {} ps must be above 0 and at most 1000 s", self.interval)));
        }
        Ok(())
    }
}
