// SPDX-License-Identifier: GPL-2.0-or-later
//! From the dataclasses of `qjump_sim.queues` to the simulator's queues and pauses.

use pyo3::prelude::*;
use qjump_sim::{
    CoDel, DualPi2, Integral, LevelRed, Limit, Pause, Pie, Profile, Protection, Queue, Reading, Red, TimeAware, Wfq,
};

use crate::part::{array, Part};

const QUEUES: &str =
    "a DropTail, Marking, Threshold, Red, CoDel, Priority, PFabric, RoundRobin, Wfq, LevelRed, TimeAware, Pie or DualPi2";
/// Largest gain, in 1/s.
const MOST_GAIN: f64 = 4e6;

/// `full`: bytes of a full packet.
pub fn queue(part: &Part, full: u16) -> PyResult<Queue> {
    let bytes = |field| part.get(field)?.size(full);
    match part.class()?.as_str() {
        "DropTail" => {
            let packets = part.get("packets")?.given();
            Ok(Queue::DropTail(match (limit(&part.get("bytes")?)?, packets) {
                (Limit::None, Some(packets)) => Limit::Packets(packets.whole()?),
                (limit, None) => limit,
                _ => return Err(part.wrong("a limit is in bytes or in packets, not in both")),
            }))
        }
        "Marking" => Ok(Queue::Marking { limit: bytes("limit")?, threshold: bytes("threshold")? }),
        "Priority" => Ok(Queue::Priority { limit: bytes("limit")? }),
        "PFabric" => Ok(Queue::PFabric { limit: bytes("limit")? }),
        "RoundRobin" => Ok(Queue::RoundRobin { limit: bytes("limit")?, quantum: part.get("quantum")?.size(full)? }),
        "Threshold" => Ok(Queue::Threshold { limit: limit(&part.get("limit")?)?, threshold: limit(&part.get("threshold")?)? }),
        "Red" => red(part).map(Queue::Red),
        "CoDel" => Ok(Queue::CoDel(CoDel {
            limit: limit(&part.get("limit")?)?,
            target: part.get("target")?.duration()?,
            interval: part.get("interval")?.duration()?,
            protection: protection(&part.get("protection")?)?,
        })),
        "Wfq" => Ok(Queue::Wfq(Wfq { limit: bytes("limit")?, weights: array(&part.get("weights")?, Part::whole)? })),
        "LevelRed" => Ok(Queue::LevelRed(LevelRed {
            limit: bytes("limit")?,
            min: bytes("min")?,
            max: bytes("max")?,
            max_p: millionths(&part.get("max_p")?)?,
            weights: part.get("weights")?.given().map(|weights| array(&weights, Part::whole)).transpose()?,
        })),
        "TimeAware" => time_aware(part, full),
        "Pie" => Ok(Queue::Pie(Pie {
            limit: limit(&part.get("limit")?)?,
            control: integral(part)?,
            burst: part.get("burst")?.duration()?,
            mark_p: millionths(&part.get("mark_p")?)?,
            protection: protection(&part.get("protection")?)?,
        })),
        "DualPi2" => Ok(Queue::DualPi2(DualPi2 {
            limit: bytes("limit")?,
            control: integral(part)?,
            coupling: part.get("coupling")?.whole()?,
            least: part.get("least")?.duration()?,
            range: part.get("range")?.duration()?,
            classic_share: part.get("classic_share")?.whole()?,
        })),
        _ => Err(part.is_not(QUEUES)),
    }
}

fn time_aware(part: &Part, full: u16) -> PyResult<Queue> {
    let mut entries = Vec::new();
    for entry in part.get("entries")?.items()? {
        let [lasts, levels] = &entry.items()?[..] else {
            return Err(entry.is_not("a time and levels"));
        };
        let mut gates = 0;
        for level in levels.items()? {
            let number: u8 = level.whole()?;
            gates |= 1u8.checked_shl(number.into()).ok_or_else(|| level.is_not("a level from 0 to 7"))?;
        }
        entries.push((lasts.duration()?, gates));
    }
    let gates = TimeAware::new(part.get("limit")?.size(full)?, part.get("base")?.duration()?, &entries);
    gates.map(Queue::TimeAware).map_err(|e| part.refused(&e))
}

fn integral(part: &Part) -> PyResult<Integral> {
    let thousandths = |field| {
        let gain = part.get(field)?;
        match gain.real()? {
            real if (0.0..=MOST_GAIN).contains(&real) => Ok(whole(real * 1e3).into()),
            _ => Err(gain.is_not(&format!("between 0 and {MOST_GAIN}"))),
        }
    };
    Ok(Integral {
        target: part.get("target")?.duration()?,
        update: part.get("update")?.duration()?,
        alpha: thousandths("alpha")?,
        beta: thousandths("beta")?,
    })
}

fn red(part: &Part) -> PyResult<Red> {
    let reading = part.get("reading")?;
    Ok(Red {
        limit: limit(&part.get("limit")?)?,
        profile: profile(part)?,
        not_ect: part.get("not_ect")?.given().map(|other| profile(&other)).transpose()?,
        gentle: part.get("gentle")?.flag()?,
        weight: part.get("weight")?.whole()?,
        in_packets: part.get("in_packets")?.flag()?,
        mean_packet: part.get("mean_packet")?.bytes()?,
        reading: match reading.text()?.as_str() {
            "ns-2" => Reading::Ns2,
            "linux" => Reading::Linux,
            _ => return Err(reading.is_not("'ns-2' or 'linux'")),
        },
        mark_p: part.get("mark_p")?.given().map(|p| millionths(&p)).transpose()?,
        protection: protection(&part.get("protection")?)?,
    })
}

fn profile(part: &Part) -> PyResult<Profile> {
    Ok(Profile { min: limit(&part.get("min")?)?, max: limit(&part.get("max")?)?, max_p: millionths(&part.get("max_p")?)? })
}

fn millionths(part: &Part) -> PyResult<u32> {
    match part.real()? {
        p if (0.0..=1.0).contains(&p) => Ok(whole(p * 1e6)),
        _ => Err(part.is_not("between 0 and 1")),
    }
}

/// The nearest whole number of one that is not negative.
#[allow(clippy::cast_sign_loss)]
fn whole(real: f64) -> u32 {
    real.round() as u32
}

/// Bytes, packets, a time or nothing.
fn limit(part: &Part) -> PyResult<Limit> {
    match part.class()?.as_str() {
        "NoneType" => Ok(Limit::None),
        "Packets" => Ok(Limit::Packets(part.get("count")?.whole()?)),
        "Time" => Ok(Limit::Time(part.duration()?)),
        _ => Ok(Limit::Bytes(part.bytes()?)),
    }
}

fn protection(part: &Part) -> PyResult<Protection> {
    match part.text()?.as_str() {
        "default" => Ok(Protection::Default),
        "ece-bit" => Ok(Protection::EceBit),
        "ack+syn" => Ok(Protection::AckSyn),
        "nodrop" => Ok(Protection::NoDrop),
        _ => Err(part.is_not("'default', 'ece-bit', 'ack+syn' or 'nodrop'")),
    }
}

pub fn pause(part: &Part, full: u16) -> PyResult<Pause> {
    let per_level = match part.class()?.as_str() {
        "Pause" => false,
        "Pfc" => true,
        _ => return Err(part.is_not("a Pause or a Pfc")),
    };
    let bytes = |field| part.get(field)?.size(full);
    Ok(Pause { xoff: bytes("xoff")?, xon: bytes("xon")?, buffer: bytes("buffer")?, per_level })
}
