// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do, from the dataclasses of `qjump_sim.scheme`.

use pyo3::prelude::*;
use qjump_sim::{Aequitas, Budgets, Congestion, Dcqcn, Epochs, Limiter, Mode, PerHost, Rank, Swift, Transport};

use crate::part::{array, Part};

/// Up to three, the rest is none.
pub fn others(part: &Part) -> PyResult<[Option<Transport>; 3]> {
    let items = part.items()?;
    if items.len() > 3 {
        return Err(part.wrong(&format!("it has {} transports, more than 3", items.len())));
    }
    let mut others = [None; 3];
    for (other, item) in others.iter_mut().zip(&items) {
        *other = Some(transport(item)?);
    }
    Ok(others)
}

pub fn transport(part: &Part) -> PyResult<Transport> {
    if part.class()? != "Transport" {
        return Err(part.is_not("a Transport"));
    }
    let optional = |field| part.get(field)?.given().map(|number| number.whole()).transpose();
    let time = |field| part.get(field)?.given().map(|time| time.duration()).transpose();
    let rank = part.get("rank")?;
    Ok(Transport {
        data_bytes: part.get("data_bytes")?.bytes()?,
        ack_bytes: part.get("ack_bytes")?.bytes()?,
        initial_window: part.get("initial_window")?.whole()?,
        max_window: part.get("max_window")?.whole()?,
        min_rto: part.get("min_rto")?.duration()?,
        max_rto: part.get("max_rto")?.duration()?,
        fixed_rto: part.get("fixed_rto")?.flag()?,
        dupacks: optional("dupacks")?,
        probe_after: optional("probe_after")?,
        sack: part.get("sack")?.flag()?,
        delayed_ack: time("delayed_ack")?,
        handshake: time("handshake")?,
        initial_rto: time("initial_rto")?,
        sack_after_rto: part.get("sack_after_rto")?.flag()?,
        ect_again: part.get("ect_again")?.flag()?,
        ect_acks: part.get("ect_acks")?.flag()?,
        ect_syn: part.get("ect_syn")?.flag()?,
        least_window: part.get("least_window")?.whole()?,
        congestion: congestion(&part.get("congestion")?)?,
        rank: match rank.text()?.as_str() {
            "level" => Rank::Level,
            "remaining" => Rank::Remaining,
            "deadline" => Rank::Deadline,
            _ => return Err(rank.is_not("'level', 'remaining' or 'deadline'")),
        },
        connections: part.get("connections")?.whole()?,
    })
}

pub fn congestion(part: &Part) -> PyResult<Congestion> {
    match part.class()?.as_str() {
        "Reno" => Ok(Congestion::Reno),
        "Ecn" => Ok(Congestion::Ecn),
        "Cubic" => Ok(Congestion::Cubic),
        "Dctcp" => Ok(Congestion::Dctcp { shift: part.get("shift")?.whole()? }),
        "Swift" => Ok(Congestion::Swift(Swift {
            base: part.get("base")?.duration()?,
            scaling: part.get("scaling")?.duration()?,
            scaling_least: part.get("scaling_least")?.whole()?,
            scaling_most: part.get("scaling_most")?.whole()?,
            increase: part.get("increase")?.whole()?,
            decrease: part.get("decrease")?.whole()?,
            most_decrease: part.get("most_decrease")?.whole()?,
        })),
        "Bbr" => Ok(Congestion::Bbr),
        "Dcqcn" => Ok(Congestion::Dcqcn(Dcqcn {
            report: part.get("report")?.duration()?,
            alpha_timer: part.get("alpha_timer")?.duration()?,
            timer: part.get("timer")?.duration()?,
            counter: part.get("counter")?.bytes()?,
            shift: part.get("shift")?.whole()?,
            increase: part.get("increase")?.whole()?,
            hyper_increase: part.get("hyper_increase")?.whole()?,
            least: part.get("least")?.whole()?,
        })),
        "Homa" => Ok(Congestion::Homa { scheduled: part.get("scheduled")?.whole()? }),
        _ => Err(part.is_not("a Reno, Ecn, Cubic, Dctcp, Swift, Bbr, Dcqcn or Homa")),
    }
}

fn aequitas(part: &Part) -> PyResult<Aequitas> {
    let target = |of: &Part| if of.object().is_none() { Ok(None) } else { of.duration().map(Some) };
    Ok(Aequitas {
        targets: array(&part.get("targets")?, target)?,
        share: part.get("share")?.whole()?,
        increase: part.get("increase")?.whole()?,
        decrease: part.get("decrease")?.whole()?,
        floor: part.get("floor")?.whole()?,
    })
}

/// `full`: bytes of a full packet.
pub fn limiter(part: &Part, full: u16) -> PyResult<Limiter> {
    let bucket = || -> PyResult<(u64, Budgets)> {
        let budget = |bytes: &Part| if bytes.object().is_none() { Ok(u64::MAX) } else { bytes.size(full) };
        Ok((part.get("epoch")?.duration()?, array(&part.get("budgets")?, budget)?))
    };
    match part.class()?.as_str() {
        "NoneType" => Ok(Limiter::None),
        "PerFlow" => bucket().map(|(epoch, budgets)| Limiter::PerFlow { epoch, budgets }),
        "PerHost" => {
            let (epoch, budgets) = bucket()?;
            let (mode, epochs) = (part.get("mode")?, part.get("epochs")?);
            Ok(Limiter::PerHost(PerHost {
                epoch,
                budgets,
                mode: match mode.text()?.as_str() {
                    "delay" => Mode::Delay,
                    "drop" => Mode::Drop,
                    _ => return Err(mode.is_not("'delay' or 'drop'")),
                },
                epochs: match epochs.text()?.as_str() {
                    "first-packet" => Epochs::FirstPacket,
                    "rolling" => Epochs::Rolling,
                    "aligned" => Epochs::Aligned,
                    _ => return Err(epochs.is_not("'first-packet', 'rolling' or 'aligned'")),
                },
                limit: part.get("limit")?.given().map(|limit| limit.whole()).transpose()?,
            }))
        }
        "Aequitas" => aequitas(part).map(Limiter::Aequitas),
        _ => Err(part.is_not("a PerFlow, PerHost, Aequitas or None")),
    }
}
